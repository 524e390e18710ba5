//! What the control file of a stopped cluster says, read by `pg_controldata`
//! (https://www.postgresql.org/docs/current/app-pgcontroldata.html).

use std::path::Path;

use super::programs::Programs;
use crate::EngineError;

/// The words of the states that a copy may be in.
const STOPPED: &str = "shut down";
const STANDBY_STOPPED: &str = "shut down in recovery";
const DAMAGED: &str = "Calculated CRC checksum does not match";

/// A control file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Control {
    /// What the server did last, in PostgreSQL's words.
    pub state: String,
    /// The piece of the write-ahead log that a start reads first.
    pub log_piece: String,
    /// Whether blocks have checksums.
    pub has_checksums: bool,
    /// Size of a piece of the write-ahead log, MiB.
    pub segment_mib: u32,
    /// Most transactions that could be prepared.
    pub prepared_max: u32,
}

impl Control {
    /// That of a cluster in `data`, which is only read.
    ///
    /// # Errors
    /// `Unavailable`: `pg_controldata` is missing; or what it said.
    pub fn read(programs: &Programs, data: &Path) -> Result<Control, EngineError> {
        const TOOL: &str = "pg_controldata";
        if !programs.has(TOOL) {
            return Err(EngineError::unavailable(format!(
                "{} is not there, which looks at copies of clusters: install PostgreSQL's server programs",
                programs.path(TOOL).display()
            )));
        }
        let said = programs.text_of(programs.command_of_caller(TOOL).arg("-D").arg(data))?;
        Control::parse(&said).ok_or_else(|| {
            EngineError::unavailable(format!(
                "the control file of {} is damaged: {TOOL} does not understand it",
                data.display()
            ))
        })
    }

    fn parse(said: &str) -> Option<Control> {
        let value = |name: &str| {
            let mut lines = said.lines().filter_map(|line| line.split_once(':'));
            let line = lines.find(|(known, _)| *known == name)?;
            Some(line.1.trim())
        };
        let number = |name: &str| value(name)?.parse::<u32>().ok();
        let control = Control {
            state: value("Database cluster state")?.to_owned(),
            log_piece: value("Latest checkpoint's REDO WAL file")?.to_owned(),
            has_checksums: number("Data page checksum version")? != 0,
            segment_mib: number("Bytes per WAL segment")? >> 20,
            prepared_max: number("max_prepared_xacts setting")?,
        };
        (!said.contains(DAMAGED)).then_some(control)
    }

    /// Whether the server was stopped in order, as one that takes changes.
    pub fn is_stopped(&self) -> bool {
        self.state == STOPPED
    }

    /// Whether it was stopped in order as a standby.
    pub fn is_stopped_standby(&self) -> bool {
        self.state == STANDBY_STOPPED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAID: &str = "pg_control version number:            1300
Database cluster state:               shut down
Latest checkpoint's REDO WAL file:    000000010000000000000001
max_prepared_xacts setting:           5
Bytes per WAL segment:                16777216
Data page checksum version:           1
";

    #[test]
    fn what_pg_controldata_says_is_read() {
        let control = Control::parse(SAID).unwrap();
        assert_eq!(control.log_piece, "000000010000000000000001");
        assert_eq!((control.segment_mib, control.prepared_max), (16, 5));
        assert!(control.has_checksums && control.is_stopped());
        let standby = SAID.replace("shut down", "shut down in recovery");
        let standby = Control::parse(&standby).unwrap();
        assert!(standby.is_stopped_standby() && !standby.is_stopped());
        let damaged = format!("WARNING: {DAMAGED} value stored in file.\n{SAID}");
        assert_eq!(Control::parse(&damaged), None);
        assert_eq!(Control::parse("Database cluster state: shut down"), None);
    }
}
