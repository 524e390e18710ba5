//! Every line of the table is found by some case, every combination of settings has one promise, and the document shows
//! what the table says.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use spindle_kernel::{Commit, InstanceSettings, TornBlocks};
use spindle_system::beneath::{Beneath, DeviceLayer, FileSystemLayer, Layer, WriteCache};

use super::Keeps::{AllButTheLast, EveryCommit, MayBeDamaged, Nothing, Unknown};
use super::storage::Between;
use super::*;

fn settings(pairs: &[(&str, &str)]) -> SettingsInForce {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn device(name: &str, cache: Option<WriteCache>) -> DeviceLayer {
    DeviceLayer {
        name: name.to_owned(),
        number: None,
        partition: None,
        backing_file: None,
        write_cache: cache,
        hardware_cache: None,
        is_scsi_debug: false,
        atomic_write_bytes: 0,
        is_flushed: true,
        is_lowest: true,
    }
}

fn file_system(kind: &str, options: &str) -> FileSystemLayer {
    FileSystemLayer {
        kind: kind.to_owned(),
        mount_point: "/data".into(),
        options: options.split(',').map(str::to_owned).collect(),
        has_journal: Some(true),
        commit_interval_ms: Some(5_000),
        is_flushed: true,
        is_lowest: true,
    }
}

fn on(layers: Vec<Layer>) -> CommitStorage {
    CommitStorage {
        places: vec![Beneath {
            layers,
            write_back_ms: Some(35_000),
        }],
        between: Vec::new(),
    }
}

/// ext4 with a journal on a disk that obeys flushes.
fn good() -> CommitStorage {
    on(vec![
        Layer::FileSystem(file_system("ext4", "rw")),
        Layer::Device(device("sda", Some(WriteCache::WriteBack))),
    ])
}

fn with_device(change: impl FnOnce(&mut DeviceLayer)) -> CommitStorage {
    let mut device = device("sda", Some(WriteCache::WriteBack));
    change(&mut device);
    on(vec![
        Layer::FileSystem(file_system("ext4", "rw")),
        Layer::Device(device),
    ])
}

fn zfs() -> CommitStorage {
    on(vec![Layer::FileSystem(file_system("zfs", "rw"))])
}

const POSTGRES: [(&str, &[&str]); 4] = [
    ("fsync", &["on", "off", "0", "false", "perhaps"]),
    (
        "synchronous_commit",
        &[
            "on",
            "off",
            "local",
            "remote_write",
            "remote_apply",
            "no",
            "perhaps",
        ],
    ),
    ("full_page_writes", &["on", "off", "perhaps"]),
    (
        "wal_sync_method",
        &[
            "fdatasync",
            "fsync",
            "open_sync",
            "open_datasync",
            "perhaps",
        ],
    ),
];

const SQLITE: [(&str, &[&str]); 2] = [
    (
        "journal_mode",
        &[
            "wal", "delete", "truncate", "persist", "memory", "off", "perhaps",
        ],
    ),
    (
        "synchronous",
        &[
            "full", "2", "extra", "3", "normal", "1", "off", "0", "perhaps",
        ],
    ),
];

const INNODB: [(&str, &[&str]); 7] = [
    (
        "innodb_flush_log_at_trx_commit",
        &["1", "3", "0", "2", "perhaps"],
    ),
    (
        "innodb_doublewrite",
        &[
            "on",
            "1",
            "off",
            "0",
            "detect_and_recover",
            "detect_only",
            "perhaps",
        ],
    ),
    (
        "innodb_flush_method",
        &[
            "fsync",
            "o_dsync",
            "o_direct",
            "o_direct_no_fsync",
            "nosync",
            "littlesync",
            "perhaps",
        ],
    ),
    ("log_bin", &["off", "on", "perhaps"]),
    ("sync_binlog", &["1", "0", "100", "perhaps"]),
    ("default_storage_engine", &["innodb", "myisam"]),
    ("innodb_redo_log_enabled", &["on", "off"]),
];

/// Every combination of values; the first of each is the strongest.
fn combinations(of: &[(&str, &[&str])]) -> Vec<SettingsInForce> {
    let mut all = vec![SettingsInForce::new()];
    for (name, values) in of {
        let mut next = Vec::new();
        for settings in &all {
            for value in *values {
                let mut settings: SettingsInForce = settings.clone();
                settings.insert((*name).to_owned(), (*value).to_owned());
                next.push(settings);
            }
        }
        all = next;
    }
    all
}

fn storages() -> Vec<CommitStorage> {
    let with_file_system = |of: FileSystemLayer| {
        on(vec![
            Layer::FileSystem(of),
            Layer::Device(device("sda", Some(WriteCache::WriteBack))),
        ])
    };
    let mut without_journal = file_system("ext4", "rw");
    without_journal.has_journal = Some(false);
    let mut not_flushed = file_system("ext4", "rw");
    not_flushed.is_flushed = false;
    let mut all = vec![
        good(),
        zfs(),
        CommitStorage::default(),
        with_device(|device| device.atomic_write_bytes = 16384),
        with_device(|device| device.write_cache = Some(WriteCache::WriteThrough)),
        with_device(|device| device.write_cache = None),
        with_device(|device| device.is_flushed = false),
        with_device(|device| {
            device.write_cache = Some(WriteCache::WriteThrough);
            device.hardware_cache = Some(WriteCache::WriteBack);
        }),
        on(vec![Layer::Hidden("nobody knows".to_owned())]),
        with_file_system(without_journal),
        with_file_system(not_flushed),
    ];
    for name in ["zram0", "ram1", "nullb0", "nbd0"] {
        all.push(on(vec![Layer::Device(device(
            name,
            Some(WriteCache::WriteThrough),
        ))]));
    }
    for (kind, options) in [
        ("ext4", "rw,nobarrier"),
        ("ext4", "rw,barrier=0"),
        ("ext4", "rw,data=writeback"),
        ("ext2", "rw"),
        ("xfs", "rw"),
        ("xfs", "rw,nobarrier"),
        ("btrfs", "rw"),
        ("btrfs", "rw,nobarrier"),
        ("f2fs", "rw"),
        ("f2fs", "rw,fsync_mode=nobarrier"),
        ("f2fs", "rw,checkpoint=disable"),
        ("tmpfs", "rw"),
        ("overlay", "rw"),
        ("overlay", "rw,volatile"),
        ("nfs4", "rw"),
        ("fuse.sshfs", "rw"),
        ("vfat", "rw"),
    ] {
        all.push(with_file_system(file_system(kind, options)));
    }
    for between in [
        Between::Library("/usr/lib/libeatmydata.so.1".into()),
        Between::Library("/opt/libquick.so".into()),
        Between::Hidden(7),
    ] {
        all.push(CommitStorage {
            between: vec![between],
            ..good()
        });
    }
    all
}

/// The lines of the table that a promise was made of.
fn lines_of(promise: &Promise) -> Vec<&'static PromiseLine> {
    let lines = promise.reasons.iter().map(|reason| {
        let is_of = |line: &&&PromiseLine| {
            (line.keeps, line.effect, line.source)
                == (reason.keeps, &*reason.effect, &*reason.source)
        };
        let found: Vec<&&PromiseLine> = TABLE.iter().filter(is_of).collect();
        assert_eq!(found.len(), 1, "{reason:?} is of one line");
        *found[0]
    });
    lines.collect()
}

fn kernels() -> Vec<crate::kernel::KernelSettings> {
    let mut all = Vec::new();
    for commit in [Commit::Wait, Commit::NoWait] {
        for torn_blocks in [
            TornBlocks::Images,
            TornBlocks::DoubleWrite,
            TornBlocks::Atomic,
        ] {
            all.push(crate::kernel::KernelSettings {
                instance: InstanceSettings {
                    commit,
                    torn_blocks,
                    ..InstanceSettings::default()
                },
                ..crate::kernel::KernelSettings::default()
            });
        }
    }
    all
}

#[test]
fn every_line_is_found_by_a_case_and_every_case_has_one_promise() {
    let mut found = BTreeSet::new();
    let mut see = |promise: Promise| {
        let lines = lines_of(&promise);
        let weakest = lines.iter().map(|line| line.keeps).max();
        assert_eq!(Some(promise.keeps), weakest, "{promise:?}");
        found.extend(lines.iter().map(|line| (line.subject, line.when)));
    };
    for storage in storages() {
        for settings in combinations(&SQLITE) {
            see(sqlite::promise(&settings, &storage));
        }
        for settings in combinations(&POSTGRES) {
            see(postgres::promise(&settings, &storage));
        }
        for settings in kernels() {
            see(kernel::promise(&settings, &storage));
        }
    }
    for storage in storages().iter().take(6) {
        for settings in combinations(&INNODB) {
            see(innodb::promise(&settings, storage));
        }
    }
    let engines = ["innodb", "memory", "myisam", "aria", "rocksdb", ""];
    for tables in engines.map(|engine| [in_engine(engine)]) {
        let of_tables = innodb::of_tables(Some(&tables));
        see(innodb::promise(&best_innodb(), &good()).with(of_tables));
    }
    let unlogged = postgres::of_tables(Some(&["hits".to_owned()]));
    see(postgres::promise(&combinations(&POSTGRES)[0], &good()).with(unlogged));
    let never: Vec<_> = TABLE
        .iter()
        .filter(|line| !found.contains(&(line.subject, line.when)))
        .map(|line| line.when)
        .collect();
    assert!(never.is_empty(), "no case is of {never:?}");
}

#[test]
fn tables_that_are_told_decide_and_not_the_engine_that_others_would_have() {
    let mut settings = best_innodb();
    settings.insert("default_storage_engine".to_owned(), "myisam".to_owned());
    let of = |engine| innodb::of_tables(Some(&[in_engine(engine)]));
    let beside = || innodb::promise_beside_tables(&settings, &good());
    assert_eq!(beside().with(of("innodb")).keeps, EveryCommit);
    assert_eq!(beside().with(of("myisam")).keeps, MayBeDamaged);
    let unknown = innodb::promise(&settings, &good());
    assert_eq!(unknown.keeps, MayBeDamaged);
}

/// What is weaker in one setting is as weak in every combination with it, and nothing makes it stronger.
#[test]
fn the_weakest_setting_decides() {
    let best: SettingsInForce = POSTGRES
        .iter()
        .map(|(name, values)| ((*name).to_owned(), values[0].to_owned()))
        .collect();
    let alone = |name: &str, value: &str| {
        let mut settings = best.clone();
        settings.insert(name.to_owned(), value.to_owned());
        postgres::promise(&settings, &good()).keeps
    };
    for settings in combinations(&POSTGRES) {
        let weakest = settings
            .iter()
            .map(|(name, value)| alone(name, value))
            .max();
        let keeps = postgres::promise(&settings, &good()).keeps;
        assert_eq!(Some(keeps), weakest, "{settings:?}");
    }
}

#[test]
fn a_library_that_answers_for_the_kernel_weakens_every_engine() {
    let between = |path: &str| CommitStorage {
        between: vec![Between::Library(path.into())],
        ..good()
    };
    let settings = crate::kernel::KernelSettings::default();
    let keeps = |storage: &CommitStorage| kernel::promise(&settings, storage).keeps;
    assert_eq!(keeps(&good()), EveryCommit);
    assert_eq!(keeps(&between("/a/libeatmydata.so")), MayBeDamaged);
    let quick = kernel::promise(&settings, &between("/a/libquick.so"));
    assert_eq!(quick.keeps, Unknown);
    assert_eq!(quick.reasons[0].what, "/a/libquick.so");
}

#[test]
fn storage_only_ever_weakens() {
    for settings in combinations(&SQLITE) {
        let on_good = sqlite::promise(&settings, &good()).keeps;
        for storage in storages() {
            let keeps = sqlite::promise(&settings, &storage).keeps;
            assert!(
                keeps >= on_good && keeps >= storage.promise().keeps,
                "{settings:?}"
            );
        }
    }
}

#[test]
fn planted_weaker_settings_are_named() {
    let full = [("journal_mode", "wal"), ("synchronous", "full")];
    let normal = [("journal_mode", "wal"), ("synchronous", "normal")];
    let promise = sqlite::promise(&settings(&full), &good());
    assert_eq!((promise.keeps, promise.back_ms), (EveryCommit, None));
    let promise = sqlite::promise(&settings(&normal), &good());
    // Dirty pages for up to 35 s, and then the journal's 5 s.
    assert_eq!(
        (promise.keeps, promise.back_ms),
        (AllButTheLast, Some(40_000))
    );
    assert_eq!(
        promise.reasons[0].what,
        "journal_mode = wal, synchronous = normal"
    );
    let delete = [("journal_mode", "delete"), ("synchronous", "full")];
    let promise = sqlite::promise(&settings(&delete), &good());
    assert_eq!(
        (promise.keeps, promise.back_ms),
        (AllButTheLast, Some(5_000))
    );

    let mut postgres_off: SettingsInForce = combinations(&POSTGRES)[0].clone();
    postgres_off.insert("synchronous_commit".to_owned(), "off".to_owned());
    for (delay, back_ms) in [
        ("200ms", Some(600)),
        ("10", Some(30)),
        ("1s", Some(3_000)),
        ("?", None),
    ] {
        postgres_off.insert("wal_writer_delay".to_owned(), delay.to_owned());
        let promise = postgres::promise(&postgres_off, &good());
        assert_eq!(
            (promise.keeps, promise.back_ms),
            (AllButTheLast, back_ms),
            "{delay}"
        );
    }

    let mut innodb: SettingsInForce = combinations(&INNODB)[0].clone();
    assert_eq!(innodb::promise(&innodb, &good()).keeps, EveryCommit);
    innodb.insert("innodb_flush_log_at_trx_commit".to_owned(), "2".to_owned());
    assert_eq!(innodb::promise(&innodb, &good()).back_ms, Some(1_000));
    innodb.insert("innodb_flush_log_at_timeout".to_owned(), "10".to_owned());
    assert_eq!(innodb::promise(&innodb, &good()).back_ms, Some(10_000));
    innodb.insert("innodb_flush_log_at_trx_commit".to_owned(), "1".to_owned());
    innodb.insert("log_bin".to_owned(), "on".to_owned());
    innodb.insert("sync_binlog".to_owned(), "0".to_owned());
    assert_eq!(innodb::promise(&innodb, &good()).keeps, AllButTheLast);
    innodb.insert("innodb_flush_log_at_trx_commit".to_owned(), "3".to_owned());
    assert_eq!(innodb::promise(&innodb, &good()).keeps, EveryCommit);
}

fn best_innodb() -> SettingsInForce {
    combinations(&INNODB)[0].clone()
}

fn in_engine(engine: &str) -> innodb::TableIn {
    innodb::TableIn {
        name: format!("t_{engine}"),
        engine: engine.to_owned(),
    }
}

#[test]
fn tables_that_do_not_survive_are_named() {
    let postgres = |unlogged: Option<&[String]>| {
        let best = &combinations(&POSTGRES)[0];
        postgres::promise(best, &good()).with(postgres::of_tables(unlogged))
    };
    assert_eq!(postgres(Some(&[])).keeps, EveryCommit);
    assert_eq!(postgres(None).keeps, Unknown);
    let names = ["a", "b", "c", "d"].map(str::to_owned);
    let promise = postgres(Some(&names));
    assert_eq!(promise.keeps, Nothing);
    assert_eq!(promise.reasons[0].what, "unlogged: a, b, c and 1 more");

    let mariadb = |tables: Option<&[innodb::TableIn]>| {
        innodb::promise(&best_innodb(), &good()).with(innodb::of_tables(tables))
    };
    assert_eq!(mariadb(None).keeps, Unknown);
    for (engine, keeps) in [
        ("innodb", EveryCommit),
        ("memory", Nothing),
        ("myisam", MayBeDamaged),
        ("aria", MayBeDamaged),
        ("rocksdb", Unknown),
        ("", Unknown),
    ] {
        let promise = mariadb(Some(&[in_engine("innodb"), in_engine(engine)]));
        assert_eq!(promise.keeps, keeps, "{engine}");
    }
    let promise = mariadb(Some(&[in_engine("myisam")]));
    assert_eq!(promise.reasons[0].what, "engine = myisam: t_myisam");
}

/// A known weakness says more than something that is not known, and memory keeps nothing whatever is set.
#[test]
fn what_is_known_to_be_lost_outweighs_what_is_not_known() {
    let hidden = on(vec![Layer::Hidden("nobody knows".to_owned())]);
    let of = |synchronous: &str, storage: &CommitStorage| {
        let pragmas = settings(&[("journal_mode", "wal"), ("synchronous", synchronous)]);
        sqlite::promise(&pragmas, storage).keeps
    };
    assert_eq!(of("full", &hidden), Unknown);
    assert_eq!(of("normal", &hidden), AllButTheLast);
    assert_eq!(of("off", &hidden), MayBeDamaged);
    let memory = on(vec![Layer::FileSystem(file_system("tmpfs", "rw"))]);
    assert_eq!(of("full", &memory), Nothing);
}

#[test]
fn a_server_that_tells_nothing_promises_nothing() {
    let nothing = SettingsInForce::new();
    assert_eq!(postgres::promise(&nothing, &good()).keeps, Unknown);
    assert_eq!(innodb::promise(&nothing, &good()).keeps, Unknown);
    assert_eq!(sqlite::promise(&nothing, &good()).keeps, Unknown);
}

/// The table of `docs/durability.md`.
fn document() -> String {
    let mut text = String::new();
    let mut subject = None;
    for line in TABLE {
        if subject != Some(line.subject) {
            subject = Some(line.subject);
            let title = line.subject.title();
            let _ = write!(
                text,
                "\n### {title}\n\n| when | keeps | because | source |\n| --- | --- | --- | --- |\n"
            );
        }
        let keeps = match line.keeps {
            EveryCommit => "every commit",
            Unknown => "unknown",
            AllButTheLast => "all but the last commits",
            MayBeDamaged => "may be damaged",
            Nothing => "nothing",
        };
        let source = match line.source.starts_with("https://") {
            true => format!("<{}>", line.source),
            false => format!("`{}`", line.source),
        };
        let _ = writeln!(
            text,
            "| {} | {keeps} | {} | {source} |",
            line.when, line.effect
        );
    }
    text
}

/// After a change of the table: `SPINDLE_WRITE_DOCS=1 cargo test -p spindle-engines promise`.
#[test]
fn the_document_shows_the_table() {
    const BEGIN: &str =
        "<!-- the table, as crates/spindle-engines/src/promise/table.rs has it -->\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/durability.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, shown) = text
        .split_once(BEGIN)
        .expect("the document has a place for the table");
    if std::env::var_os("SPINDLE_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{}", document())).unwrap();
        return;
    }
    assert_eq!(
        shown,
        document(),
        "run SPINDLE_WRITE_DOCS=1 cargo test -p spindle-engines promise"
    );
}

/// Without a journal a directory is written back as pages of files are.
#[test]
fn without_a_journal_a_deleted_journal_may_come_back_for_longer() {
    let mut file_system = file_system("ext4", "rw");
    file_system.has_journal = Some(false);
    file_system.commit_interval_ms = None;
    let storage = on(vec![Layer::FileSystem(file_system)]);
    assert_eq!(storage.commit_interval_ms(), Some(35_000));
    assert_eq!(good().commit_interval_ms(), Some(5_000));
}
