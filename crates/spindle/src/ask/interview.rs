//! The five questions of `spindle init`: what may be answered, what is taken where nothing is, and the experiment file
//! that follows. What this machine has is given; nothing here looks at it.

use spindle_experiment::DatabaseEngine;

use super::draft::{Draft, DraftPlace, DraftSection, quoted};
use super::engines::{comparisons, has_processes, listed};
use super::error::AskError;
use super::question::Question;
use super::workloads::{READY, ReadyWorkload};
use spindle_text::quantity::duration_text;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const MINUTE_MS: u64 = 60_000;
/// Data are at most this part of the free room.
const ROOM_PER_DATA: u64 = 12;

/// Fewer data measure nothing.
const DATA_MIN_BYTES: u64 = 16 * MIB;

/// The word for comparing directories.
pub const DIRECTORIES: &str = "directories";
/// The word for comparing file systems that are made for it.
pub const FILE_SYSTEMS: &str = "file-systems";

/// An answer that may be chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What is typed for it.
    pub word: String,
    /// What it is, in words.
    pub text: String,
}

/// A place for files, and what is known of it.
#[derive(Clone, Debug)]
pub struct CandidatePlace {
    /// The directory, or the device.
    pub path: String,
    /// Its file system and device, in words.
    pub text: String,
    /// Free room.
    pub free_bytes: u64,
}

impl CandidatePlace {
    /// Whether it has room for the least database.
    pub fn has_room(&self) -> bool {
        self.free_bytes / ROOM_PER_DATA >= DATA_MIN_BYTES
    }
}

/// What this machine has.
#[derive(Clone, Debug, Default)]
pub struct MachineOffer {
    /// The engines, and what was found of each, in words; those that cannot be used say why.
    pub engines: Vec<(&'static str, String)>,
    /// The current directory first, then other file systems.
    pub places: Vec<CandidatePlace>,
    /// Unused, empty devices; none of them is ever a default.
    pub devices: Vec<CandidatePlace>,
    /// Whether file systems can be made.
    pub can_make_file_systems: bool,
}

/// The answers.
#[derive(Clone, Debug)]
pub struct Answers {
    /// Which database.
    pub engine: DatabaseEngine,
    /// The word of what is compared.
    pub compare: String,
    /// Directories, and devices among those that the machine has to offer.
    pub places: Vec<String>,
    /// What clients do.
    pub workload: &'static ReadyWorkload,
    /// How long a run may take.
    pub time_ms: u64,
}

fn choice(word: &str, text: impl Into<String>) -> Choice {
    Choice {
        word: word.to_owned(),
        text: text.into(),
    }
}

/// What may be compared, the default first.
pub fn comparable(engine: DatabaseEngine, machine: &MachineOffer) -> Vec<Choice> {
    let mut choices: Vec<Choice> = comparisons(engine)
        .iter()
        .map(|comparison| choice(comparison.word, comparison.says))
        .collect();
    let directories = choice(
        DIRECTORIES,
        "two places or more: directories on existing file systems, or empty devices",
    );
    match machine.places.len() > 1 {
        true => choices.insert(0, directories),
        false => choices.push(directories),
    }
    if machine.can_make_file_systems {
        choices.push(choice(
            FILE_SYSTEMS,
            "ext4 and XFS, made for the run in files or on an empty device",
        ));
    }
    choices
}

/// The workloads that every engine has, the default first.
pub fn workloads() -> Vec<Choice> {
    let all = READY.iter();
    all.map(|ready| choice(ready.kind.as_str(), ready.says))
        .collect()
}

/// How long a run may take, the default first.
pub fn times() -> Vec<Choice> {
    vec![
        choice("10m", "a first answer"),
        choice("2m", "a look"),
        choice("1h", "an answer to rely on"),
        choice("8h", "overnight: small differences"),
    ]
}

impl MachineOffer {
    /// Whether a place is one of the devices on offer.
    pub fn is_device(&self, place: &str) -> bool {
        self.devices.iter().any(|device| device.path == place)
    }
}

/// The name of a layout on a device.
fn name_on(device: &str) -> String {
    let name = device.rsplit('/').next().unwrap_or(device);
    format!("ext4 on {name}")
}

/// The settings of a layout on a device.
fn on_device(device: &str, kind: &'static str) -> Vec<(&'static str, String, &'static str)> {
    vec![
        (
            "devices",
            format!("[{}]", quoted(device)),
            "formatted for the run",
        ),
        ("filesystem", quoted(kind), ""),
    ]
}

impl Answers {
    /// The experiment file `name`.toml, for this many cases.
    ///
    /// # Errors
    /// What does not go together.
    pub fn draft(
        &self,
        name: &str,
        machine: &MachineOffer,
        cases: usize,
    ) -> Result<Draft, AskError> {
        if self.compare == DIRECTORIES && self.places.len() < 2 {
            return Err(AskError::OneDirectory);
        }
        let (size_bytes, free_bytes) = (self.size_bytes(machine), self.free_bytes(machine));
        if size_bytes < DATA_MIN_BYTES {
            return Err(AskError::TooLittleRoom(free_bytes));
        }
        let question = Question {
            engine: self.engine,
            paths: self.places.clone(),
            vary: Vec::new(),
            workload: self.workload,
            scripts: Vec::new(),
            load: Vec::new(),
            defines: Vec::new(),
            clients: 8,
            size_bytes,
            time_ms: self.time_ms,
            sets: Vec::new(),
        };
        let mut about = vec![
            format!("Written by `spindle init`: {}", self.question()),
            format!(
                "What it would take: spindle plan {name}.toml. To run it: spindle run {name}.toml. Every key: docs/experiment-file.md."
            ),
        ];
        about.extend(self.formatted(machine));
        let mut draft = Draft::new(name, about);
        question.write_settings(&mut draft, cases);
        let of_engine = comparisons(self.engine).iter();
        let varied = of_engine.filter(|comparison| comparison.word == self.compare);
        let varied: Vec<_> = varied.flat_map(|comparison| comparison.settings).collect();
        let why = if varied.len() > 1 {
            "each value with each"
        } else {
            ""
        };
        for (key, values) in varied {
            draft.set(DraftSection::Vary, key, listed(values), why);
        }
        if self.compare == FILE_SYSTEMS {
            self.write_file_systems(&mut draft, machine, size_bytes);
            return Ok(draft);
        }
        for place in &self.places {
            match machine.is_device(place) {
                true => draft.layout_of(&name_on(place), &on_device(place, "ext4")),
                false => draft.layout(place, place),
            }
        }
        Ok(draft)
    }

    /// The answer that says what stands at a place of the file; `None` where no single one does.
    pub fn argument_of(&self, place: &DraftPlace) -> Option<String> {
        match place {
            DraftPlace::Layout(number) => self
                .places
                .get(*number)
                .map(|place| format!("--where {place}")),
            DraftPlace::Key(DraftSection::Database, key) if key == "engine" => {
                Some(format!("--engine {}", self.engine))
            }
            DraftPlace::Key(DraftSection::Workload, key) if key == "kind" => {
                Some(format!("--workload {}", self.workload))
            }
            DraftPlace::Key(DraftSection::Plan, _) => {
                Some(format!("--time {}", duration_text(self.time_ms)))
            }
            DraftPlace::Key(..) => None,
        }
    }

    /// What a run does to devices; nothing where there is none.
    pub fn formatted(&self, machine: &MachineOffer) -> Option<String> {
        let devices: Vec<&str> = self
            .places
            .iter()
            .map(String::as_str)
            .filter(|place| machine.is_device(place))
            .collect();
        (!devices.is_empty()).then(|| {
            format!(
                "A run makes file systems on {}, empty when this was written, and removes them afterwards. `spindle plan` checks again.",
                devices.join(" and ")
            )
        })
    }

    /// What is asked, in words.
    fn question(&self) -> String {
        let places: Vec<String> = self
            .places
            .iter()
            .map(|place| format!("`{place}`"))
            .collect();
        let places = places.join(" or ");
        match self.compare.as_str() {
            DIRECTORIES => format!("where is {} faster, in {places}?", self.engine),
            FILE_SYSTEMS => format!("is {} faster on ext4 or on XFS?", self.engine),
            word => {
                let mut all = comparisons(self.engine).iter();
                let asks = all
                    .find(|comparison| comparison.word == word)
                    .map_or(word, |comparison| comparison.asks);
                format!("{asks} for {} in {places}?", self.engine)
            }
        }
    }

    /// Each on its own file, in the first place.
    fn write_file_systems(&self, draft: &mut Draft, machine: &MachineOffer, size_bytes: u64) {
        if let Some(device) = self.places.first().filter(|place| machine.is_device(place)) {
            for kind in ["ext4", "xfs"] {
                let mut settings = on_device(device, kind);
                settings.push(("share", quoted("fair"), "equal parts of the device"));
                settings.push(("volume", "{}".to_owned(), "LVM makes one of the parts"));
                draft.layout_of(kind, &settings);
            }
            return;
        }
        let server_mib = if has_processes(self.engine) {
            3 * 1024
        } else {
            512
        };
        let size_mib = size_bytes / MIB * 2 + server_mib;
        let place = self.places.first().map_or(".", String::as_str);
        for kind in ["ext4", "xfs"] {
            let file = quoted(&format!("{place}/spindle-{kind}.img"));
            let devices = format!("[{{ file = {file}, size = \"{size_mib}MiB\" }}]");
            draft.layout_of(
                kind,
                &[
                    ("devices", devices, "made for the run, and removed"),
                    ("filesystem", quoted(kind), ""),
                ],
            );
        }
    }

    fn free_bytes(&self, machine: &MachineOffer) -> u64 {
        let free = |path: &String| {
            let mut places = machine.places.iter().chain(&machine.devices);
            places
                .find(|place| place.path == *path)
                .map(|place| place.free_bytes)
        };
        self.places.iter().filter_map(free).min().unwrap_or(8 * GIB)
    }

    /// Loaded data: the more the longer a run may take, and no more than there is room for.
    fn size_bytes(&self, machine: &MachineOffer) -> u64 {
        let wanted = match self.time_ms / MINUTE_MS {
            0..=5 => 256 * MIB,
            6..=30 => 512 * MIB,
            _ => 4 * GIB,
        };
        let room = self.free_bytes(machine) / ROOM_PER_DATA / MIB * MIB;
        wanted.min(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_engines::sql::ServerKind;
    use spindle_experiment::Experiment;

    fn machine() -> MachineOffer {
        let place = |path: &str| CandidatePlace {
            path: path.to_owned(),
            text: String::new(),
            free_bytes: 100 * GIB,
        };
        MachineOffer {
            engines: Vec::new(),
            places: vec![place("."), place("/mnt/nvme")],
            devices: vec![place("/dev/disk/by-id/nvme-X")],
            can_make_file_systems: true,
        }
    }

    fn answers(engine: DatabaseEngine, compare: &str) -> Answers {
        Answers {
            engine,
            compare: compare.to_owned(),
            places: vec![".".to_owned()],
            workload: ReadyWorkload::by_default(),
            time_ms: 10 * MINUTE_MS,
        }
    }

    #[test]
    fn every_choice_makes_a_file_that_can_be_read() {
        let machine = machine();
        for engine in [
            DatabaseEngine::Kernel,
            DatabaseEngine::Server(ServerKind::Sqlite),
            DatabaseEngine::Server(ServerKind::Postgres),
            DatabaseEngine::Server(ServerKind::MariaDb),
        ] {
            for compare in comparable(engine, &machine) {
                for workload in &READY {
                    let mut answers = answers(engine, &compare.word);
                    answers.workload = workload;
                    if compare.word == DIRECTORIES {
                        answers.places.push("/mnt/nvme".to_owned());
                    }
                    let text = answers.draft("x", &machine, 4).unwrap().text();
                    let experiment = Experiment::parse("x.toml", &text, &[])
                        .unwrap_or_else(|error| panic!("{error}\n{text}"));
                    assert!(experiment.candidates().count() >= 2, "{text}");
                }
            }
        }
    }

    #[test]
    fn a_file_says_what_it_asks_and_why() {
        insta::assert_snapshot!(
            answers(DatabaseEngine::Server(ServerKind::Sqlite), "journal")
                .draft("journal", &machine(), 4)
                .unwrap()
                .text()
        );
        insta::assert_snapshot!(
            "file_systems",
            answers(DatabaseEngine::Kernel, FILE_SYSTEMS)
                .draft("fs", &machine(), 2)
                .unwrap()
                .text()
        );
    }

    #[test]
    fn devices_on_offer_become_layouts_and_no_others_do() {
        let machine = machine();
        let device = "/dev/disk/by-id/nvme-X";
        for (compare, places, told) in [
            (DIRECTORIES, vec![".", device], "name = \"ext4 on nvme-X\""),
            ("access", vec![device], "filesystem = \"ext4\""),
            (FILE_SYSTEMS, vec![device], "share = \"fair\""),
        ] {
            let mut answers = answers(DatabaseEngine::Kernel, compare);
            answers.places = places.iter().map(ToString::to_string).collect();
            let text = answers.draft("x", &machine, 2).unwrap().text();
            let devices = format!("devices = [\"{device}\"]");
            assert!(text.contains(&devices) && text.contains(told), "{text}");
            assert!(text.contains("A run makes file systems on"), "{text}");
            let experiment = Experiment::parse("x.toml", &text, &[]);
            let experiment = experiment.unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert!(experiment.candidates().count() >= 2, "{text}");
        }
        let mut answers = answers(DatabaseEngine::Kernel, "access");
        answers.places = vec!["/dev/sdb".to_owned()];
        let text = answers.draft("x", &machine, 2).unwrap().text();
        assert!(!text.contains("devices = ["), "{text}");
    }

    #[test]
    fn data_fit_the_room_and_directories_are_two() {
        let mut machine = machine();
        machine.places[0].free_bytes = 2 * GIB;
        assert_eq!(
            answers(DatabaseEngine::Kernel, "access").size_bytes(&machine),
            170 * MIB
        );
        assert!(machine.places[0].has_room());
        machine.places[0].free_bytes = 100 * MIB;
        assert!(!machine.places[0].has_room());
        let told = answers(DatabaseEngine::Kernel, "access")
            .draft("x", &machine, 3)
            .unwrap_err()
            .to_string();
        assert!(told.contains("100 MiB free"), "{told}");
        let refused = answers(DatabaseEngine::Kernel, DIRECTORIES).draft("x", &machine, 3);
        assert!(matches!(refused, Err(AskError::OneDirectory)));
    }
}
