//! What sessions wait for, by type. Every engine names its own waits and puts the nearest of Oracle's behind them in
//! parentheses; by that one, engines are compared and causes found.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::words::open_words;

open_words! {
    /// Oracle's wait events, as far as anything is decided by them (Oracle Database Reference, "Descriptions of Wait
    /// Events"); `double write` and `checkpoint` are named in their manner.
    OracleEvent:
    /// A read of one block.
    DbFileSequentialRead => "db file sequential read",
    /// A read of several blocks in one call.
    DbFileScatteredRead => "db file scattered read",
    /// DBWR writes a batch.
    DbFileParallelWrite => "db file parallel write",
    /// One block is written.
    DbFileSingleWrite => "db file single write",
    /// A block is written beside its place first.
    DoubleWrite => "double write",
    /// A temporary segment is read.
    DirectPathReadTemp => "direct path read temp",
    /// A temporary segment is written.
    DirectPathWriteTemp => "direct path write temp",
    /// LGWR writes.
    LogFileParallelWrite => "log file parallel write",
    /// The log is read.
    LogFileSequentialRead => "log file sequential read",
    /// A commit waits for LGWR.
    LogFileSync => "log file sync",
    /// The next log file is made ready.
    LogFileSwitchCompletion => "log file switch completion",
    /// The next log file still protects blocks that are not written.
    LogFileSwitchCheckpoint => "log file switch (checkpoint incomplete)",
    /// The log buffer is full.
    LogBufferSpace => "log buffer space",
    /// No buffer is free until DBWR has written one.
    FreeBufferWaits => "free buffer waits",
    /// Another session changes the block.
    BufferBusyWaits => "buffer busy waits",
    /// Another session reads the block.
    ReadByOtherSession => "read by other session",
    /// The block is being written.
    WriteCompleteWaits => "write complete waits",
    /// The control file is read.
    ControlFileSequentialRead => "control file sequential read",
    /// The control file is written.
    ControlFileParallelWrite => "control file parallel write",
    /// A segment is extended: its new blocks are written.
    DataFileInitWrite => "data file init write",
    /// Another session extends the segment.
    SpaceContention => "enq: HW - contention",
    /// Datafiles are synced.
    Checkpoint => "checkpoint",
    /// A checkpoint was asked for and waited for.
    CheckpointCompleted => "checkpoint completed",
    /// Another transaction has changed the row.
    RowLock => "enq: TX - row lock contention",
    /// Another transaction writes.
    TransactionLock => "enq: TX - contention",
    /// Another transaction has the table.
    TableLock => "enq: TM - contention",
}

impl OracleEvent {
    /// Whether a wait is for a device, or for a process that waits for one.
    pub fn is_storage(&self) -> bool {
        match self {
            OracleEvent::BufferBusyWaits
            | OracleEvent::RowLock
            | OracleEvent::TransactionLock
            | OracleEvent::TableLock
            | OracleEvent::Other(_) => false,
            OracleEvent::DbFileSequentialRead
            | OracleEvent::DbFileScatteredRead
            | OracleEvent::DbFileParallelWrite
            | OracleEvent::DbFileSingleWrite
            | OracleEvent::DoubleWrite
            | OracleEvent::DirectPathReadTemp
            | OracleEvent::DirectPathWriteTemp
            | OracleEvent::LogFileParallelWrite
            | OracleEvent::LogFileSequentialRead
            | OracleEvent::LogFileSync
            | OracleEvent::LogFileSwitchCompletion
            | OracleEvent::LogFileSwitchCheckpoint
            | OracleEvent::LogBufferSpace
            | OracleEvent::FreeBufferWaits
            | OracleEvent::ReadByOtherSession
            | OracleEvent::WriteCompleteWaits
            | OracleEvent::ControlFileSequentialRead
            | OracleEvent::ControlFileParallelWrite
            | OracleEvent::DataFileInitWrite
            | OracleEvent::SpaceContention
            | OracleEvent::Checkpoint
            | OracleEvent::CheckpointCompleted => true,
        }
    }

    /// Whether it is one for the log to be written. A log that waits for a checkpoint waits for datafiles.
    pub fn is_log_write(&self) -> bool {
        matches!(
            self,
            OracleEvent::LogFileParallelWrite
                | OracleEvent::LogFileSync
                | OracleEvent::LogFileSwitchCompletion
                | OracleEvent::LogBufferSpace
        )
    }

    /// Whether it is one for another transaction's lock.
    pub fn is_lock(&self) -> bool {
        matches!(
            self,
            OracleEvent::RowLock | OracleEvent::TransactionLock | OracleEvent::TableLock
        )
    }
}

/// A wait event, written as its engine names it: `db file sequential read`, `WALSync (log file sync)`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct WaitEvent {
    name: String,
    nearest: OracleEvent,
}

impl WaitEvent {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// As the engine calls it: without the nearest of Oracle's events behind it. People read this; programs read the
    /// whole name.
    pub fn own_name(&self) -> &str {
        let inner = self.name.strip_suffix(')');
        let behind = inner.and_then(|rest| rest.rsplit_once(" ("));
        match behind {
            Some((own, nearest)) if nearest == self.nearest.name() => own,
            _ => &self.name,
        }
    }

    /// The nearest of Oracle's events: itself, if it is one of them.
    pub fn nearest(&self) -> &OracleEvent {
        &self.nearest
    }
}

impl From<String> for WaitEvent {
    fn from(name: String) -> WaitEvent {
        // Some of Oracle's own names have parentheses, so the whole name is tried first.
        let nearest = match OracleEvent::from(name.as_str()) {
            OracleEvent::Other(whole) => {
                let inner = whole
                    .strip_suffix(')')
                    .and_then(|rest| rest.rsplit_once(" ("));
                inner.map_or(OracleEvent::Other(whole.clone()), |(_, inner)| {
                    OracleEvent::from(inner)
                })
            }
            known => known,
        };
        WaitEvent { name, nearest }
    }
}

impl From<&str> for WaitEvent {
    fn from(name: &str) -> WaitEvent {
        WaitEvent::from(name.to_owned())
    }
}

impl From<WaitEvent> for String {
    fn from(event: WaitEvent) -> String {
        event.name
    }
}

impl fmt::Display for WaitEvent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.name)
    }
}

/// What a session did with its time. Processor time and run queue are its own wherever it was, in waits too; a wait
/// event is the time in it that the session was blocked.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum TimeUse {
    /// `user CPU`: the program on a processor.
    UserCpu,
    /// `system CPU`: the system on a processor on the program's behalf.
    SystemCpu,
    /// `run queue`: ready to run, and no processor free.
    RunQueue,
    /// `wait for a free client`: due at a fixed rate, and no client free for it.
    ClientQueue,
    /// `other`: what nothing accounts for.
    Unaccounted,
    /// Blocked in a wait event.
    Wait(WaitEvent),
}

impl TimeUse {
    /// As it is written.
    pub fn name(&self) -> &str {
        match self {
            TimeUse::UserCpu => "user CPU",
            TimeUse::SystemCpu => "system CPU",
            TimeUse::RunQueue => "run queue",
            TimeUse::ClientQueue => "wait for a free client",
            TimeUse::Unaccounted => "other",
            TimeUse::Wait(event) => event.name(),
        }
    }

    /// As people read it: a wait as its engine calls it.
    pub fn own_name(&self) -> &str {
        match self {
            TimeUse::Wait(event) => event.own_name(),
            of_processors => of_processors.name(),
        }
    }

    /// Whether it is a wait of which this is true, by the nearest of Oracle's events.
    pub fn is_wait(&self, is_it: impl Fn(&OracleEvent) -> bool) -> bool {
        match self {
            TimeUse::Wait(event) => is_it(event.nearest()),
            _ => false,
        }
    }
}

impl From<String> for TimeUse {
    fn from(name: String) -> TimeUse {
        let of_processors = [
            TimeUse::UserCpu,
            TimeUse::SystemCpu,
            TimeUse::RunQueue,
            TimeUse::ClientQueue,
            TimeUse::Unaccounted,
        ];
        let known = of_processors.into_iter().find(|known| known.name() == name);
        known.unwrap_or_else(|| TimeUse::Wait(WaitEvent::from(name)))
    }
}

impl From<&str> for TimeUse {
    fn from(name: &str) -> TimeUse {
        TimeUse::from(name.to_owned())
    }
}

impl From<TimeUse> for String {
    fn from(of: TimeUse) -> String {
        of.name().to_owned()
    }
}

impl fmt::Display for TimeUse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nearest(name: &str) -> OracleEvent {
        WaitEvent::from(name).nearest().clone()
    }

    #[test]
    fn the_nearest_event_stands_in_parentheses_unless_the_whole_is_one() {
        let read = OracleEvent::DbFileSequentialRead;
        assert_eq!(nearest("db file sequential read"), read);
        assert_eq!(nearest("DataFileRead (db file sequential read)"), read);
        assert_eq!(
            nearest("log file switch (checkpoint incomplete)"),
            OracleEvent::LogFileSwitchCheckpoint
        );
        assert_eq!(
            nearest("other call"),
            OracleEvent::Other("other call".to_owned())
        );
        assert!(!nearest("Extend (enq: HW - contention)").is_lock());
        assert!(nearest("tuple (enq: TX - row lock contention)").is_lock());
    }

    #[test]
    fn people_read_what_the_engine_calls_it() {
        for (name, own) in [
            ("WALSync (log file sync)", "WALSync"),
            ("sync of the log (log file sync)", "sync of the log"),
            ("other call", "other call"),
            ("db file sequential read", "db file sequential read"),
            (
                "log file switch (checkpoint incomplete)",
                "log file switch (checkpoint incomplete)",
            ),
        ] {
            assert_eq!(WaitEvent::from(name).own_name(), own);
            assert_eq!(TimeUse::from(name).own_name(), own);
        }
    }

    #[test]
    fn uses_of_time_are_written_as_they_are_read() {
        for name in [
            "user CPU",
            "run queue",
            "other",
            "WALSync (log file sync)",
            "free buffer waits",
        ] {
            let of = TimeUse::from(name);
            assert_eq!(serde_json::to_value(&of).unwrap(), name);
            assert_eq!(serde_json::from_value::<TimeUse>(name.into()).unwrap(), of);
        }
        assert_eq!(TimeUse::from("other"), TimeUse::Unaccounted);
        assert!(TimeUse::from("WALSync (log file sync)").is_wait(OracleEvent::is_log_write));
        assert!(!TimeUse::SystemCpu.is_wait(|_| true));
    }
}
