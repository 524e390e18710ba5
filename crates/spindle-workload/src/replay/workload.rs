//! The kind of workload: its settings in the experiment file, and how clients carry it out.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use spindle_io::sync::Latch;
use spindle_text::load_file::{Dump, LargeFile, LoadFile};
use spindle_text::plain::shortened;
use spindle_text::section::{SettingsRefusal, TextFile};
use spindle_text::{settings, words};

use super::lanes::deal_out;
use super::recording::{Recorded, Recording, RecordingError, SessionHead, kind_of, word_of};
use super::transaction::{ReplayTransaction, Unprepared};
use crate::script::beyond::reason;
use crate::script::own_data::{self, OwnData, refusal};
use crate::session::SessionError;
use crate::sql::connection::SqlConnection;
use crate::sql::dialect::Dialect;
use crate::sql::kind::{MadeFor, MadeWorkload, TrialPace, WorkloadSettings};
use crate::sql::{Ours, SqlTransaction, SqlWorkload, StatementOrigin};
use crate::workload::{Acknowledged, CheckError, Client};

/// More of a statement is not told.
const TOLD_BYTES_MAX: usize = 100;

words! {
    /// What becomes of the times of a recording.
    pub enum Times {
        /// Every transaction begins at its moment of the recording, or as soon after it as it can.
        Kept = "kept",
        /// A client begins its next transaction when it has ended the last.
        Ignored = "ignored",
    }
}

settings! {
    /// The workload.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    pub struct ReplaySettings {
        /// What a server's sessions did: a file that `spindle import` made of its log. Its path begins beside the
        /// experiment file.
        recording: Option<LargeFile> = large_file("recording"),
        /// What becomes of the recorded times.
        times: Times = word("times", Times::Kept),
        /// With `times = "kept"`: 2.0 does in an hour what was recorded in two.
        speed: f64 = scale("speed", 1.0, 0.001..=1_000.0),
        /// SQL files, dumps and copies of servers that make the tables and fill them, once, as they were when the
        /// recording began.
        load: Vec<LoadFile> = load_files("load"),
        /// SQL files whose statements must have the answers after a trial that they had after the load.
        check: Vec<TextFile> = files("check"),
    }
}

/// Where a client is in its sessions.
#[derive(Clone, Copy, Default)]
struct ReplayPosition {
    /// Of its sessions.
    session: usize,
    /// In the session's lines.
    offset: usize,
}

/// A recording, to be replayed.
pub(super) struct ReplayWorkload {
    recording: Arc<Recording>,
    data: OwnData,
    speed: Option<f64>,
    heads: Vec<SessionHead>,
    /// The sessions of each client, and where it is; dealt out when the number of clients is known.
    dealt: Latch<Option<Dealt>>,
    unprepared: Unprepared,
}

struct Dealt {
    lanes: Vec<Arc<[usize]>>,
    places: Vec<ReplayPosition>,
}

impl ReplaySettings {
    fn speed(&self) -> Option<f64> {
        (self.times == Times::Kept).then_some(self.speed)
    }

    fn read(&self) -> Result<Recording, RecordingError> {
        match &self.recording {
            Some(file) => Recording::open(file),
            None => Err(RecordingError::Missing),
        }
    }
}

impl WorkloadSettings for ReplaySettings {
    fn make(&self, made_for: &MadeFor) -> MadeWorkload {
        let dialect = made_for.dialect.unwrap_or(Dialect::Postgres);
        let recording = self.read();
        let recording = recording.expect("the recording is read when the experiment is");
        let data = OwnData::read(&self.load, &self.check, &BTreeMap::new(), dialect);
        let data = data.map_err(|(file, mistake)| format!("{}: {}", file.name, mistake.message));
        let data = data.expect("files are read when the experiment is");
        MadeWorkload::Sql(Arc::new(ReplayWorkload::new(recording, data, self.speed())))
    }

    fn pace(&self) -> TrialPace {
        TrialPace::Recorded
    }

    fn is_in_sql(&self) -> bool {
        true
    }

    fn loaded_from(&self) -> &[LoadFile] {
        &self.load
    }

    fn recorded_rate_per_s(&self) -> Option<f64> {
        let head = self.read().ok()?.head;
        let seconds = head.duration_us as f64 / 1e6 / self.speed()?;
        let per_s = head.transactions as f64 / seconds.max(1e-6);
        Some((100.0 * per_s).round().max(1.0) / 100.0)
    }

    fn check(&self, made_for: &MadeFor) -> Vec<SettingsRefusal> {
        let Some(dialect) = made_for.dialect else {
            return Vec::new();
        };
        let mut refused = self.refused_recording(made_for, dialect);
        if self.times == Times::Ignored && self.speed != 1.0 {
            refused.push(refusal(
                &["speed"],
                "speed is set and times are ignored",
                "without the recorded times nothing waits",
                "leave speed out, or write times = \"kept\"",
            ));
        }
        refused.extend(own_data::refused_dumps(&self.load, dialect));
        let data = OwnData::read(&self.load, &self.check, &BTreeMap::new(), dialect);
        if let Err(mistake) = data {
            refused.push(own_data::refused(mistake, &[(&["check"], &self.check)]));
        }
        refused
    }
}

impl ReplaySettings {
    /// What is wrong with the recording for this database.
    fn refused_recording(&self, made_for: &MadeFor, dialect: Dialect) -> Vec<SettingsRefusal> {
        let recording = match self.read() {
            Ok(recording) => recording,
            Err(RecordingError::Missing) => {
                return vec![refusal(
                    &["recording"],
                    "kind = \"replay\" has no recording",
                    "recording names what is replayed",
                    "make one: spindle import csvlog FILE, and likewise jsonlog, slowlog and generallog",
                )];
            }
            Err(error) => {
                return vec![refusal(
                    &["recording"],
                    "the recording cannot be replayed",
                    &error.to_string(),
                    "import the log again; docs/how-to/replay-a-log.md says what a recording is",
                )];
            }
        };
        let of = &recording.head.database;
        let other = (*of != word_of(dialect)).then(|| {
            refusal(
                &["recording"],
                "the recording is of another database",
                &format!("it is of {of}, and the engine is another"),
                "choose the recording's own engine in [database]",
            )
        });
        let sessions = recording.sessions.len();
        let few = (made_for.clients > sessions as u64).then(|| {
            refusal(
                &["clients"],
                "there are more clients than recorded sessions",
                &format!("the recording has {sessions} sessions, and each is done by one client"),
                "leave the number that spindle import wrote, or set a lower one",
            )
        });
        other.into_iter().chain(few).collect()
    }
}

impl ReplayWorkload {
    /// Of a recording and the tables it needs.
    pub(super) fn new(recording: Recording, data: OwnData, speed: Option<f64>) -> ReplayWorkload {
        let sessions = recording.sessions.iter();
        ReplayWorkload {
            heads: sessions.map(|session| session.head).collect(),
            recording: Arc::new(recording),
            data,
            speed,
            dealt: Latch::new(None),
            unprepared: Unprepared::default(),
        }
    }

    /// Does something with what the clients were dealt.
    fn with_dealt<T>(&self, clients: usize, what: impl FnOnce(&mut Dealt) -> T) -> T {
        let mut dealt = self.dealt.lock();
        let dealt = dealt.get_or_insert_with(|| Dealt {
            lanes: deal_out(&self.heads, clients)
                .into_iter()
                .map(Arc::from)
                .collect(),
            places: vec![ReplayPosition::default(); clients],
        });
        what(dealt)
    }

    /// The next transaction of a client, and whether it is the first of a session that is not the client's first.
    fn take(&self, client: &Client) -> Option<(Recorded, bool)> {
        let (mut place, sessions) = self.with_dealt(client.clients, |dealt| {
            (
                dealt.places[client.number],
                Arc::clone(&dealt.lanes[client.number]),
            )
        });
        let taken = loop {
            let session = *sessions.get(place.session)?;
            match self.recording.transaction(session, place.offset) {
                Some((recorded, next)) => {
                    let resets = place.offset == 0 && place.session > 0;
                    place.offset = next;
                    break (recorded, resets);
                }
                None => {
                    place = ReplayPosition {
                        session: place.session + 1,
                        offset: 0,
                    };
                }
            }
        };
        self.with_dealt(client.clients, |dealt| dealt.places[client.number] = place);
        Some(taken)
    }
}

impl SqlWorkload for ReplayWorkload {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn kinds(&self) -> Vec<String> {
        let kinds = self.recording.kinds.iter();
        kinds.map(|kind| (*kind).to_owned()).collect()
    }

    fn create_tables(&self, _: Dialect) -> Vec<String> {
        self.data.statements()
    }

    fn dumps(&self) -> Vec<(usize, &Dump)> {
        self.data.dumps()
    }

    fn after_load(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        self.data.keep_answers(connection)
    }

    fn statements(&self, _: Dialect) -> Vec<String> {
        self.recording.texts.clone()
    }

    fn sent_with(&self, words: &[&str], _: Dialect) -> Vec<String> {
        self.recording.sent_with(words)
    }

    fn prepare(&self, connection: &mut dyn SqlConnection) -> Result<(), SessionError> {
        let mut texts = self.recording.texts.clone();
        let stand_in = |texts: &mut [String], number: usize| texts[number] = "select 1".to_owned();
        for number in self.unprepared.lock().iter() {
            stand_in(&mut texts, *number);
        }
        let Err(error) = connection.prepare(&texts) else {
            return Ok(());
        };
        if connection.is_closed() {
            return Err(error);
        }
        for number in 0..texts.len() {
            connection.rollback()?;
            let one = connection.prepare(&texts[number..=number]);
            if one.is_err() && connection.is_closed() {
                return one;
            }
            if one.is_err() {
                self.unprepared.lock().insert(number);
                stand_in(&mut texts, number);
            }
        }
        connection.rollback()?;
        connection.prepare(&texts)
    }

    fn beyond(&self, dialect: Dialect, ours: Ours, others: &[String]) -> Option<String> {
        let of_load = self.data.beyond(&[], dialect, ours, others);
        of_load.or_else(|| {
            let mut sent = self.recording.statements();
            sent.find_map(|sql| {
                let reason = reason(&sql, dialect, ours, others)?;
                Some(format!(
                    "the recording has `{}`: {reason}",
                    shortened(&sql, TOLD_BYTES_MAX)
                ))
            })
        })
    }

    fn place(&self, of: StatementOrigin) -> Option<&str> {
        match of {
            StatementOrigin::Table(number) => {
                self.data.statement(number).map(|it| it.place.as_str())
            }
            StatementOrigin::Statement(_) => None,
        }
    }

    fn transactions(&self, client: usize, clients: usize) -> Option<u64> {
        let of_session = |session: &usize| self.heads[*session].transactions;
        self.with_dealt(clients, |dealt| {
            let sessions = dealt.lanes.get(client)?.iter();
            Some(sessions.map(of_session).sum())
        })
    }

    fn is_paced(&self) -> bool {
        self.speed.is_some()
    }

    fn next(&self, client: &mut Client) -> Box<dyn SqlTransaction> {
        let taken = self.take(client);
        let (recorded, resets) = taken.unwrap_or((Recorded(0, Vec::new()), false));
        let kind = kind_of(&recorded.1, &self.recording.texts);
        let mut kinds = self.recording.kinds.iter();
        Box::new(ReplayTransaction {
            kind: kinds.position(|known| *known == kind).unwrap_or(0),
            recording: Arc::clone(&self.recording),
            recorded,
            speed: self.speed,
            resets,
            unprepared: Arc::clone(&self.unprepared),
        })
    }

    fn check(
        &self,
        connection: &mut dyn SqlConnection,
        _: &[Acknowledged],
    ) -> Result<String, CheckError> {
        self.data.compare_answers(connection)
    }
}
