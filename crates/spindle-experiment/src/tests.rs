//! Right experiment files: defaults, overrides, `--set`, the round trip through JSON; and the reference in `docs/`,
//! whose keys and defaults must be the program's. Wrong files are in `tests/experiment_errors.rs`.

use std::collections::BTreeMap;

use spindle_engines::kernel::InstanceSettings;
use spindle_engines::spec::FileSettings;
use spindle_layout::spec::{DeviceSharing, DeviceSpec, FileSystemSpec, LayoutKind, VolumeSpec};
use spindle_text::section::{Listing, Section};

use std::fs;

use super::*;
use spindle_text::quantity::{GIB, KIB, MIB};
use spindle_workload::OltpMixSettings;

/// The shortest experiment.
pub(crate) const ONE_LAYOUT: &str = "[[layout]]\nname = \"only\"\n";
const REFERENCE: &str = include_str!("../../../docs/experiment-file.md");
const QUICKSTART: &str = include_str!("../../../examples/quickstart.toml");

pub(crate) fn parse(text: &str) -> Experiment {
    parse_with(text, &[])
}

fn parse_with(text: &str, sets: &[&str]) -> Experiment {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    match Experiment::parse("test.toml", text, &sets) {
        Ok(experiment) => experiment,
        Err(error) => panic!("{error} at {:?}\n{text}", error.place()),
    }
}

fn kernel(database: &Database) -> &KernelSpec {
    match &database.spec {
        DatabaseSpec::Kernel(kernel) => kernel,
        other => panic!("it is the embedded database, not {other:?}"),
    }
}

pub(crate) fn error_of(text: &str, sets: &[&str]) -> ExperimentError {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    Experiment::parse("test.toml", text, &sets).expect_err("a wrong experiment file")
}

#[test]
fn everything_left_out_has_its_default() {
    let kernel = KernelSpec {
        files: FileSettings {
            block_size_bytes: 8 * KIB,
            datafiles: 4,
            log_file_size_bytes: 64 * MIB,
            log_files: 3,
            fixed_buffers: true,
        },
        memory: DatabaseMemory {
            buffer_cache_bytes: 64 * MIB,
            memory_bytes: 128 * MIB,
        },
        instance: InstanceSettings {
            writers: 1,
            write_sync: WriteSync::Dsync,
            commit: Commit::Wait,
            torn_blocks: TornBlocks::Images,
            checkpoint_interval_ns: 60_000_000_000,
            ..Section::read(&mut Listing::default())
        },
        redo_path: None,
        redo_io: None,
    };
    let database = Database {
        size_bytes: GIB,
        spec: DatabaseSpec::Kernel(kernel),
    };
    let expected = Experiment {
        name: "test".to_owned(),
        seed: 1,
        database: database.clone(),
        workload: WorkloadChoice {
            clients: vec![8],
            think_time_ms: 0,
            arrivals: None,
            levels: None,
            promised: None,
            reconnect: false,
            error_limit_percent: 1.0,
            transactions: Transactions::OltpMix(OltpMixSettings {
                read_percent: 40,
                row_operations: 5,
            }),
        },
        plan: Plan {
            warmup_ms: 5_000,
            warmup_max_ms: Some(60_000),
            measure_ms: 20_000,
            interleave_ms: None,
            rounds: 3,
            auto: None,
            margin_percent: 3.0,
            restore: RestoreBy::Copy,
            noise_check: false,
            restore_verify: Verify::Full,
            runs: 1,
            pause_ms: 60_000,
            quiet_ms: 30_000,
            golden_path: None,
        },
        load: Vec::new(),
        layouts: vec![Layout {
            name: "only".to_owned(),
            path: ".".into(),
            made: None,
            placement: PlacementSpec::default(),
            candidate: true,
            price: None,
            repeats: None,
            io: AccessPath {
                caching: Caching::Buffered,
                method: Method::Sync,
                slaves: 0,
            },
            server_io: None,
            limit: None,
            delay: None,
            database,
        }],
        matrix: None,
        is_quick: false,
    };
    assert_eq!(parse(ONE_LAYOUT), expected);
}

#[test]
fn the_quickstart_has_the_six_access_paths() {
    let experiment = parse(QUICKSTART);
    let paths: Vec<String> = experiment
        .layouts
        .iter()
        .map(|layout| layout.io.to_string())
        .collect();
    let six = [
        "buffered, sync",
        "buffered, 4 slaves",
        "direct, sync",
        "direct, 4 slaves",
        "direct, async",
        "odm",
    ];
    assert_eq!(paths, six);
    assert_eq!(experiment.name, "quickstart");
    assert_eq!(experiment.database.size_bytes, 256 * MIB);
    assert_eq!(
        kernel(&experiment.database).memory.buffer_cache_bytes,
        16 * MIB
    );
    assert_eq!(experiment.workload.clients, [8]);
    let Plan {
        warmup_ms,
        measure_ms,
        rounds,
        ..
    } = experiment.plan;
    assert_eq!((warmup_ms, measure_ms, rounds), (2_000, 5_000, 3));
    for layout in 0..six.len() {
        assert_eq!(*experiment.database_of(layout), experiment.database);
    }
}

/// Layouts that Spindle makes, with every key.
const MADE: &str = r#"
[[layout]]
name = "volume"
devices = ["/dev/disk/by-id/a", { file = "b.img", size = "2GiB" }]
volume = { stripes = 2, stripe_size = "256KiB", thin = true }
filesystem = { type = "ext4", mkfs = "-b 4096  -O ^has_journal", mount = "noatime,data=writeback" }
erase = ["S1", "/dev/sdb"]
discard = true
precondition = {}

[[layout]]
name = "group"
devices = [{ file = "c", size = "16MiB" }, { file = "d", size = "16MiB" }, { file = "e", size = "16MiB" }]
diskgroup = { redundancy = "normal", failure_groups = [["c", "d"]], striping = { redo = "fine" }, preferred_read = "e" }
share = "fair"
"#;

#[test]
fn layouts_to_be_made_are_read_key_by_key() {
    let experiment = parse(MADE);
    let made = |index: usize| experiment.layouts[index].made.clone().unwrap();
    let spec = made(0).spec;
    assert_eq!(spec.name, "volume");
    assert_eq!(
        spec.devices[0],
        DeviceSpec::Existing("/dev/disk/by-id/a".into())
    );
    assert_eq!(
        spec.devices[1],
        DeviceSpec::File {
            path: "b.img".into(),
            size_bytes: 2 * GIB
        }
    );
    let volume = VolumeSpec {
        stripes: 2,
        stripe_size_bytes: 256 * KIB,
        mirrors: 0,
        thin: true,
    };
    assert_eq!(spec.volume, Some(volume));
    let file_system = FileSystemSpec {
        type_name: "ext4".to_owned(),
        mkfs_options: ["-b", "4096", "-O", "^has_journal"]
            .map(str::to_owned)
            .to_vec(),
        mount_options: "noatime,data=writeback".to_owned(),
    };
    assert_eq!(spec.kind, LayoutKind::FileSystem(file_system));
    assert_eq!(spec.erase, ["S1", "/dev/sdb"]);
    assert!(spec.preparation.discard && spec.preparation.overwrite_passes == 1);
    assert_eq!(spec.share, None);
    let here = std::env::current_dir().unwrap();
    assert_eq!(
        made(0).absolute().unwrap().devices[1].path(),
        here.join("b.img")
    );

    assert_eq!(
        (made(1).spec.kind, made(1).spec.share),
        (LayoutKind::DiskGroup, Some(DeviceSharing::Fair))
    );
    let group = DiskGroupSpec {
        allocation_unit_bytes: MIB,
        redundancy: Redundancy::Normal,
        failure_groups: vec![vec!["c".to_owned(), "d".to_owned()]],
        striping: StripingByKind {
            redo: Striping::Fine,
            ..StripingByKind::default()
        },
        preferred_read: Some("e".to_owned()),
    };
    assert_eq!(made(1).disk_group, Some(group));
    let short = parse("[[layout]]\nname = \"a\"\ndevices = [\"/dev/sdb\"]\nfilesystem = \"xfs\"\n");
    let LayoutKind::FileSystem(xfs) = short.layouts[0].made.clone().unwrap().spec.kind else {
        panic!("a file system")
    };
    assert_eq!((xfs.type_name.as_str(), xfs.mkfs_options.len()), ("xfs", 0));
}

#[test]
fn an_experiment_survives_the_journal() {
    let slob = format!(
        "seed = 18446744073709551615\n[workload]\nkind = \"slob\"\nhotspot = {{}}\n[database]\nredo_path = \"/redo\"\nredo_io = {{}}\n{ONE_LAYOUT}"
    );
    for text in [QUICKSTART, &slob, MADE] {
        let experiment = parse(text);
        let json = serde_json::to_string(&experiment).unwrap();
        assert_eq!(
            serde_json::from_str::<Experiment>(&json).unwrap(),
            experiment,
            "{json}"
        );
    }
}

#[test]
fn a_layout_overrides_the_database_for_itself_alone() {
    let experiment = parse(
        "[database]\nwriters = 2\nbuffer_cache = \"32MiB\"\n\
         [[layout]]\nname = \"a\"\ndatabase = { buffer_cache = \"48MiB\", datafiles = 9, redo_io = { method = \"odm\" } }\n\
         [[layout]]\nname = \"b\"\n",
    );
    let own = kernel(experiment.database_of(0));
    assert_eq!(
        (
            own.instance.writers,
            own.files.datafiles,
            own.memory.buffer_cache_bytes
        ),
        (2, 9, 48 * MIB)
    );
    assert_eq!(own.redo_io.unwrap().method, Method::Odm);
    assert_eq!(
        own.memory.memory_bytes,
        64 * MIB,
        "the budget of the experiment, not twice this layout's cache"
    );
    assert_eq!(*experiment.database_of(1), experiment.database);
}

#[test]
fn oracles_words_stand_for_the_four_pairs() {
    for (word, caching, method) in [
        ("none", Caching::Buffered, Method::Sync),
        ("directio", Caching::Direct, Method::Sync),
        ("asynch", Caching::Buffered, Method::Async),
        ("setall", Caching::Direct, Method::Async),
    ] {
        let experiment = parse(&format!(
            "{ONE_LAYOUT}io = {{ filesystemio_options = \"{word}\" }}"
        ));
        assert_eq!(
            experiment.layouts[0].io,
            AccessPath {
                caching,
                method,
                slaves: 0
            },
            "{word}"
        );
    }
}

#[test]
fn odm_is_direct_and_slaves_are_counted() {
    let io = |text: &str| parse(&format!("{ONE_LAYOUT}io = {text}")).layouts[0].io;
    let odm = AccessPath {
        caching: Caching::Direct,
        method: Method::Odm,
        slaves: 0,
    };
    assert_eq!(io("{ method = \"odm\" }"), odm);
    assert_eq!(io("{ caching = \"direct\", method = \"odm\" }"), odm);
    assert_eq!(io("{ method = \"slaves\" }").slaves, 4);
    assert_eq!(io("{ method = \"slaves\", slaves = 40 }").slaves, 40);
}

/// How LGWR writes in each case of an experiment with these lines in `[database]` and in its last layout.
fn redo_paths(database: &str, last_layout: &str) -> Vec<String> {
    let experiment = parse(&format!(
        "[database]\n{database}\n\
         [[layout]]\nname = \"a\"\n\
         [[layout]]\nname = \"b\"\nio = {{ method = \"slaves\", slaves = 7 }}\n\
         [[layout]]\nname = \"c\"\nio = {{ method = \"async\" }}\n\
         [[layout]]\nname = \"d\"\nio = {{ method = \"odm\" }}\n{last_layout}"
    ));
    let paths = experiment.layouts.iter().enumerate();
    paths
        .map(|(index, layout)| {
            let kernel = kernel(experiment.database_of(index));
            kernel.redo_access_path(layout.io).to_string()
        })
        .collect()
}

#[test]
fn redo_left_out_is_direct_by_the_method_of_the_case() {
    assert_eq!(
        redo_paths("", ""),
        ["direct, sync", "direct, 7 slaves", "direct, async", "odm"]
    );
}

#[test]
fn redo_given_once_is_the_same_in_every_case() {
    assert_eq!(
        redo_paths("redo_io = { method = \"async\" }", ""),
        ["direct, async"; 4]
    );
    assert_eq!(
        redo_paths("redo_io = { caching = \"buffered\" }", ""),
        ["buffered, sync"; 4]
    );
    assert_eq!(redo_paths("redo_io = {}", ""), ["direct, sync"; 4]);
}

#[test]
fn redo_given_in_a_layout_is_its_own() {
    let own = "database = { redo_io = { caching = \"buffered\" } }";
    assert_eq!(
        redo_paths("", own),
        [
            "direct, sync",
            "direct, 7 slaves",
            "direct, async",
            "buffered, sync"
        ]
    );
    assert_eq!(
        redo_paths("redo_io = { method = \"async\" }", own),
        [
            "direct, async",
            "direct, async",
            "direct, async",
            "buffered, sync"
        ]
    );
}

#[test]
fn set_changes_what_the_file_says() {
    let experiment = parse_with(
        QUICKSTART,
        &[
            "database.writers=1",
            "database.size=512MiB",
            "plan.margin=5%",
            "workload.clients=[8, 16]",
            "layout.0.io.caching=direct",
            "layout.\"direct, async\".io.method=\"sync\"",
            "layout.odm.name=equals = sign",
            "layout.5.database={ datafiles = 2, redo_io.method = 'async' }",
            "plan.rounds = 8",
        ],
    );
    assert_eq!(experiment.database.size_bytes, 512 * MIB);
    assert_eq!(experiment.workload.clients, [8, 16]);
    assert_eq!(
        (experiment.plan.rounds, experiment.plan.margin_percent),
        (8, 5.0)
    );
    assert_eq!(experiment.layouts[0].io.caching, Caching::Direct);
    assert_eq!(experiment.layouts[4].io.method, Method::Sync);
    assert_eq!(experiment.layouts[5].name, "equals = sign");
    let own = kernel(experiment.database_of(5));
    assert_eq!(own.files.datafiles, 2);
    assert_eq!(own.redo_io.unwrap().method, Method::Async);
}

#[test]
fn a_wrong_set_is_shown_on_the_command_line() {
    for (set, key, column) in [
        ("database.writers=400", Some("database.writers"), 24),
        ("database.writerz=4", Some("database.writerz"), 7),
        ("database.block_size=[8", Some("database.block_size"), 27),
        ("seed.x=1", None, 7),
        ("database.writers", None, 7),
        ("=4", None, 7),
        ("a b=4", None, 7),
        ("layout.7.path=/", Some("layout.7.path"), 7),
    ] {
        let text = format!("seed = 1\n{ONE_LAYOUT}");
        let error = error_of(&text, &[set]);
        assert_eq!(
            error.place(),
            Some(("command line", 1, column)),
            "{set}: {error}"
        );
        if key.is_some() {
            assert_eq!(error.key(), key, "{set}: {error}");
        }
    }
}

#[test]
fn places_count_lines_and_characters_from_one() {
    let error = error_of("# é\nname = \"é\"\n[plan]\nrounds = 0 # é\n", &[]);
    assert_eq!(error.place(), Some(("test.toml", 4, 10)));
    assert_eq!(error.key(), Some("plan.rounds"));
    let error = error_of("name = \"é\"\nseed = { \"é\" = 1, x = 2 }\n", &[]);
    assert_eq!(error.place(), Some(("test.toml", 2, 8)));
}

#[test]
fn a_missing_directory_is_a_mistake_only_where_it_matters() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("test.toml");
    let missing = directory.path().join("missing");
    let text = format!("{ONE_LAYOUT}path = {missing:?}\n");
    fs::write(&file, &text).unwrap();
    assert_eq!(parse(&text).layouts[0].path, missing);
    let error = Experiment::read(&file, &[]).expect_err("there is no such directory");
    assert_eq!(error.key(), Some("layout.\"only\".path"));
    fs::create_dir(&missing).unwrap();
    assert_eq!(
        Experiment::read(&file, &[]).unwrap().layouts[0].path,
        missing
    );
    let error = Experiment::read(&missing, &[]).expect_err("a directory is no experiment file");
    assert!(error.place().is_none());
}

#[test]
fn a_name_is_its_files_unless_it_has_its_own() {
    let name_of = |file: &str, text: &str| Experiment::parse(file, text, &[]).unwrap().name;
    assert_eq!(name_of("/a/b.c/raw-or-not.toml", ONE_LAYOUT), "raw-or-not");
    assert_eq!(name_of(".toml", ONE_LAYOUT), "toml");
    assert_eq!(
        name_of("x.toml", &format!("name = \"my own\"\n{ONE_LAYOUT}")),
        "my own"
    );
}

#[test]
fn settings_of_an_instance_stand_beside_the_others_in_a_journal() {
    let database = parse(ONE_LAYOUT).database;
    let json = serde_json::to_value(&database).unwrap();
    assert_eq!(
        (&json["writers"], &json["commit"]),
        (&1.into(), &"wait".into())
    );
    assert_eq!(serde_json::from_value::<Database>(json).unwrap(), database);
}

/// The tables of the reference: heading (without marks, in lower case) -> key -> default in TOML, if it is a fixed one.
fn reference() -> BTreeMap<String, BTreeMap<&'static str, Option<&'static str>>> {
    let code = |cell: &'static str| {
        cell.strip_prefix('`')?
            .strip_suffix('`')
            .filter(|code| !code.contains('`'))
    };
    let mut tables: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    let mut heading = String::new();
    for line in REFERENCE.lines() {
        if line.starts_with('#') {
            heading = line
                .trim_start_matches('#')
                .trim()
                .replace('`', "")
                .to_lowercase();
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        if let ([key, default, _, _], true) = (cells.as_slice(), line.starts_with("| `")) {
            tables
                .entry(heading.clone())
                .or_default()
                .insert(code(key).unwrap(), code(default));
        }
    }
    tables
}

#[test]
fn the_reference_describes_every_key_and_no_other() {
    let reference = reference();
    for (section, keys) in sections::keys_by_section() {
        let mut described: Vec<&str> = reference
            .iter()
            .filter(|(heading, _)| heading.starts_with(&section.to_lowercase()))
            .flat_map(|(_, rows)| rows.keys().copied())
            .collect();
        if section == "[workload]" {
            // This list is of the default kind of workload; the keys of others are in lists of their own.
            described.retain(|key| keys.contains(key) || reference["[workload]"].contains_key(key));
        }
        let mut keys = keys;
        keys.sort_unstable();
        described.sort_unstable();
        assert_eq!(described, keys, "{section}");
    }
}

#[test]
fn the_reference_tells_the_defaults() {
    let reference = reference();
    let defaults_of = |heading: &str| -> Vec<String> {
        let rows = reference[heading].iter();
        rows.filter_map(|(key, default)| Some(format!("{key} = {}", (*default)?)))
            .collect()
    };
    let lines = |heading: &str| defaults_of(heading).join("\n");
    let written_out = format!(
        "seed = {}\n[database]\n{}\n[workload]\n{}\n{}\n[plan]\n{}\n{ONE_LAYOUT}{}",
        reference["at the top"]["seed"].unwrap(),
        lines("[database]"),
        lines("[workload]"),
        lines("[workload] with kind = \"oltp_mix\""),
        lines("[plan]"),
        lines("[[layout]]"),
    );
    assert_eq!(parse(&written_out), parse(ONE_LAYOUT));

    let io = format!(
        "{ONE_LAYOUT}io = {{ {} }}",
        defaults_of("the io table of a [[layout]]").join(", ")
    );
    assert_eq!(parse(&io), parse(ONE_LAYOUT));

    let slob = format!("{ONE_LAYOUT}[workload]\nkind = \"slob\"\n");
    assert_eq!(
        parse(&format!(
            "{slob}{}",
            lines("[workload] with kind = \"slob\"")
        )),
        parse(&slob)
    );
    let hotspot = defaults_of("the hotspot table of slob").join(", ");
    assert_eq!(
        parse(&format!("{slob}hotspot = {{ {hotspot} }}")),
        parse(&format!("{slob}hotspot = {{}}"))
    );
    assert_eq!(defaults_of("the hotspot table of slob").len(), 3);
}

/// Each is an experiment by itself. One that shows other sections only gets a layout.
#[test]
fn the_examples_of_the_documents_are_right() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    for folder in ["docs", "docs/how-to", "docs/decisions"] {
        let entries = fs::read_dir(root.join(folder)).unwrap();
        pages.extend(entries.map(|entry| entry.unwrap().path()));
    }
    pages.retain(|path| path.extension().is_some_and(|end| end == "md"));
    let mut examples = 0;
    for page in pages {
        let page = fs::read_to_string(page).unwrap();
        for block in page.split("```toml\n").skip(1) {
            let block = block.split("```").next().unwrap();
            let layout = if block.contains("[[layout]]") {
                ""
            } else {
                ONE_LAYOUT
            };
            parse(&format!("{block}\n{layout}"));
            examples += 1;
        }
    }
    assert!(examples >= 20, "{examples}");
}

#[test]
fn files_are_delayed_as_the_layout_that_they_lie_on() {
    let experiment = parse(
        "[[layout]]\nname = \"disks\"\ndelay = { read_us = 5000 }\nplacement = { redo = \"ssd\" }\n\
         [[layout]]\nname = \"ssd\"\nplacement = { redo = \"disks\" }\n\
         [[layout]]\nname = \"disks alone\"\ndelay = { read_us = 4000 }\n\
         [[layout]]\nname = \"disks, redo apart\"\ndelay = { read_us = 3000 }\ndatabase = { redo_path = \"/redo\" }\n",
    );
    let read_us_but = |slow, layout| {
        let (data, redo) = experiment.delays_of(layout, |on| on == slow);
        [data, redo].map(|delay| delay.map_or(0, |delay| delay.read_us))
    };
    let read_us = |layout| read_us_but(usize::MAX, layout);
    assert_eq!(read_us_but(0, 0), [0, 0]);
    assert_eq!(read_us_but(0, 1), [0, 0]);
    assert_eq!(read_us(0), [5000, 0]);
    assert_eq!(read_us(1), [0, 5000]);
    assert_eq!(read_us(2), [4000, 4000]);
    assert_eq!(read_us(3), [3000, 3000]);
    // What delays a layout beneath it does not delay a directory elsewhere.
    assert_eq!(read_us_but(3, 3), [0, 3000]);
}

#[test]
fn a_noise_check_measures_the_first_candidate_once_more() {
    let text = "[plan]\nnoise_check = true\n[[layout]]\nname = \"disks\"\ncandidate = false\n\
                [[layout]]\nname = \"a\"\nplacement = { redo = \"disks\" }\n[[layout]]\nname = \"a (again)\"\n";
    let layouts = parse(text).layouts;
    let names: Vec<&str> = layouts.iter().map(|layout| layout.name.as_str()).collect();
    assert_eq!(names, ["disks", "a", "a (again)", "a (again) (again)"]);
    assert_eq!(layouts[3].repeats.as_deref(), Some("a"));
    assert_eq!(layouts[3].database, layouts[1].database);
}

#[test]
fn undo_and_control_file_are_not_placed_where_the_delay_is_another() {
    let undo_on = |delay: &str| {
        format!(
            "[[layout]]\nname = \"a\"\ndelay = {{ read_us = 5000 }}\nplacement = {{ undo = \"b\" }}\n\
             [[layout]]\nname = \"b\"\n{delay}"
        )
    };
    let error = error_of(&undo_on(""), &[]);
    assert!(
        error
            .to_string()
            .contains("undo lies where the delay is not")
    );
    parse(&undo_on("delay = { read_us = 5000 }\n"));
}

#[test]
fn a_preferred_read_needs_a_device_and_copies_to_choose_from() {
    let group = |table: &str| {
        format!(
            "[[layout]]\nname = \"a\"\ndevices = [\"/dev/sdb\", \"/dev/sdc\"]\ndiskgroup = {table}\n"
        )
    };
    for (table, told) in [
        (
            "{ preferred_read = \"/dev/sdb\" }",
            "has no copies to choose from",
        ),
        (
            "{ preferred_read = \"/dev/sdx\", redundancy = \"normal\" }",
            "is not one of `devices`",
        ),
    ] {
        let error = error_of(&group(table), &[]);
        assert!(error.to_string().contains(told), "{error}");
    }
    parse(&group(
        "{ preferred_read = \"/dev/sdb\", redundancy = \"normal\" }",
    ));
}

const QUERIES: &str = "[database]\nengine = \"sqlite\"\nbuffer_cache = \"4MiB\"\n";

#[test]
fn the_size_of_tpch_follows_from_its_scale_in_every_layout() {
    let text = format!(
        "{QUERIES}[workload]\nkind = \"tpch\"\nscale = 0.5\n{ONE_LAYOUT}database = {{ buffer_cache = \"8MiB\" }}\n"
    );
    let experiment = parse(&text);
    assert_eq!(experiment.workload.clients, [1]);
    let sizes = [&experiment.database, &experiment.layouts[0].database];
    assert_eq!(sizes.map(|database| database.size_bytes), [800_000_000; 2]);
    let (_, queries) = experiment.workload.transactions.queries().unwrap();
    assert!(queries.queries.iter().copied().eq(1..=22));

    let of_ancestor = parse(&text.replace("tpch", "tpcd"));
    let (_, queries) = of_ancestor.workload.transactions.queries().unwrap();
    assert!(queries.queries.iter().copied().eq(1..=17));
}

#[test]
fn queries_on_the_embedded_database_have_slaves_and_others_have_not() {
    let of =
        |database: &str| format!("{database}[workload]\nkind = \"tpch\"\nslaves = 3\n{ONE_LAYOUT}");
    let workload = parse(&of("")).workload;
    assert_eq!((workload.query_processes(2), workload.sessions(2)), (6, 2));
    assert_eq!(error_of(&of(QUERIES), &[]).key(), Some("workload.slaves"));
}

#[test]
fn what_means_nothing_to_queries_is_refused() {
    let with = |workload: &str, plan: &str, database: &str| {
        let text = format!(
            "{QUERIES}{database}[workload]\nkind = \"tpch\"\n{workload}\n[plan]\n{plan}\n{ONE_LAYOUT}"
        );
        error_of(&text, &[]).key().unwrap_or_default().to_owned()
    };
    assert_eq!(with("think_time = \"1s\"", "", ""), "workload.think_time");
    assert_eq!(with("rate = \"1/s\"", "", ""), "workload.rate");
    assert_eq!(with("queries = [23]", "", ""), "workload.queries");
    assert_eq!(with("scale = 0.001", "", ""), "workload.scale");
    assert_eq!(with("", "measure = \"1m\"", ""), "plan.measure");
    assert_eq!(with("", "", "size = \"1GiB\"\n"), "database.size");
    let kernel = format!("[workload]\nkind = \"script\"\n{ONE_LAYOUT}");
    let error = error_of(&kernel, &[]);
    assert_eq!(error.key(), Some("workload.kind"));
    assert!(
        error.to_string().contains("does not apply to engine"),
        "{error}"
    );
}
