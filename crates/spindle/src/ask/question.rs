//! What `spindle try` asks: directories, settings with several values, and a time; everything else is chosen here, so
//! that data are larger than the cache and rounds fit the time.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::Access;
use spindle_io::real::facts;
use spindle_stats::{ROUNDS_MIN, rounds_to_find};
use spindle_text::plain::{is_harmful, is_invisible};
use spindle_text::quantity::{duration_text, size, size_text};

use super::draft::{Draft, DraftPlace, DraftSection, quoted, value_of};
use super::engines::{comparisons, has_processes, listed};
use super::error::AskError;
use super::workloads::ReadyWorkload;
use spindle_experiment::{DatabaseEngine, NAME_LENGTH_MAX};
use spindle_workload::WorkloadKind;

const MIB: u64 = 1 << 20;
/// Loaded data, unless said otherwise.
pub const SIZE_BYTES: u64 = 256 * MIB;
/// The buffer cache is this part of the data.
const DATA_PER_CACHE: u64 = 16;
/// Loaded in a second, about: by the embedded database, and by a server.
const LOADED_PER_S: (u64, u64) = (100 * MIB, 40 * MIB);
/// Copied in a second, about.
const COPIED_PER_S: u64 = 200 * MIB;
/// What a trial takes apart from warm-up and measured time, milliseconds, about: in this process, and with a server's.
const OVERHEAD_MS: (u64, u64) = (1_000, 7_000);
/// The shortest warm-up and measured time together that say anything.
const SLOT_MIN_MS: u64 = 1_300;
/// And the longest of use to a quick answer: more rounds tell more than longer ones, as long as a trial takes little
/// else (docs/decisions/0054-deciding-sooner.md).
const SLOT_MAX_MS: (u64, u64) = (3_000, 26_000);
/// Warm-up and measured time together, divided by this, is the warm-up. A server's trials are longer, and so are their
/// warm-ups.
const WARMUP_PART: (u64, u64) = (4, 5);
/// The most rounds.
pub const ROUNDS_MAX: u32 = 100;
/// How much trials differ from round to round on a calm machine: standard deviation of the logarithm of their ratio.
const USUAL_SPREAD: f64 = 0.03;

/// Keys that have an option, because others follow from them.
const OPTIONS: [(&str, &str); 4] = [
    ("workload.kind", "--workload"),
    ("database.engine", "--engine"),
    ("database.size", "--size"),
    ("plan.time", "--time"),
];

/// What is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Which database.
    pub engine: DatabaseEngine,
    /// Directories, as they were written.
    pub paths: Vec<String>,
    /// Each `KEY=A,B`.
    pub vary: Vec<String>,
    /// What clients do, unless there are scripts.
    pub workload: &'static ReadyWorkload,
    /// Scripts, each with its weight behind an `@`.
    pub scripts: Vec<String>,
    /// What makes their tables.
    pub load: Vec<String>,
    /// Their variables, each with its value.
    pub defines: Vec<(String, String)>,
    /// Sessions that work at the same time.
    pub clients: u32,
    /// Loaded data.
    pub size_bytes: u64,
    /// How long it may take, in all.
    pub time_ms: u64,
    /// Each `KEY=VALUE`.
    pub sets: Vec<String>,
}

impl Question {
    /// The file, for an experiment of this many cases.
    ///
    /// # Errors
    /// What is wrong with the question.
    pub fn draft(&self, cases: usize) -> Result<Draft, AskError> {
        let mut draft = self.frame(cases)?;
        self.write_vary(&mut draft)?;
        for set in &self.sets {
            draft.apply(set)?;
        }
        Ok(draft)
    }

    /// The file without what `--vary` and `--set` say: read with these arguments, it is the same experiment, and a
    /// mistake in them is shown where it was made.
    ///
    /// # Errors
    /// What is wrong with the question.
    pub fn frame(&self, cases: usize) -> Result<Draft, AskError> {
        let about = vec![
            "Written by `spindle try`, and what it ran. Change it as you like: docs/experiment-file.md describes every key.".to_owned(),
            format!(
                "A quick answer: {} of data, {} in all. To rely on, choose data several times larger than memory, and measure \
                 for minutes.",
                size(self.size_bytes),
                duration_text(self.time_ms)
            ),
        ];
        let mut draft = Draft::new("try", about);
        self.write_settings(&mut draft, cases);
        if self.paths.len() == 1 && self.vary.is_empty() {
            self.write_what_matters(&mut draft)?;
        }
        for path in &self.paths {
            draft.layout(&self.name_of(path), path);
        }
        for set in &self.sets {
            for (key, option) in OPTIONS {
                if set.starts_with(&format!("{key}=")) {
                    return Err(AskError::HasOption {
                        set: set.clone(),
                        option,
                    });
                }
            }
            if !self.defines.is_empty() && set.starts_with("workload.define=") {
                return Err(AskError::DefinedTwice(set.clone()));
            }
            if set.starts_with("plan.rounds=") && !set.contains("auto") {
                for key in ["max", "time"] {
                    draft.leave_out(DraftSection::Plan, key);
                }
            }
        }
        Ok(draft)
    }

    /// The name of the candidate in a directory: its path, the end of a long one, behind its number.
    fn name_of(&self, path: &str) -> String {
        let longest = match self.vary.is_empty() {
            true => NAME_LENGTH_MAX,
            // Values stand behind it.
            false => NAME_LENGTH_MAX / 2,
        };
        let visible = path.replace(is_invisible, "_");
        let length = visible.chars().count();
        if length <= longest && visible == path.trim() {
            return visible;
        }
        let number = self.paths.iter().position(|other| other == path);
        let number = number.unwrap_or_default() + 1;
        if length <= longest {
            return format!("{number}: {}", visible.trim());
        }
        let end: String = visible.chars().skip(length + 10 - longest).collect();
        format!("{number}: ...{}", end.trim())
    }

    /// Writes all but the layouts and what is varied, for an experiment of this many cases.
    pub fn write_settings(&self, draft: &mut Draft, cases: usize) {
        self.write_database(draft);
        self.write_workload(draft, cases);
        self.write_plan(draft, cases);
    }

    fn write_database(&self, draft: &mut Draft) {
        let cache_bytes = (self.size_bytes / DATA_PER_CACHE).max(MIB);
        draft.set(
            DraftSection::Database,
            "engine",
            quoted(self.engine.as_str()),
            "",
        );
        if self.data_of_workload().is_none() {
            let size = quoted(&size_text(self.size_bytes));
            draft.set(
                DraftSection::Database,
                "size",
                size,
                "loaded data: more than the caches hold",
            );
        }
        let cache = quoted(&size_text(cache_bytes));
        draft.set(
            DraftSection::Database,
            "buffer_cache",
            cache,
            "a sixteenth of the data",
        );
        if self.engine == DatabaseEngine::Kernel {
            draft.set(DraftSection::Database, "log_file_size", "\"32MiB\"", "");
        }
    }

    fn write_workload(&self, draft: &mut Draft, cases: usize) {
        let kind = match self.scripts.is_empty() {
            true => self.workload.kind,
            false => WorkloadKind::Script,
        };
        draft.set(DraftSection::Workload, "kind", quoted(kind.as_str()), "");
        for (key, files) in [("scripts", &self.scripts), ("load", &self.load)] {
            if !files.is_empty() {
                draft.set(DraftSection::Workload, key, list_of(files), "");
            }
        }
        if !self.defines.is_empty() {
            draft.set(DraftSection::Workload, "define", self.defined(), "");
        }
        if let Some((key, count)) = self.data_of_workload() {
            draft.set(
                DraftSection::Workload,
                key,
                count.to_string(),
                "how much data there is",
            );
        }
        if let Some(transactions) = self.room_for(cases) {
            let why = "transactions of a trial: more for a longer warm-up or measure";
            draft.set(
                DraftSection::Workload,
                "room_for",
                transactions.to_string(),
                why,
            );
        }
        draft.set(
            DraftSection::Workload,
            "clients",
            self.clients.to_string(),
            "",
        );
    }

    /// The variables of the scripts as a table. Of one that is given twice the last value counts, as with `pgbench`.
    fn defined(&self) -> String {
        let values: BTreeMap<&String, &String> = self
            .defines
            .iter()
            .map(|(name, value)| (name, value))
            .collect();
        let values: Vec<String> = values
            .into_iter()
            .map(|(name, value)| format!("{} = {}", quoted(name), quoted(value)))
            .collect();
        format!("{{ {} }}", values.join(", "))
    }

    /// Transactions for whose rows the embedded database makes room, so that its files go with the data and the time of
    /// a trial; `None` where none adds rows to it.
    fn room_for(&self, cases: usize) -> Option<u64> {
        if self.engine != DatabaseEngine::Kernel || !self.scripts.is_empty() {
            return None;
        }
        let per_s = self.workload.per_s_max?;
        let (warmup_ms, measure_ms) = self.times_ms(cases as u64);
        Some((warmup_ms + measure_ms) * per_s / 1_000)
    }

    /// The key by which a workload says how much data there is, and its value.
    fn data_of_workload(&self) -> Option<(&'static str, u64)> {
        let unit = self.workload.unit.filter(|_| self.scripts.is_empty());
        unit.map(|(key, bytes)| (key, (self.size_bytes / bytes).max(1)))
    }

    fn write_plan(&self, draft: &mut Draft, cases: usize) {
        let (warmup_ms, measure_ms) = self.times_ms(cases as u64);
        let plan = DraftSection::Plan;
        draft.set(plan, "warmup", quoted(&duration_text(warmup_ms)), "");
        let why = "short, so that rounds fit the time";
        draft.set(plan, "measure", quoted(&duration_text(measure_ms)), why);
        draft.set(plan, "rounds", "\"auto\"", "until every ratio is known");
        draft.set(
            plan,
            "time",
            quoted(&duration_text(self.time_ms)),
            "or until this has passed",
        );
        draft.set(plan, "max", ROUNDS_MAX.to_string(), "");
        draft.set(
            plan,
            "quiet",
            "\"2s\"",
            "the longest wait for devices at rest",
        );
    }

    /// Warm-up and measured time of a trial, so that six rounds of this many cases or more fit the time, or three.
    fn times_ms(&self, cases: u64) -> (u64, u64) {
        let is_server = has_processes(self.engine);
        let of = |(own, server): (u64, u64)| if is_server { server } else { own };
        let places = self.paths.len().max(1) as u64;
        let once_ms = self.size_bytes * 1_000 / of(LOADED_PER_S)
            + places * self.size_bytes * 1_000 / COPIED_PER_S;
        let trials_ms = self.time_ms.saturating_sub(once_ms);
        // Every trial's database is put back and read back.
        let overhead_ms = of(OVERHEAD_MS) + self.size_bytes * 1_000 / COPIED_PER_S;
        let slot_ms =
            |rounds: u64| (trials_ms / (rounds * cases.max(1))).saturating_sub(overhead_ms);
        let six = slot_ms(u64::from(ROUNDS_MIN));
        // Time that the most rounds would leave unused goes into longer ones.
        let longest_ms = slot_ms(u64::from(ROUNDS_MAX)).max(of(SLOT_MAX_MS));
        let slot_ms = if six >= SLOT_MIN_MS { six } else { slot_ms(3) };
        let slot_ms = slot_ms.clamp(SLOT_MIN_MS, longest_ms);
        let rounded = |ms: u64| match ms {
            ms if ms >= 2_000 => ms / 1_000 * 1_000,
            ms => (ms / 100 * 100).max(300),
        };
        let warmup_ms = slot_ms / of(WARMUP_PART);
        (rounded(warmup_ms), rounded(slot_ms - warmup_ms))
    }

    fn write_vary(&self, draft: &mut Draft) -> Result<(), AskError> {
        for vary in &self.vary {
            let Some((key, values)) = vary.split_once('=') else {
                return Err(AskError::NothingVaried(vary.clone()));
            };
            if key.trim().trim_matches(['"', '\'']) == "path" {
                return Err(AskError::PathsVaried(vary.clone()));
            }
            let values = match values.trim_start().starts_with('[') {
                true => values.to_owned(),
                false => {
                    let parts = spindle_experiment::parts(values);
                    let values: Vec<String> =
                        parts.into_iter().map(|(_, part)| value_of(part)).collect();
                    format!("[{}]", values.join(", "))
                }
            };
            draft.set(DraftSection::Vary, key.trim(), values, "");
        }
        Ok(())
    }

    /// The argument that says what stands at a place of the file; `None` where no single one does.
    pub fn argument_of(&self, place: &DraftPlace) -> Option<String> {
        let (section, key) = match place {
            DraftPlace::Layout(number) => return self.paths.get(*number).cloned(),
            DraftPlace::Key(section, key) => (section, key.as_str()),
        };
        let files = |option: &str, files: &[String]| {
            let files = files.iter().map(|file| format!("--{option} {file}"));
            files.collect::<Vec<_>>().join(" ")
        };
        let is_script = !self.scripts.is_empty();
        match (section, key) {
            (DraftSection::Database, "engine") => Some(format!("--engine {}", self.engine)),
            (DraftSection::Database, "size" | "buffer_cache")
            | (DraftSection::Workload, "scale" | "warehouses") => {
                Some(format!("--size {}", size_text(self.size_bytes)))
            }
            (DraftSection::Workload, "kind" | "scripts") if is_script => {
                Some(files("script", &self.scripts))
            }
            (DraftSection::Workload, "kind") => Some(format!("--workload {}", self.workload)),
            (DraftSection::Workload, "load") => Some(files("load", &self.load)),
            (DraftSection::Workload, "define") => {
                let defines = self.defines.iter();
                let defines = defines.map(|(name, value)| format!("-D {name}={value}"));
                Some(defines.collect::<Vec<_>>().join(" "))
            }
            (DraftSection::Workload, "clients") => Some(format!("--clients {}", self.clients)),
            (DraftSection::Plan, _) | (DraftSection::Workload, "room_for") => {
                Some(format!("--time {}", duration_text(self.time_ms)))
            }
            _ => None,
        }
    }

    /// What is compared in one directory, where nothing else is asked.
    fn write_what_matters(&self, draft: &mut Draft) -> Result<(), AskError> {
        let (key, values) = comparisons(self.engine)[0].settings[0];
        if has_processes(self.engine) {
            let vary = format!("{key}={}", values.join(","));
            return Err(AskError::NothingToCompare { vary });
        }
        draft.set(DraftSection::Vary, key, listed(values), "");
        Ok(())
    }

    /// Looks whether the directories can be taken.
    ///
    /// # Errors
    /// The first that cannot, with what to do.
    pub fn check_paths(&self) -> Result<(), AskError> {
        let mut known: Vec<(PlaceId, &String)> = Vec::new();
        for path in &self.paths {
            known.push((check_path(path)?, path));
        }
        check_apart(&known)
    }

    /// Directories that lie on one file system, in words; `None` when each has its own, or settings are compared.
    pub fn shared_file_system(&self) -> Option<String> {
        let device = |path: &String| {
            let found = facts::file_system(Path::new(path)).ok()?;
            Some((found.device_major, found.device_minor))
        };
        let devices: Vec<_> = self.paths.iter().map(device).collect();
        let first = devices.first()?;
        let is_shared =
            devices.len() > 1 && first.is_some() && devices.iter().all(|other| other == first);
        is_shared.then(|| {
            format!(
                "{} are on the same file system; expect no difference",
                self.paths.join(" and ")
            )
        })
    }
}

/// What a place is, under whichever name: device and number of its directory. Links and bind mounts lead to the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceId {
    device: u64,
    inode: u64,
}

impl PlaceId {
    /// Of a file or directory.
    pub fn of(found: &Metadata) -> PlaceId {
        PlaceId {
            device: found.dev(),
            inode: found.ino(),
        }
    }
}

/// Refuses one place under two names, or twice under one.
///
/// # Errors
/// Both names.
pub fn check_apart(places: &[(PlaceId, &String)]) -> Result<(), AskError> {
    for (index, (place, path)) in places.iter().enumerate() {
        let mut earlier = places[..index].iter();
        if let Some((_, other)) = earlier.find(|(other, _)| other == place) {
            return Err(match other == path {
                true => AskError::Twice((*path).clone()),
                false => AskError::OnePlace {
                    other: (*other).clone(),
                    path: (*path).clone(),
                },
            });
        }
    }
    Ok(())
}

/// The directory that a path leads to; or why no database can be put there.
///
/// # Errors
/// The reason, with what to do.
pub fn check_path(path: &str) -> Result<PlaceId, AskError> {
    if path.contains(is_harmful) {
        return Err(AskError::NotPlain(path.to_owned()));
    }
    let name = || path.to_owned();
    let found = std::fs::metadata(path).map_err(|source| AskError::NotThere {
        path: name(),
        source,
    })?;
    if found.file_type().is_block_device() {
        return Err(AskError::IsDevice(name()));
    }
    if !found.is_dir() {
        return Err(AskError::NotADirectory(name()));
    }
    if let Err(error) = rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK) {
        return Err(AskError::NotWritable {
            path: name(),
            source: error.into(),
        });
    }
    if let Ok(on) = facts::file_system(Path::new(path))
        && on.free_bytes == 0
    {
        return Err(AskError::Full {
            path: name(),
            kind: on.type_name.to_string(),
        });
    }
    Ok(PlaceId::of(&found))
}

/// The smallest difference, per cent, that this many rounds are likely to find, where trials differ as they do on a
/// calm machine.
pub fn found_percent(rounds: u32) -> u32 {
    let finds = |percent: &u32| {
        let needed = rounds_to_find(f64::from(*percent) / 100.0, USUAL_SPREAD);
        needed.is_some_and(|needed| needed <= rounds)
    };
    (1..100).find(finds).unwrap_or(100)
}

/// Files as a list in TOML, by paths that are right wherever the experiment is kept.
fn list_of(files: &[String]) -> String {
    let absolute = |file: &String| match std::path::absolute(file) {
        Ok(path) => quoted(&path.display().to_string()),
        Err(_) => quoted(file),
    };
    let files: Vec<String> = files.iter().map(absolute).collect();
    format!("[{}]", files.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_engines::sql::ServerKind;
    use spindle_experiment::{Changes, Experiment};
    use spindle_workload::Transactions;

    fn question(paths: &[&str], engine: DatabaseEngine) -> Question {
        Question {
            engine,
            paths: paths.iter().map(ToString::to_string).collect(),
            vary: Vec::new(),
            workload: ReadyWorkload::by_default(),
            scripts: Vec::new(),
            load: Vec::new(),
            defines: Vec::new(),
            clients: 8,
            size_bytes: SIZE_BYTES,
            time_ms: 120_000,
            sets: Vec::new(),
        }
    }

    fn read(question: &Question) -> Experiment {
        read_for(question, 2)
    }

    fn read_for(question: &Question, cases: usize) -> Experiment {
        let text = question.draft(cases).unwrap().text();
        match Experiment::from_text(Path::new("try.toml"), &text, Changes::default(), false) {
            Ok(experiment) => experiment,
            Err(error) => panic!("{error} at {:?}\n{text}", error.place()),
        }
    }

    #[test]
    fn what_is_saved_says_all_that_was_chosen() {
        let mut asked = question(
            &["/mnt/nvme", "/srv/data"],
            DatabaseEngine::Server(ServerKind::Postgres),
        );
        asked.vary = vec!["settings.full_page_writes=on,off".to_owned()];
        insta::assert_snapshot!(asked.draft(4).unwrap().text());
        assert_eq!(read(&asked).layouts.len(), 4);
    }

    #[test]
    fn variables_of_scripts_are_defined_and_the_last_value_counts() {
        let place = tempfile::tempdir().unwrap();
        let script = place.path().join("x.sql");
        std::fs::write(&script, "select :scale, :blue;").unwrap();
        let mut asked = question(
            &["/mnt/a", "/mnt/b"],
            DatabaseEngine::Server(ServerKind::Sqlite),
        );
        asked.scripts = vec![script.display().to_string()];
        let defines = [("scale", "7"), ("blue", "the \"sky\""), ("scale", "10")];
        asked.defines = defines
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
        let Transactions::Script(script) = read(&asked).workload.transactions else {
            panic!("it has scripts");
        };
        let defined: Vec<(&str, &str)> = script
            .define
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(defined, [("blue", "the \"sky\""), ("scale", "10")]);
        asked.sets = vec!["workload.define={ scale = 3 }".to_owned()];
        let told = asked.draft(2).unwrap_err().to_string();
        assert!(told.contains("-D NAME=VALUE"), "{told}");
    }

    #[test]
    fn one_directory_compares_what_matters_most() {
        let kernel = read(&question(&["."], DatabaseEngine::Kernel));
        let names: Vec<&str> = kernel
            .layouts
            .iter()
            .map(|layout| layout.name.as_str())
            .collect();
        assert_eq!(names, ["buffered sync", "direct sync", "direct async"]);
        assert_eq!(
            read(&question(
                &["."],
                DatabaseEngine::Server(ServerKind::Sqlite)
            ))
            .layouts
            .len(),
            2
        );
        let refused = question(&["."], DatabaseEngine::Server(ServerKind::Postgres))
            .draft(1)
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("--vary settings.full_page_writes=on,off"),
            "{refused}"
        );
    }

    #[test]
    fn every_workload_has_more_data_than_cache() {
        for (engine, workload) in [
            (DatabaseEngine::Kernel, "slob"),
            (DatabaseEngine::Server(ServerKind::Sqlite), "tpcb"),
            (DatabaseEngine::Server(ServerKind::Postgres), "tpcc"),
        ] {
            let mut asked = question(&["/a", "/b"], engine);
            asked.workload = ReadyWorkload::of_word(workload).unwrap();
            for size_bytes in [SIZE_BYTES, 4 << 30] {
                asked.size_bytes = size_bytes;
                let database = read(&asked).database;
                let memory = database.spec.memory().expect("Spindle starts it");
                assert!(
                    database.size_bytes > 4 * memory.buffer_cache_bytes,
                    "{workload}"
                );
            }
        }
    }

    #[test]
    fn the_embedded_database_has_room_for_the_transactions_of_a_trial_and_not_for_many_more() {
        for workload in ["tpcb", "tpcc"] {
            let mut asked = question(&["/a", "/b"], DatabaseEngine::Kernel);
            asked.workload = ReadyWorkload::of_word(workload).unwrap();
            let read = read(&asked);
            let spindle_experiment::DatabaseSpec::Kernel(kernel) = &read.database.spec else {
                panic!("the embedded database")
            };
            let rows = read.workload.of_rows(read.database.size_bytes, kernel, 0);
            let shape = kernel.shape(&*rows, 8, 1);
            let data_bytes: u64 = shape.data_bytes.iter().sum();
            assert!(
                data_bytes < 2 * asked.size_bytes,
                "{workload}: {data_bytes}"
            );
            let (warmup_ms, measure_ms) = asked.times_ms(2);
            let room = asked.room_for(2).expect("rows are added");
            assert!(room >= (warmup_ms + measure_ms) * 20, "{workload}: {room}");
        }
        let mut asked = question(&["/a"], DatabaseEngine::Kernel);
        assert_eq!(asked.room_for(2), None);
        asked.engine = DatabaseEngine::Server(ServerKind::Postgres);
        asked.workload = ReadyWorkload::of_word("tpcc").unwrap();
        assert_eq!(asked.room_for(2), None, "it grows by itself");
    }

    #[test]
    fn trials_fit_the_time() {
        for (paths, cases, time_ms) in [
            (1, 2, 60_000),
            (1, 3, 120_000),
            (2, 6, 120_000),
            (2, 4, 3_600_000),
        ] {
            let mut asked = question(&["/a", "/b"][..paths], DatabaseEngine::Kernel);
            asked.time_ms = time_ms;
            let (warmup_ms, measure_ms) = asked.times_ms(cases);
            assert!(
                measure_ms >= 900 && warmup_ms >= 300,
                "{warmup_ms} {measure_ms}"
            );
            let three_rounds = 3 * cases * (warmup_ms + measure_ms + OVERHEAD_MS.0 + 1_280);
            assert!(three_rounds <= time_ms, "{cases} cases: {three_rounds}");
        }
    }

    #[test]
    fn more_time_is_more_rounds() {
        let times_ms = |engine: DatabaseEngine, time_ms: u64| {
            let mut asked = question(&["/a", "/b"], engine);
            asked.time_ms = time_ms;
            asked.times_ms(2)
        };
        assert_eq!(times_ms(DatabaseEngine::Kernel, 120_000), (700, 2_000));
        assert_eq!(times_ms(DatabaseEngine::Kernel, 600_000), (700, 2_000));
        assert_eq!(times_ms(DatabaseEngine::Kernel, 3_600_000), (3_000, 11_000));
        // A server takes longer to start than a short trial lasts.
        let server = DatabaseEngine::Server(ServerKind::Postgres);
        assert!(times_ms(server, 3_600_000) > times_ms(server, 120_000));
    }

    #[test]
    fn devices_and_files_are_refused() {
        let check = |paths: &[&str]| question(paths, DatabaseEngine::Kernel).check_paths();
        let told = |path: &str| check(&[path]).unwrap_err().to_string();
        assert!(told("/dev/null").contains("not a directory"));
        assert!(told("/no/such").contains("Name an existing directory"));
        assert!(matches!(check(&[".", "."]), Err(AskError::Twice(_))));
        assert!(check(&["."]).is_ok());
        assert!(
            question(&[".", "src"], DatabaseEngine::Kernel)
                .shared_file_system()
                .is_some()
        );
    }

    #[test]
    fn one_directory_under_two_names_is_refused() {
        let told = |paths: &[&str]| question(paths, DatabaseEngine::Kernel).check_paths();
        let scratch = tempfile::tempdir().unwrap();
        let link = scratch.path().join("link");
        let here = std::env::current_dir().unwrap().join("src");
        std::os::unix::fs::symlink(&here, &link).unwrap();
        let (here, link) = (here.to_str().unwrap(), link.to_str().unwrap());
        for other in ["./src/", here, link] {
            let refused = told(&["src", other]).unwrap_err();
            assert!(matches!(refused, AskError::OnePlace { .. }), "{other}");
            assert!(refused.to_string().contains("noise_check"), "{refused}");
        }
        assert!(told(&["src", "tests"]).is_ok());
        assert!(told(&["/proc"]).is_err());
    }

    #[test]
    fn directories_are_arguments_and_nothing_takes_their_place() {
        let mut asked = question(&["."], DatabaseEngine::Kernel);
        for vary in ["path=/a,/b", "\"path\"=/a,/b", " path = /a,/b"] {
            asked.vary = vec![vary.to_owned()];
            let refused = asked.draft(2).unwrap_err();
            assert!(matches!(refused, AskError::PathsVaried(_)), "{vary}");
        }
    }

    #[test]
    fn a_long_path_and_one_with_odd_characters_are_places_like_others() {
        let long = format!("/{}/end", "long/".repeat(40));
        let asked = question(
            &["/a", &long, "/zero\u{200b}width", "/b "],
            DatabaseEngine::Kernel,
        );
        let names: Vec<String> = read(&asked).layouts.into_iter().map(|of| of.name).collect();
        assert!(
            names[1].starts_with("2: ...") && names[1].ends_with("long//end"),
            "{names:?}"
        );
        assert!(names[1].chars().count() <= NAME_LENGTH_MAX, "{names:?}");
        assert_eq!(names[2..], ["3: /zero_width", "4: /b"]);
        let refused = question(&["/a\n/b"], DatabaseEngine::Kernel).check_paths();
        assert!(matches!(refused, Err(AskError::NotPlain(_))));
    }

    #[test]
    fn what_is_saved_is_what_is_read() {
        let mut asked = question(&["."], DatabaseEngine::Server(ServerKind::Sqlite));
        asked.vary = vec![
            "settings.journal_mode=wal,delete".to_owned(),
            "settings.synchronous=[\"full\", \"normal\"]".to_owned(),
        ];
        asked.sets = vec![
            "plan.rounds=4".to_owned(),
            "workload.clients=[1, 2]".to_owned(),
        ];
        let changes = Changes {
            sets: &asked.sets,
            vary: &asked.vary,
            ..Changes::default()
        };
        let frame = asked.frame(4).unwrap().text();
        let read_so = Experiment::from_text(Path::new("try.toml"), &frame, changes, false).unwrap();
        assert_eq!(read_so, read_for(&asked, 4));
        asked.sets = vec!["workload.kind=tpcc".to_owned()];
        let told = asked.draft(4).unwrap_err().to_string();
        assert!(told.contains("--workload"), "{told}");
    }

    #[test]
    fn more_rounds_find_smaller_differences() {
        assert!(found_percent(3) > found_percent(6) && found_percent(6) > found_percent(20));
    }
}
