//! Matrices that are right: names, settings in place, halves, what is left out. Wrong ones are in
//! `tests/all/experiment_errors.rs`.

use std::path::Path;

use super::super::{Changes, DatabaseSpec, Experiment};

fn read(text: &str, vary: &[&str], only: &[&str]) -> Experiment {
    let owned = |texts: &[&str]| {
        texts
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<String>>()
    };
    let (vary, only) = (owned(vary), owned(only));
    let changes = Changes {
        vary: &vary,
        only: &only,
        ..Changes::default()
    };
    match Experiment::from_text(Path::new("test.toml"), text, changes, false) {
        Ok(experiment) => experiment,
        Err(error) => panic!("{error} at {:?}", error.place()),
    }
}

fn names(experiment: &Experiment) -> Vec<&str> {
    let layouts = experiment.layouts.iter();
    layouts.map(|layout| layout.name.as_str()).collect()
}

#[test]
fn two_spellings_of_a_value_are_one() {
    let same = [
        "database.buffer_cache=64MiB,65536KiB",
        "path=/a,/a/",
        "settings.checkpoint_timeout=60s,1min,60000ms",
        "settings.fsync=on,true",
        "settings.shared_buffers=64MB,65536kB",
        "settings.journal_mode=wal,WAL",
    ];
    for vary in same {
        let changes = Changes {
            vary: &[vary.to_owned()],
            ..Changes::default()
        };
        let text = format!("[database]\nengine = \"postgres\"\n{HERE}path = \"/a\"\n");
        let read = Experiment::from_text(Path::new("test.toml"), &text, changes, false);
        let error = read.expect_err(vary).to_string();
        assert!(error.ends_with("offers no choice"), "{vary}: {error}");
    }
    let text = format!("{HERE}path = \"/a\"\n");
    let apart = read(&text, &["database.buffer_cache=64MiB,32MiB"], &[]);
    assert_eq!(apart.layouts.len(), 2);
}

#[test]
fn what_is_the_same_in_every_layout_is_said_at_once() {
    for key in ["size", "database.size", "engine", "database.commit"] {
        let changes = Changes {
            vary: &[format!("{key}=1,2")],
            ..Changes::default()
        };
        let read = Experiment::from_text(Path::new("test.toml"), HERE, changes, false);
        let error = read.expect_err(key).to_string();
        assert_eq!(error, format!("{key} cannot be varied"));
    }
}

#[test]
fn a_key_without_its_table_is_told_with_it() {
    for (vary, told) in [
        ("caching=direct,buffered", "write io.caching"),
        ("method=sync,async", "write io.method"),
        ("clients=1,8", "load levels are a list already"),
        (
            "full_page_writes=on,off",
            "no key of a layout; a setting of a server is settings.full_page_writes",
        ),
        ("workload.clients=1,8", "load levels are a list already"),
    ] {
        let changes = Changes {
            vary: &[vary.to_owned()],
            ..Changes::default()
        };
        let read = Experiment::from_text(Path::new("test.toml"), HERE, changes, false);
        let error = format!("{:?}", miette::Report::new(read.expect_err(vary)));
        assert!(error.contains(told), "{vary}: {error}");
    }
}

const HERE: &str = "[[layout]]\nname = \"here\"\n";
const TWO: &str =
    "[[layout]]\nname = \"ext4\"\npath = \"/a\"\n[[layout]]\nname = \"xfs\"\npath = \"/b\"\n";

#[test]
fn every_layout_is_taken_with_every_combination() {
    let text = format!(
        "[vary]\nio.method = [\"sync\", \"async\"]\n\"database.datafiles\" = [1, 4]\n{TWO}"
    );
    let experiment = read(&text, &[], &[]);
    assert_eq!(
        names(&experiment),
        [
            "ext4, sync, datafiles 1",
            "ext4, sync, datafiles 4",
            "ext4, async, datafiles 1",
            "ext4, async, datafiles 4",
            "xfs, sync, datafiles 1",
            "xfs, sync, datafiles 4",
            "xfs, async, datafiles 1",
            "xfs, async, datafiles 4",
        ]
    );
    let last = &experiment.layouts[7];
    assert_eq!(
        (last.path.as_path(), last.io.to_string().as_str()),
        (Path::new("/b"), "buffered, async")
    );
    let DatabaseSpec::Kernel(kernel) = &experiment.database_of(7).spec else {
        panic!("it is the embedded database");
    };
    assert_eq!(kernel.files.datafiles, 4);
    let matrix = experiment.matrix.as_ref().unwrap();
    let factors: Vec<&str> = matrix
        .factors
        .iter()
        .map(|factor| factor.name.as_str())
        .collect();
    assert_eq!(factors, ["layout", "method", "datafiles"]);
    assert_eq!(matrix.cells[7].levels, [1, 1, 1]);
    assert_eq!(
        matrix.to_string(),
        "A matrix of layout (ext4, xfs) x method (sync, async) x datafiles (1, 4): 8 layouts."
    );
    let json = serde_json::to_string(&experiment).unwrap();
    assert_eq!(
        serde_json::from_str::<Experiment>(&json).unwrap(),
        experiment
    );
}

#[test]
fn the_command_line_varies_as_the_file_does() {
    let engine = format!("[database]\nengine = \"sqlite\"\nsize = \"256MiB\"\n{HERE}");
    let vary = [
        "settings.journal_mode=wal, delete",
        "settings.synchronous=full,normal",
    ];
    let experiment = read(&engine, &vary, &[]);
    assert_eq!(
        names(&experiment),
        ["wal, full", "wal, normal", "delete, full", "delete, normal"]
    );
    let DatabaseSpec::Server(server) = &experiment.database_of(2).spec else {
        panic!("it is a server of Spindle's own");
    };
    let settings = &server.settings;
    assert_eq!(
        (
            settings["journal_mode"].as_str(),
            settings["synchronous"].as_str()
        ),
        ("delete", "full")
    );
    // A key of the file is replaced, lists may be TOML, and yes and no say what they are of.
    let text = format!(
        "[vary]\ndatabase.fixed_buffers = [true, false]\nio.method = [\"odm\", \"sync\"]\n{HERE}"
    );
    let experiment = read(&text, &["io.method=[\"async\", \"libaio\"]"], &[]);
    assert_eq!(
        names(&experiment),
        [
            "fixed_buffers true, async",
            "fixed_buffers true, libaio",
            "fixed_buffers false, async",
            "fixed_buffers false, libaio"
        ]
    );
    let whole = read(
        HERE,
        &["io={ method = \"sync\" }, { caching = \"direct\", method = \"async\" }"],
        &[],
    );
    assert_eq!(names(&whole), ["sync", "direct async"]);
}

#[test]
fn files_lie_on_the_layout_of_the_same_combination() {
    let text = "[vary]\ndatabase.log_files = [2, 3]\n[[layout]]\nname = \"a\"\nplacement = { redo = \"b\" }\n\
                [[layout]]\nname = \"b\"\nplacement = { redo = \"log\" }\n[[layout]]\nname = \"log\"\ncandidate = false\n";
    let experiment = read(text, &[], &[]);
    assert_eq!(
        names(&experiment),
        [
            "a, log_files 2",
            "a, log_files 3",
            "b, log_files 2",
            "b, log_files 3",
            "log"
        ]
    );
    let beneath = |layout: usize| {
        experiment.layouts[layout]
            .placement
            .layouts()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_eq!(
        (beneath(1).as_str(), beneath(3).as_str()),
        ("b, log_files 3", "log")
    );
    // Who is not asked for and holds files of one that is stays, unmeasured.
    let only = read(text, &[], &["a, log_files 3"]);
    assert_eq!(names(&only), ["a, log_files 3", "b, log_files 3", "log"]);
    assert_eq!(only.candidates().collect::<Vec<_>>(), [0]);
    assert_eq!(only.matrix.unwrap().cells.len(), 1);
}

#[test]
fn only_the_layouts_asked_for_are_measured() {
    let quickstart = include_str!("../../../../examples/quickstart.toml");
    let experiment = read(quickstart, &[], &["direct, async,odm", "buffered,sync"]);
    assert_eq!(
        names(&experiment),
        ["buffered, sync", "direct, async", "odm"]
    );
}

#[test]
fn layouts_of_the_file_are_chosen_before_they_are_varied() {
    let vary = ["io.method=sync,async", "database.datafiles=1,4"];
    let one = read(TWO, &vary, &["xfs"]);
    assert_eq!(
        names(&one),
        [
            "sync, datafiles 1",
            "sync, datafiles 4",
            "async, datafiles 1",
            "async, datafiles 4"
        ]
    );
    assert!(
        one.layouts
            .iter()
            .all(|layout| layout.path == Path::new("/b"))
    );
    let cells = read(
        TWO,
        &vary,
        &["xfs, sync, datafiles 4,ext4, sync, datafiles 4"],
    );
    assert_eq!(
        names(&cells),
        ["ext4, sync, datafiles 4", "xfs, sync, datafiles 4"]
    );
}

#[test]
fn combinations_that_cannot_be_had_are_left_out_with_the_reason() {
    let vary = ["io.method=sync,slaves,async", "database.writers=1,4"];
    let mut experiment = read(HERE, &vary, &[]);
    let five = [
        "sync, writers 1",
        "sync, writers 4",
        "slaves, writers 1",
        "async, writers 1",
        "async, writers 4",
    ];
    assert_eq!(names(&experiment), five);
    let matrix = experiment.matrix.clone().unwrap();
    assert_eq!(matrix.cells.len(), 5);
    assert_eq!(
        matrix.to_string(),
        "A matrix of method (sync, slaves, async) x writers (1, 4): 5 of 6 layouts.\n\
         Left out: slaves, writers 4: I/O slaves cannot be used with 4 writers: they serve a single DBWR, as in Oracle."
    );
    // What an engine has not at all.
    let engine = "[database]\nengine = \"mariadb\"\n";
    let two = read(
        &format!("{engine}{HERE}"),
        &["io.method=sync,slaves,async"],
        &[],
    );
    assert_eq!(names(&two), ["slaves", "async"]);
    // What this machine has not.
    let no_ring = "no io_uring here".to_owned();
    let refused = [(3, no_ring.clone()), (4, no_ring.clone())];
    experiment.leave_out(&refused).unwrap();
    assert_eq!(names(&experiment), five[..3]);
    let matrix = experiment.matrix.as_ref().unwrap();
    assert_eq!(
        matrix.left_out_by_reason()[1],
        (
            "no io_uring here",
            vec!["async, writers 1", "async, writers 4"]
        )
    );
    let refused = [(1, no_ring.clone()), (2, no_ring)];
    let told = experiment.leave_out(&refused).unwrap_err();
    assert_eq!(
        told.to_string(),
        "only one of what is varied can be measured here, and there is nothing to compare it with. \
         sync, writers 4; slaves, writers 1: no io_uring here"
    );
    assert_eq!(names(&experiment), five[..3]);
}

#[test]
fn many_that_are_left_out_are_counted() {
    let vary = ["io.method=sync,slaves", "database.writers=1,2,3,4,5,6"];
    let matrix = read(HERE, &vary, &[]).matrix.unwrap();
    assert_eq!((matrix.cells.len(), matrix.left_out.len()), (7, 5));
    let listed = crate::listed(&["a", "b", "c", "d", "e"]);
    assert_eq!(listed, "a; b; c; and 2 more");
    assert_eq!(crate::listed(&["a", "b", "c", "d"]), "a; b; c; d");
}

#[test]
fn files_on_what_is_left_out_are_left_out_too() {
    let text = "[vary]\nio.method = [\"sync\", \"slaves\", \"async\"]\n[database]\nwriters = 1\n\
                [[layout]]\nname = \"a\"\nplacement = { redo = \"b\" }\n\
                [[layout]]\nname = \"b\"\ndatabase = { writers = 2 }\n";
    let experiment = read(text, &[], &[]);
    assert_eq!(
        names(&experiment),
        ["a, sync", "a, async", "b, sync", "b, async"]
    );
    let matrix = experiment.matrix.unwrap();
    let reasons = matrix.left_out_by_reason();
    assert_eq!(reasons[1].1, ["a, slaves"]);
    assert!(
        reasons[1].0.contains("\"b, slaves\", which is left out"),
        "{reasons:?}"
    );
}

#[test]
fn large_matrices_of_two_values_are_halved() {
    let five: String = ["datafiles", "log_files", "writers"]
        .iter()
        .map(|key| format!("database.{key} = [2, 4]\n"))
        .collect();
    let five = format!(
        "{five}io.caching = [\"buffered\", \"direct\"]\ndatabase.fixed_buffers = [true, false]\n{HERE}"
    );
    let half = read(&format!("[vary]\n{five}"), &[], &[]);
    assert_eq!(half.layouts.len(), 16);
    let matrix = half.matrix.unwrap();
    assert!(matrix.is_half);
    assert!(
        matrix
            .to_string()
            .contains("half of its 32 combinations, 16 layouts"),
        "{matrix}"
    );
    // Each value of each key is in half of the layouts, and so is each pair of values of two keys in a quarter.
    for (one, other) in [(0, 1), (1, 4), (2, 3)] {
        let both = matrix
            .cells
            .iter()
            .filter(|cell| cell.levels[one] == 1 && cell.levels[other] == 1);
        assert_eq!(both.count(), 4);
    }
    let full = read(&format!("[vary]\nfraction = \"full\"\n{five}"), &[], &[]);
    assert_eq!(
        (full.layouts.len(), full.matrix.unwrap().is_half),
        (32, false)
    );
}

#[test]
fn a_first_look_is_short_whatever_the_plan() {
    let quick = |text: &str| {
        let changes = Changes {
            is_quick: true,
            ..Changes::default()
        };
        Experiment::from_text(Path::new("test.toml"), text, changes, false).unwrap()
    };
    let plan = "[plan]\nrounds = \"auto\"\nprecision = \"1%\"\nmax = 40\nmeasure = \"1h\"\nruns = 5\nnoise_check = true\n";
    let experiment = quick(&format!("{plan}{HERE}"));
    let plan = &experiment.plan;
    assert_eq!(
        (plan.measure_ms, plan.warmup_ms, plan.rounds, plan.runs),
        (2_000, 1_000, 3, 1)
    );
    assert!(experiment.is_quick && plan.auto.is_none() && experiment.layouts.len() == 1);
    // Queries take as long as they take.
    let queries = "[database]\nengine = \"sqlite\"\n[workload]\nkind = \"tpch\"\nscale = 0.1\nclients = 1\n[plan]\nrounds = 9\n";
    assert_eq!(quick(&format!("{queries}{HERE}")).plan.rounds, 3);
}

fn told(sets: &[&str], vary: &[&str], must_exist: bool) -> String {
    let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (sets, vary) = (owned(sets), owned(vary));
    let changes = Changes {
        sets: &sets,
        vary: &vary,
        ..Changes::default()
    };
    let text = format!("[database]\nengine = \"postgres\"\n{HERE}path = \".\"\n");
    let read = Experiment::from_text(Path::new("test.toml"), &text, changes, must_exist);
    read.expect_err("one of them would be lost").to_string()
}

#[test]
fn a_key_is_varied_or_set_once() {
    for again in ["settings.fsync=on,off", "database.settings.fsync=on,off"] {
        let vary = ["settings.fsync=off,on", again];
        assert!(told(&[], &vary, false).ends_with("is varied twice"));
    }
    for vary in [
        "shared_buffers=8MiB,9MiB",
        "database.buffer_cache=8MiB,9MiB",
    ] {
        let set = ["database.buffer_cache=16MiB"];
        assert!(told(&set, &[vary], false).ends_with("is set and varied"));
    }
    let sets = ["plan.rounds=3", "plan.rounds=4"];
    assert_eq!(told(&sets, &[], false), "plan.rounds is set twice");
    let sets = ["plan.rounds=3", "plan={ measure = \"1s\" }"];
    assert!(told(&sets, &[], false).starts_with("plan is set after plan.rounds"));
}

#[test]
fn one_directory_is_no_second_place() {
    let here = std::env::current_dir().unwrap();
    let vary = format!("path=.,{}", here.display());
    let told = told(&[], &[&vary], true);
    assert!(told.ends_with("are one place"), "{told}");
}
