//! Wrong experiment files, each with the message a person reads: the place, the key, what is allowed, what to do.
//!
//! A snapshot is the message exactly as the program shows it, without colour, 80 columns wide.

use std::path::Path;

use miette::{GraphicalReportHandler, GraphicalTheme};
use spindle_experiment::{Changes, Experiment, ExperimentError};

/// A layout without fault, so that each test has only the mistake it is about.
const LAYOUT: &str = "\n[[layout]]\nname = \"direct\"\nio = { caching = \"direct\" }\n";

fn shown(error: &ExperimentError) -> String {
    let mut text = String::new();
    GraphicalReportHandler::new_themed(GraphicalTheme::unicode_nocolor())
        .with_width(80)
        .render_report(&mut text, error)
        .expect("a text takes any message");
    text.lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// A layout on an existing server.
const FOREIGN: &str =
    "\n[[layout]]\nname = \"there\"\ndatabase = { url = \"postgres://me@host/bench\" }\n";

/// The message for `text`, which must be wrong, with the `--set` arguments `sets`.
fn message_with(text: &str, sets: &[&str]) -> String {
    let sets: Vec<String> = sets.iter().map(ToString::to_string).collect();
    shown(&Experiment::parse("wrong.toml", text, &sets).expect_err("a wrong experiment file"))
}

/// The message for `text` followed by a layout without fault, with what the command line changes.
fn message_of(text: &str, vary: &[&str], only: &[&str]) -> String {
    let owned = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (vary, only) = (owned(vary), owned(only));
    let changes = Changes {
        vary: &vary,
        only: &only,
        ..Changes::default()
    };
    let text = format!("{text}{LAYOUT}");
    let read = Experiment::from_text(Path::new("wrong.toml"), &text, changes, false);
    shown(&read.expect_err("a wrong experiment"))
}

/// The message for `text` followed by a layout without fault.
fn message(text: &str) -> String {
    message_with(&format!("{text}{LAYOUT}"), &[])
}

macro_rules! wrong {
    ($($name:ident: $message:expr;)+) => {
        $(#[test]
        fn $name() {
            insta::assert_snapshot!(stringify!($name), $message);
        })+
    };
}

wrong! {
    varied_by_one_value: message("[vary]\nio.method = [\"sync\"]\n");
    varied_without_a_list: message("[vary]\nio.method = \"sync\"\n");
    varied_twice_the_same: message("[vary]\nio.method = [\"sync\", \"async\", \"sync\"]\n");
    varied_and_no_key_of_a_layout: message("[vary]\nwriters = [1, 2]\n");
    varied_plan: message("[vary]\nplan.rounds = [3, 5]\n");
    varied_with_a_wrong_value: message("[vary]\nio.method = [\"sync\", \"asink\"]\n");
    varied_what_must_be_equal: message("[vary]\ndatabase.torn_blocks = [\"images\", \"double_write\"]\n");
    varied_as_a_whole_and_in_part: message("[vary]\nio = [{ method = \"sync\" }, { method = \"async\" }]\n\"io.caching\" = [\"buffered\", \"direct\"]\n");
    too_many_layouts: message("[vary]\ndatabase.writers = [1, 2, 3, 4, 5, 6, 7, 8, 9]\ndatabase.datafiles = [1, 2, 3, 4, 5, 6, 7, 8]\n");
    far_too_many_layouts: message(&format!("[vary]\n{}", (0..70).map(|key| format!("settings.s{key} = [1, 2]\n")).collect::<String>()));
    half_of_too_few: message("[vary]\nfraction = \"half\"\nio.method = [\"sync\", \"async\"]\n");
    vary_without_values: message_of("", &["io.method"], &[]);
    vary_with_a_wrong_value: message_of("", &["io.method=sync,asink"], &[]);
    only_one_that_is_not_there: message_of("", &["io.method=sync,async"], &["sync, libaio"]);
    misspelt_key: message("[database]\nbufer_cache = \"16MiB\"\n");
    misspelt_section: message("[databse]\nwriters = 2\n");
    key_of_another_section: message("[database]\nclients = 16\n");
    key_of_another_workload: message("[workload]\nkind = \"oltp_mix\"\nupdate_percent = 20\n");
    unknown_key: message("[plan]\ncolour = \"red\"\n");
    number_out_of_range: message("[database]\nsize = \"1GiB\"\nwriters = 400 # many\n");
    text_for_a_number: message("[database]\ndatafiles = \"eight\"\n");
    size_in_decimal_units: message("[database]\nbuffer_cache = \"64MB\"\n");
    block_size_between: message("[database]\nblock_size = \"6KiB\"\n");
    rate_without_unit: message("[workload]\nrate = 500\n");
    rates_of_both_kinds: message("[workload]\nrate = [\"200/s\", \"30%\"]\n");
    arrivals_without_rate: message("[workload]\narrivals = \"even\"\n");
    rate_and_keying: message("[workload]\nkind = \"tpcc\"\nkeying_and_think_percent = 1\nrate = \"500/s\"\n");
    turns_with_keying: message("[workload]\nkind = \"tpcc\"\nkeying_and_think_percent = 1\n[plan]\ninterleave = \"500ms\"\n");
    rate_and_think_time: message("[workload]\nthink_time = \"10ms\"\nrate = \"500/s\"\n");
    duration_without_unit: message("[plan]\nmeasure = 20\n");
    margin_without_sign: message("[plan]\nmargin = 0.03\n");
    misspelt_word: message("[database]\nwrite_sync = \"dsinc\"\n");
    misspelt_torn_blocks: message("[database]\ntorn_blocks = \"full_block_images\"\n");
    torn_blocks_of_a_layout: message(
        "[[layout]]\nname = \"fast\"\ndatabase = { torn_blocks = \"atomic\" }\n",
    );
    engine_not_built_yet: message("[database]\nengine = \"oracle\"\n");
    precision_of_a_fixed_plan: message("[plan]\nprecision = \"2%\"\n");
    turns_of_a_server: message("[database]\nengine = \"sqlite\"\n[plan]\ninterleave = \"500ms\"\n");
    turns_with_time_to_think: message("[workload]\nthink_time = \"1s\"\n[plan]\ninterleave = \"500ms\"\n");
    a_single_turn: message("[plan]\nmeasure = \"1s\"\ninterleave = \"800ms\"\n");
    golden_copy_of_a_foreign_server: message_with(
        &format!("[database]\nengine = \"postgres\"\nsize = \"128MiB\"\n[plan]\ngolden_path = \".\"\n{FOREIGN}"),
        &[],
    );
    files_of_a_foreign_server: message_with(
        &format!("[database]\nengine = \"postgres\"\nsize = \"128MiB\"\n{FOREIGN}"),
        &["plan.restore_verify=changed"],
    );
    placed_on_no_layout: message("[[layout]]\nname = \"x\"\nplacement = { redo = \"logs\" }\n");
    placed_on_no_device: message(
        "[[layout]]\nname = \"x\"\ndevices = [\"/dev/sdb\"]\nraw = true\nplacement = { redo = [\"/dev/sdc\"] }\n",
    );
    holds_nothing_and_is_not_measured: message("[[layout]]\nname = \"x\"\ncandidate = false\n");
    buffered_raw: message(
        "[[layout]]\nname = \"x\"\ndevices = [\"/dev/sdb\"]\nraw = true\nio = { caching = \"buffered\" }\n",
    );
    devices_without_a_use: message("[[layout]]\nname = \"x\"\ndevices = [\"/dev/sdb\"]\n");
    devices_with_two_uses: message(
        "[[layout]]\nname = \"x\"\ndevices = [\"/dev/sdb\"]\nraw = true\nfilesystem = \"xfs\"\n",
    );
    devices_and_path: message("[[layout]]\nname = \"x\"\ndevices = [\"/dev/sdb\"]\nraw = true\npath = \".\"\n");
    file_system_without_devices: message("[[layout]]\nname = \"x\"\nfilesystem = \"xfs\"\n");
    device_without_its_path: message("[[layout]]\nname = \"x\"\nraw = true\ndevices = [\"sdb\"]\n");
    file_without_its_size: message("[[layout]]\nname = \"x\"\nraw = true\ndevices = [{ file = \"a\" }]\n");
    file_with_a_misspelt_key: message(
        "[[layout]]\nname = \"x\"\nraw = true\ndevices = [{ file = \"a\", siez = \"1GiB\" }]\n",
    );
    misspelt_volume_key: message(
        "[[layout]]\nname = \"x\"\nraw = true\ndevices = [\"/dev/sdb\"]\nvolume = { stripe = 4 }\n",
    );
    thin_mirrors: message(
        "[[layout]]\nname = \"x\"\nraw = true\ndevices = [\"/dev/sdb\"]\nvolume = { thin = true, mirrors = 1 }\n",
    );
    file_system_with_a_path: message(
        "[[layout]]\nname = \"x\"\ndevices = [\"/dev/sdb\"]\nfilesystem = \"../xfs\"\n",
    );
    too_few_failure_groups: message(
        "[[layout]]\nname = \"x\"\ndevices = [\"/dev/sdb\", \"/dev/sdc\"]\ndiskgroup = { redundancy = \"high\" }\n",
    );
    failure_group_of_another: message(
        "[[layout]]\nname = \"x\"\ndevices = [\"/dev/sdb\"]\ndiskgroup = { failure_groups = [[\"/dev/sdc\"]] }\n",
    );
    clients_twice: message("[workload]\nclients = [8, 16, 8]\n");
    cache_holds_all_data: message("[database]\nsize = \"64MiB\"\nbuffer_cache = \"64MiB\"\n");
    memory_below_cache: message("[database]\nmemory = \"32MiB\"\n");
    log_file_too_small: message("[database]\nblock_size = \"32KiB\"\nlog_file_size = \"1MiB\"\n");
    too_many_datafiles: message("[database]\nsize = \"128MiB\"\ndatafiles = 1000\n");
    hotspot_past_the_data: message("[workload]\nkind = \"slob\"\nhotspot = { offset = \"1GiB\" }\n");
    scan_and_hotspot_past_the_data: message(
        "[workload]\nkind = \"slob\"\nscan_blocks = 1000000\nhotspot = { offset = \"1GiB\" }\n",
    );
    room_and_mix_of_a_server: message(
        "[database]\nengine = \"sqlite\"\n[workload]\nkind = \"tpcc\"\nroom_for = 5000\nmix = { new_order = 50 }\n",
    );
    queries_in_sql_on_the_embedded_database: message("[workload]\nkind = \"script\"\n");
    reconnect_to_the_embedded_database: message("[workload]\nreconnect = true\n");
    procedures_of_sqlite: message(
        "[database]\nengine = \"sqlite\"\n[workload]\nkind = \"tpcc\"\nprocedures = true\n",
    );
    procedure_of_sqlite: message(
        "[database]\nengine = \"sqlite\"\n[workload]\nkind = \"junk\"\nprocedure = true\n",
    );
    procedure_of_the_embedded_database: message("[workload]\nkind = \"junk\"\nprocedure = true\n");
    junk_of_too_many_rows: message("[workload]\nkind = \"junk\"\nrows = 300000001\n");
    junk_of_few_rows: message("[database]\ndatafiles = 9\n[workload]\nkind = \"junk\"\nrows = 10\n");
    shares_of_a_mix: message(
        "[database]\nengine = \"sqlite\"\n[workload]\nkind = \"tpcc\"\nmix = { new_order = 50, payment = 49 }\n",
    );
    size_beside_warehouses: message(
        "[database]\nengine = \"sqlite\"\nsize = \"1GiB\"\n[workload]\nkind = \"tpcc\"\n",
    );
    scale_smaller_than_the_buffer_cache: message(
        "[database]\nengine = \"sqlite\"\n[workload]\nkind = \"tpcb\"\nscale = 1\n",
    );
    key_of_tpcb_with_tpcc: message(
        "[database]\nengine = \"sqlite\"\n[workload]\nkind = \"tpcc\"\nselect_only = true\n",
    );
    measure_of_junk: message(
        "[database]\nengine = \"sqlite\"\n[workload]\nkind = \"junk\"\n[plan]\nmeasure = \"5s\"\n",
    );
    error_limit_without_sign: message("[workload]\nerror_limit = 1\n");
    not_toml: message("[workload]\nkind = oltp_mix\n");
    key_twice: message("[workload]\nclients = 8\nclients = 16\n");
    no_layout: message_with("name = \"empty\"\n", &[]);
    layout_in_single_brackets: message_with("[layout]\nname = \"a\"\n", &[]);
    layout_without_name: message_with("[[layout]]\npath = \".\"\n", &[]);
    layouts_of_one_name: message(LAYOUT);
    void_comparison: message("[[layout]]\nname = \"fast\"\ndatabase = { write_sync = \"checkpoint\" }\n");
    slaves_of_two_writers: message_with(
        "[database]\nwriters = 2\n[[layout]]\nname = \"slaves\"\nio = { method = \"slaves\" }\n",
        &[],
    );
    slaves_without_the_method: message("[[layout]]\nname = \"a\"\nio = { slaves = 4 }\n");
    buffered_odm: message("[[layout]]\nname = \"a\"\nio = { method = \"odm\", caching = \"buffered\" }\n");
    access_path_twice: message(
        "[[layout]]\nname = \"a\"\nio = { filesystemio_options = \"setall\", method = \"async\" }\n",
    );
    override_below_another_setting: message_with(
        "[[layout]]\nname = \"big blocks\"\ndatabase = { block_size = \"32KiB\" }\n[database]\nlog_file_size = \"1MiB\"\n",
        &[],
    );
    empty_file: message_with("", &[]);
    set_out_of_range: message_with(LAYOUT, &["plan.rounds=1", "database.writers=400"]);
    set_misspelt: message_with(LAYOUT, &["database.writer=4"]);
    set_without_value: message_with(LAYOUT, &["database.writers"]);
    set_of_no_layout: message_with(LAYOUT, &["layout.buffered.path=/mnt"]);
}

const TWO_FILES: &str =
    "devices = [{ file = \"a.img\", size = \"1GiB\" }, { file = \"b.img\", size = \"1GiB\" }]";

/// Mistakes that the file alone shows: what is written, the key that is named, and a word of the reason. Nothing is
/// made for any of them, and no server need be installed.
#[test]
fn what_the_file_alone_shows_is_a_mistake_of_the_file() {
    let one = "devices = [{ file = \"a.img\", size = \"1GiB\" }]";
    let layout = |keys: &str| format!("[[layout]]\nname = \"a\"\n{keys}\n");
    let other = |keys: &str| format!("[[layout]]\nname = \"b\"\n{keys}\n");
    let of = |engine: &str, settings: &str| {
        let database = format!("[database]\nengine = \"{engine}\"\n{settings}\n");
        database + &layout("")
    };
    let io = |engine: &str, io: &str| {
        format!("[database]\nengine = \"{engine}\"\n") + &layout(&format!("io = {{ {io} }}"))
    };
    for (text, key, reason) in [
        (
            layout(&format!("{TWO_FILES}\nfilesystem = \"ext4\"")),
            "devices",
            "one device",
        ),
        (
            layout(&format!("{TWO_FILES}\nfilesystem = \"xfs\"")),
            "devices",
            "one device",
        ),
        (
            layout(&format!("{one}\nshare = \"fair\"\nfilesystem = \"ext4\""))
                + &other(&format!("{one}\nshare = \"fair\"\nraw = true")),
            "share",
            "one device",
        ),
        (
            layout(&format!(
                "{one}\nvolume = {{ stripes = 4 }}\nfilesystem = \"ext4\""
            )),
            "volume",
            "at least 4",
        ),
        (
            layout(&format!("{one}\nvolume = {{ mirrors = 1 }}\nraw = true")),
            "volume",
            "at least 2",
        ),
        (
            layout(
                "devices = [{ file = \"a.img\", size = \"1GiB\" }, { file = \"./a.img\", size = \"1GiB\" }]\nraw = true",
            ),
            "devices",
            "named twice",
        ),
        (
            layout(&format!("{one}\nraw = true"))
                + &other("devices = [{ file = \"a.img\", size = \"2GiB\" }]\nraw = true"),
            "devices",
            "named by",
        ),
        (
            layout(&format!("{one}\nshare = \"fair\"\nraw = true"))
                + &other(
                    "devices = [{ file = \"a.img\", size = \"2GiB\" }]\nshare = \"fair\"\nraw = true",
                ),
            "share",
            "same devices",
        ),
        (
            layout("devices = [\"/dev/sd\\ta\"]\nraw = true"),
            "devices",
            "allowed: a list of block devices",
        ),
        (
            of("sqlite", "settings = { no_such = 1 }"),
            "no_such",
            "no setting",
        ),
        (
            of(
                "sqlite",
                "settings = { \"journal_mode=off; drop table x; --\" = 1 }",
            ),
            "journal_mode=off",
            "no setting",
        ),
        (
            of("sqlite", "settings = { journal_mode = \"wall\" }"),
            "journal_mode",
            "allowed",
        ),
        (
            of("postgres", "settings = { data_directory = \"/x\" }"),
            "data_directory",
            "not the experiment's",
        ),
        (
            of("postgres", "settings = { wal_segment_size = \"3MB\" }"),
            "wal_segment_size",
            "power of two",
        ),
        (
            of("mariadb", "settings = { datadir = \"/x\" }"),
            "datadir",
            "not for an experiment",
        ),
        (io("sqlite", "method = \"async\""), "method", "leave io out"),
        (
            io("sqlite", "caching = \"direct\""),
            "caching",
            "leave io out",
        ),
        (io("postgres", "method = \"libaio\""), "method", "no libaio"),
        (io("mariadb", "method = \"sync\""), "method", "I/O threads"),
        (
            io("mariadb", "method = \"slaves\", slaves = 65"),
            "slaves",
            "at most",
        ),
    ] {
        let error = Experiment::parse("wrong.toml", &text, &[]).expect_err(&text);
        let named = error.key().unwrap_or_default();
        assert!(named.contains(key), "{named} is not {key}:\n{text}");
        assert!(error.place().is_some(), "{text}");
        let told = shown(&error);
        let told: String = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(told.contains(reason), "{told}\n{text}");
    }
}

#[test]
fn sqlite_on_devices_has_access_paths() {
    let text = "[database]\nengine = \"sqlite\"\n[[layout]]\nname = \"a\"\ndevices = [{ file = \"a.img\", size = \"1GiB\" }]\n\
                raw = true\nio = { method = \"async\" }\n";
    Experiment::parse("right.toml", text, &[]).unwrap();
}

#[test]
fn all_mistakes_are_told_at_once() {
    let text = "\
[database]
engine = \"kernel\"
size = \"a lot\"
buffer_cach = \"64MiB\"
memory = \"16MiB\"
log_file_size = 3

[workload]
read_percent = 140

[plan]
rounds = 0
precision = \"1%\"

[[layout]]
name = \"a\"
io = { caching = \"maybe\", method = \"slaves\" }
database = { writers = 4 }

[[layout]]
name = \"a\"
wal = \"/mnt\"
";
    insta::assert_snapshot!(shown(
        &Experiment::parse("wrong.toml", text, &[]).unwrap_err()
    ));
}

/// A wrong value in [database] is one mistake, however many layouts read it again, and what contradicts the default
/// that is read in its place is none.
#[test]
fn a_mistake_is_told_once_and_nothing_that_follows_from_it() {
    let text = "[database]\nsize = \"a lot\"\nbuffer_cache = \"4GiB\"\n[[layout]]\nname = \"a\"\n[[layout]]\nname = \"b\"\n";
    let error = Experiment::parse("wrong.toml", text, &[]).unwrap_err();
    assert_eq!(error.key(), Some("database.size"));
    assert!(error.others().is_empty(), "{:?}", error.others());
}

#[test]
fn no_such_file() {
    let error = Experiment::read(Path::new("no/such/file.toml"), &[]).expect_err("no such file");
    insta::assert_snapshot!(shown(&error));
}

#[test]
fn no_such_directory() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("wrong.toml");
    std::fs::write(
        &file,
        "[[layout]]\nname = \"fast\"\npath = \"no/such/directory\"\n",
    )
    .unwrap();
    let error = Experiment::read(&file, &[]).expect_err("no such directory");
    let message = shown(&error).replace(&file.display().to_string(), "wrong.toml");
    insta::assert_snapshot!(message);
}

#[test]
fn no_beginning_of_a_right_file_goes_without_an_answer() {
    let text = include_str!("../../../../examples/quickstart.toml");
    let mut mistakes = 0;
    for (end, _) in text.char_indices() {
        if let Err(error) = Experiment::parse("cut.toml", &text[..end], &[]) {
            assert!(error.place().is_some(), "{error}");
            assert!(shown(&error).contains("cut.toml"), "{error}");
            mistakes += 1;
        }
    }
    assert!(
        mistakes > 100,
        "most beginnings end within a setting or before the first layout"
    );
}
