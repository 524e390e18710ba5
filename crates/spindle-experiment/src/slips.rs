//! Tests that a file with several slips has all of them told at once, and nothing that only follows from one: each slip
//! together with each other, and all together, for each kind of database.

use std::collections::BTreeSet;

use super::Experiment;

/// A file without fault, in sections; slips are lines that are added to one of them or replace a line.
struct Kind {
    name: &'static str,
    /// Heading and lines.
    sections: &'static [(&'static str, &'static [&'static str])],
    slips: &'static [Slip],
}

/// What is written in which section, and what is told of it; what may also be told stands behind a `|`.
struct Slip {
    section: &'static str,
    line: &'static str,
    told: &'static str,
}

const fn slip(section: &'static str, line: &'static str, told: &'static str) -> Slip {
    Slip {
        section,
        line,
        told,
    }
}

const IMAGE: &str = "devices = [{ file = \"image\", size = \"1GiB\" }]";

const KERNEL: Kind = Kind {
    name: "kernel",
    sections: &[
        ("", &["seed = 7"]),
        (
            "[database]",
            &[
                "engine = \"kernel\"",
                "size = \"1GiB\"",
                "buffer_cache = \"16MiB\"",
            ],
        ),
        ("[workload]", &["kind = \"oltp_mix\"", "clients = [8, 16]"]),
        (
            "[plan]",
            &["rounds = 5", "measure = \"10s\"", "warmup = \"2s\""],
        ),
        ("[[layout]] # 1", &["name = \"one\"", "path = \"/a\""]),
        (
            "[[layout]] # 2",
            &[
                "name = \"two\"",
                "path = \"/b\"",
                "io = { method = \"async\" }",
            ],
        ),
        (
            "[[layout]] # 3",
            &["name = \"three\"", IMAGE, "filesystem = \"xfs\""],
        ),
        (
            "[[layout]] # 4",
            &[
                "name = \"four\"",
                "devices = [{ file = \"other\", size = \"1GiB\" }]",
                "filesystem = \"ext4\"",
            ],
        ),
        ("[[layout]] # 5", &["name = \"five\"", "path = \"/c\""]),
        (
            "[[layout]] # 6",
            &[
                "name = \"six\"",
                "devices = [\"/dev/f\"]",
                "filesystem = \"xfs\"",
            ],
        ),
    ],
    slips: &[
        slip("", "seed = -1", "seed is -1"),
        slip("", "nam = \"x\"", "nam is not a setting"),
        slip("[database]", "datafiles = 0", "database.datafiles is 0"),
        slip(
            "[database]",
            "memory = \"8MiB\"",
            "memory is 8 MiB, less than the buffer cache",
        ),
        slip(
            "[database]",
            "settings = { work_mem = \"8MB\" }",
            "settings does not apply to engine",
        ),
        slip(
            "[database]",
            "bin_dir = \"/usr\"",
            "bin_dir does not apply to engine",
        ),
        slip(
            "[database]",
            "redo_io = { caching = \"buffered\", method = \"odm\" }",
            "ODM is never buffered",
        ),
        slip("[workload]", "clients = [1, 1]", "workload.clients is"),
        slip(
            "[workload]",
            "read_percent = 101",
            "workload.read_percent is 101",
        ),
        slip(
            "[workload]",
            "reconnect = true",
            "reconnect does not apply to engine",
        ),
        slip(
            "[workload]",
            "arrivals = \"even\"",
            "arrivals is set and rate is not",
        ),
        slip("[plan]", "rounds = 0", "plan.rounds is 0"),
        slip("[plan]", "measure = \"0s\"", "plan.measure is"),
        slip(
            "[plan]",
            "warmup_max = \"9s\"",
            "warmup_max is set, and warmup is not",
        ),
        slip(
            "[plan]",
            "restore = \"reload\"",
            "cannot be restored by reload",
        ),
        slip(
            "[vary]",
            "plan.rounds = [3, 5]",
            "plan.rounds cannot be varied",
        ),
        slip(
            "[[layout]] # 1",
            "io = { caching = \"buffered\", method = \"odm\" }",
            "ODM is never buffered",
        ),
        slip(
            "[[layout]] # 1",
            "delay = { read_us = -5 }",
            "delay.read_us is -5",
        ),
        slip("[[layout]] # 1", "limit = {}", "limit says nothing"),
        slip(
            "[[layout]] # 2",
            "io = { method = \"async\", slaves = 3 }",
            "I/O slaves have nothing to do with",
        ),
        slip("[[layout]] # 2", "price = \"cheap\"", "is not a price"),
        slip(
            "[[layout]] # 2",
            "placement = { redo = \"nowhere\" }",
            "files are placed on \"nowhere\"",
        ),
        slip(
            "[[layout]] # 4",
            "devices = [{ file = \"image\", size = \"2GiB\" }]",
            "layout \"four\" cannot be made|layout \"three\" cannot be made",
        ),
        slip(
            "[[layout]] # 3",
            "volume = { stripes = 4 }",
            "layout \"three\" cannot be made",
        ),
        slip(
            "[[layout]] # 6",
            "diskgroup = {}",
            "devices become one thing only",
        ),
        slip(
            "[[layout]] # 5",
            "name = \"one\"",
            "two layouts are called \"one\"",
        ),
        slip("[[layout]] # 5", "raw = true", "raw needs devices"),
        slip(
            "[[layout]] # 5",
            "database = { size = \"2GiB\" }",
            "size must be equal in every case",
        ),
        slip(
            "[[load]]",
            "host = \"local\"",
            "load machines do not apply to layout",
        ),
    ],
};

const POSTGRES: Kind = Kind {
    name: "PostgreSQL",
    sections: &[
        ("[database]", &["engine = \"postgres\""]),
        ("[workload]", &["kind = \"tpcb\"", "scale = 100"]),
        ("[plan]", &["rounds = 5"]),
        ("[[layout]] # 1", &["name = \"one\"", "path = \"/a\""]),
        ("[[layout]] # 2", &["name = \"two\"", "path = \"/b\""]),
    ],
    slips: &[
        slip(
            "[database]",
            "size = \"1GiB\"",
            "size is set, and the workload says",
        ),
        slip(
            "[database]",
            "block_size = \"8KiB\"",
            "block_size does not apply to engine",
        ),
        slip(
            "[database]",
            "writers = 2",
            "writers does not apply to engine",
        ),
        slip(
            "[database]",
            "name = \"shop\"",
            "name is set, and load copies no server",
        ),
        slip(
            "[database]",
            "agent = \"ssh\"",
            "agent is set, and url is not",
        ),
        slip(
            "[database]",
            "settings = { port = 5 }",
            "settings.port cannot be set so",
        ),
        slip(
            "[workload]",
            "room_for = 5000000",
            "room_for does not apply",
        ),
        slip("[workload]", "error_limit = 3", "workload.error_limit is 3"),
        slip(
            "[workload]",
            "rate = \"auto\"",
            "rate is \"auto\" and p99 is not set",
        ),
        slip(
            "[plan]",
            "interleave = \"1s\"",
            "interleave is for the embedded database|interleave cannot be combined",
        ),
        slip("[plan]", "margin = 3", "plan.margin is 3"),
        slip(
            "[[layout]] # 1",
            "io = { method = \"odm\" }",
            "only the embedded database works through",
        ),
        slip(
            "[[layout]] # 2",
            "database = { engine = \"sqlite\" }",
            "engine must be equal in every case",
        ),
        slip(
            "[[layout]] # 2",
            "devices = [\"sdb\"]",
            "is not a path of a device",
        ),
        slip("[[layout]] # 2", "candidate = 3", "candidate is 3"),
    ],
};

const MARIADB: Kind = Kind {
    name: "MariaDB",
    sections: &[
        ("[database]", &["engine = \"mariadb\""]),
        ("[workload]", &["kind = \"tpch\"", "scale = 1"]),
        ("[plan]", &["rounds = 5"]),
        ("[[layout]] # 1", &["name = \"one\"", "path = \"/a\""]),
        ("[[layout]] # 2", &["name = \"two\"", "path = \"/b\""]),
    ],
    slips: &[
        slip(
            "[database]",
            "commit = \"nowait\"",
            "commit does not apply to engine",
        ),
        slip(
            "[database]",
            "buffer_cache = \"1KiB\"",
            "database.buffer_cache is",
        ),
        slip(
            "[workload]",
            "think_time = \"1s\"",
            "think_time does not apply to kind",
        ),
        slip("[workload]", "p99 = \"20ms\"", "p99 does not apply to kind"),
        slip(
            "[workload]",
            "slaves = 3",
            "slaves does not apply to a database that speaks SQL",
        ),
        slip(
            "[plan]",
            "measure = \"5s\"",
            "measure does not apply to kind",
        ),
        slip(
            "[plan]",
            "precision = \"2%\"",
            "precision is set, and neither rounds nor runs is",
        ),
        slip(
            "[[layout]] # 1",
            "limit = { read_iops = 1 }",
            "limit.read_iops is 1",
        ),
        slip(
            "[[layout]] # 2",
            "volume = { thin = true, mirrors = 1 }",
            "a thin volume has no mirrors|volume needs devices",
        ),
    ],
};

const SQLITE: Kind = Kind {
    name: "SQLite",
    sections: &[
        (
            "[database]",
            &["engine = \"sqlite\"", "buffer_cache = \"8MiB\""],
        ),
        (
            "[workload]",
            &["kind = \"tpch\"", "scale = 0.1", "clients = 1"],
        ),
        ("[plan]", &["rounds = 5"]),
        ("[[layout]] # 1", &["name = \"one\"", "path = \"/a\""]),
        ("[[layout]] # 2", &["name = \"two\"", "path = \"/b\""]),
    ],
    slips: &[
        slip(
            "[database]",
            "size = \"1GiB\"",
            "size is set, and the workload says",
        ),
        slip(
            "[database]",
            "datafiles = 4",
            "datafiles does not apply to engine",
        ),
        slip(
            "[database]",
            "settings = { work_mem = \"8MB\" }",
            "settings.work_mem cannot be set so",
        ),
        slip("[workload]", "clients = [1, 1]", "workload.clients is"),
        slip("[workload]", "queries = [23]", "workload.queries is"),
        slip("[plan]", "warmup = \"5s\"", "warmup does not apply to kind"),
        slip(
            "[[layout]] # 1",
            "io = { method = \"odm\" }",
            "only the embedded database works through",
        ),
        slip(
            "[[layout]] # 1",
            "delay = { read_us = -5 }",
            "delay.read_us is -5",
        ),
        slip("[[layout]] # 2", "nane = \"x\"", "nane is not a setting"),
    ],
};

const URL: Kind = Kind {
    name: "a server by url",
    sections: &[
        ("[database]", &["engine = \"postgres\""]),
        ("[workload]", &["kind = \"oltp_mix\"", "clients = 8"]),
        ("[plan]", &["rounds = 5"]),
        (
            "[[layout]] # 1",
            &[
                "name = \"one\"",
                "database = { url = \"postgres://a@h/d\" }",
            ],
        ),
        (
            "[[layout]] # 2",
            &[
                "name = \"two\"",
                "database = { url = \"postgres://a@i/d\" }",
            ],
        ),
        ("[[load]] # 1", &["host = \"ssh://one\""]),
        ("[[load]] # 2", &["host = \"ssh://two\""]),
    ],
    slips: &[
        slip(
            "[database]",
            "memory = \"1GiB\"",
            "memory is set for an existing server",
        ),
        slip(
            "[database]",
            "settings = { work_mem = \"1MB\" }",
            "settings is set for an existing server",
        ),
        slip(
            "[workload]",
            "clients = 1",
            "load machines are too many for clients = 1",
        ),
        slip(
            "[workload]",
            "rate = [\"5/s\", \"5/s\"]",
            "workload.rate is",
        ),
        slip(
            "[plan]",
            "golden_path = \"/g\"",
            "golden_path is set for an existing server",
        ),
        slip(
            "[plan]",
            "restore = \"snapshot\"",
            "cannot be restored by snapshot",
        ),
        slip(
            "[plan]",
            "interleave = \"1s\"",
            "interleave is for the embedded database|plan.interleave does not work with",
        ),
        slip(
            "[[layout]] # 1",
            "path = \"/a\"",
            "path is set for an existing server",
        ),
        slip(
            "[[layout]] # 1",
            "delay = { read_us = 5 }",
            "delay is set for an existing server",
        ),
        slip(
            "[[layout]] # 2",
            "database = { url = \"postgres://a@i/d?sslmode=requir\" }",
            "url cannot be used",
        ),
        slip("[[load]] # 1", "host = \"far\"", "host cannot be used"),
        slip("[[load]] # 2", "weight = 0", "weight is 0"),
        slip(
            "[[load]] # 3",
            "host = \"local\"\nidentity_file = \"k\"",
            "identity_file does not apply",
        ),
    ],
};

/// The key that a line sets.
fn key_of(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

impl Kind {
    /// The file with these slips.
    fn with(&self, slips: &[&Slip]) -> String {
        let mut headings: Vec<&str> = self.sections.iter().map(|(heading, _)| *heading).collect();
        for slip in slips {
            if !headings.contains(&slip.section) {
                headings.push(slip.section);
            }
        }
        let mut text = String::new();
        for heading in headings {
            let own = self.sections.iter().find(|(other, _)| *other == heading);
            let wrong = slips.iter().filter(|slip| slip.section == heading);
            let wrong: Vec<&str> = wrong.map(|slip| slip.line).collect();
            let is_right = |line: &&&str| wrong.iter().all(|wrong| key_of(wrong) != key_of(line));
            let right = own
                .iter()
                .flat_map(|(_, lines)| lines.iter().filter(is_right));
            let lines = right.copied().chain(wrong.iter().copied());
            text.push_str(&format!(
                "{heading}\n{}\n",
                lines.collect::<Vec<_>>().join("\n")
            ));
        }
        text
    }

    /// What a person is told of these slips.
    fn told(&self, slips: &[&Slip]) -> BTreeSet<String> {
        let text = self.with(slips);
        let Err(error) = Experiment::parse("x.toml", &text, &[]) else {
            return BTreeSet::new();
        };
        let others = error.others().iter().map(ToString::to_string);
        [error.to_string()].into_iter().chain(others).collect()
    }

    /// Demands that these slips are told, and nothing else.
    fn demand(&self, slips: &[&Slip]) {
        let told = self.told(slips);
        let text = || format!("{}, told: {told:#?}\n{}", self.name, self.with(slips));
        for slip in slips {
            let first = slip.told.split('|').next().unwrap_or_default();
            let is_told = told.iter().any(|message| message.contains(first));
            assert!(is_told, "{first} is not told. {}", text());
        }
        let is_slip = |message: &&String| {
            let mut parts = slips.iter().flat_map(|slip| slip.told.split('|'));
            parts.any(|part| message.contains(part))
        };
        let follows = told.iter().find(|message| !is_slip(message));
        assert_eq!(follows, None, "{}", text());
    }

    fn demand_all(&self) {
        assert_eq!(self.told(&[]), BTreeSet::new(), "{}", self.with(&[]));
        let set_apart = |one: &Slip, other: &Slip| {
            one.section != other.section || key_of(one.line) != key_of(other.line)
        };
        for (number, one) in self.slips.iter().enumerate() {
            self.demand(&[one]);
            for other in self.slips[..number]
                .iter()
                .filter(|other| set_apart(one, other))
            {
                self.demand(&[one, other]);
            }
        }
    }
}

#[test]
fn all_slips_are_told_for_the_embedded_database() {
    KERNEL.demand_all();
}

#[test]
fn all_slips_are_told_for_postgresql() {
    POSTGRES.demand_all();
}

#[test]
fn all_slips_are_told_for_mariadb() {
    MARIADB.demand_all();
}

#[test]
fn all_slips_are_told_for_sqlite() {
    SQLITE.demand_all();
}

#[test]
fn all_slips_are_told_for_a_server_by_url() {
    URL.demand_all();
}

/// The file of a person who made many slips.
#[test]
fn slips_of_every_section_are_told_in_one_go() {
    let wrong = |kind: &Kind, lines: &[&str]| {
        let is_in = |slip: &&Slip| lines.contains(&key_of(slip.line));
        let slips: Vec<&Slip> = kind.slips.iter().filter(is_in).collect();
        assert!(slips.len() >= lines.len(), "{lines:?}");
        kind.demand(&slips);
    };
    let keys = [
        "rounds", "measure", "memory", "devices", "name", "clients", "price",
    ];
    wrong(&KERNEL, &keys);
    wrong(&SQLITE, &["size", "settings", "clients", "io", "delay"]);
    wrong(
        &URL,
        &[
            "memory",
            "settings",
            "clients",
            "golden_path",
            "path",
            "host",
        ],
    );
}

/// Each has one slip from which much would follow.
#[test]
fn what_follows_from_a_slip_is_not_told() {
    for (text, slip) in [
        (
            "[database]\nengin = \"postgres\"\nsettings = { work_mem = \"8MB\" }\n[workload]\nkind = \"tpcc\"\nprocedures = true\n[[layout]]\nname = \"a\"\n",
            "engin is not a setting",
        ),
        (
            "engine = \"postgres\"\n[database]\nsettings = { work_mem = \"8MB\" }\n[workload]\nreconnect = true\n[[layout]]\nname = \"a\"\n",
            "engine is not a setting",
        ),
        (
            "[databse]\nengine = \"postgres\"\n[workload]\nkind = \"script\"\nscripts = []\n[[layout]]\nname = \"a\"\nio = { method = \"libaio\" }\n",
            "databse is not a setting",
        ),
        (
            "[database]\nengine = \"postgress\"\nsettings = { work_mem = \"8MB\" }\n[workload]\nreconnect = true\n[[layout]]\nname = \"a\"\n",
            "database.engine is",
        ),
        (
            "[workload]\nkind = \"slobb\"\nscan_blocks = 3\nhotspot = {}\n[[layout]]\nname = \"a\"\n",
            "workload.kind is",
        ),
        (
            "[workload]\nknid = \"slob\"\nhotspot = {}\n[[layout]]\nname = \"a\"\n",
            "knid is not a setting",
        ),
        (
            "[[layout]]\nname = \"a\"\nio = { method = \"slave\", slaves = 3 }\n",
            "io.method is",
        ),
        (
            "[[layout]]\nname = \"a\"\nplacement = { redo = \"b\" }\n[[layout]]\nnam = \"b\"\ncandidate = false\n",
            "nam is not a setting",
        ),
        (
            "[[layout]]\nname = \"a\"\nplacment = { redo = \"b\" }\n[[layout]]\nname = \"b\"\ncandidate = false\n",
            "placment is not a setting",
        ),
        (
            "[[layout]]\nname = \"a\"\ndevices = [\"/dev/a\", \"sdb\"]\nvolume = { stripes = 2 }\nraw = true\n",
            "is not a path of a device",
        ),
        (
            "[[layout]]\nname = \"a\"\ndevices = [\"/dev/a\"]\nfilesytem = \"xfs\"\nio = { caching = \"buffered\" }\n",
            "filesytem is not a setting",
        ),
        ("[[layot]]\nname = \"a\"\n", "layot is not a setting"),
        (
            "[database]\nengine = \"postgres\"\n[[layout]]\nname = \"a\"\ndatabase = { url = \"postgres://a@h/d\" }\n[[layout]]\nname = \"b\"\ndatabase = { urll = \"postgres://a@h/e\" }\n[[load]]\nhost = \"ssh://x\"\n",
            "urll is not a setting",
        ),
        (
            "[vary]\nio.method = [\"odm\"]\n[[layout]]\nname = \"a\"\nio = { slaves = 2 }\n",
            "vary.io.method offers no choice",
        ),
        (
            "[database]\nsize = \"2MiB\"\nbuffer_cache = \"2GiB\"\n[workload]\nkind = \"slob\"\nscan_blocks = 1000000\n[[layout]]\nname = \"a\"\n",
            "database.size is",
        ),
        (
            "[database]\nengine = \"sqlite\"\nbuffer_cache = \"8GiB\"\n[workload]\nkind = \"tpch\"\nscale = \"100\"\n[[layout]]\nname = \"a\"\n",
            "workload.scale is",
        ),
        (
            "[plan]\nrounds = \"auo\"\nmax = 12\nprecision = \"2%\"\n[[layout]]\nname = \"a\"\n",
            "plan.rounds is",
        ),
    ] {
        let error = Experiment::parse("x.toml", text, &[]).expect_err(text);
        assert!(error.to_string().contains(slip), "{error}\n{text}");
        let others: Vec<String> = error.others().iter().map(ToString::to_string).collect();
        assert_eq!(others, [""; 0], "{text}");
    }
}

#[test]
fn many_layouts_do_not_hide_a_slip_and_what_is_too_much_is_counted() {
    let layouts = |count: usize| -> String {
        let layout = |number| format!("[[layout]]\nname = \"{number}\"\nprice = \"cheap\"\n");
        (0..count).map(layout).collect()
    };
    let database = "[database]\ndatafiles = 0\nmemory = \"1KiB\"\nwriters = 0\nlog_files = 0\n";
    let told = |text: &str| {
        let error = Experiment::parse("x.toml", text, &[]).unwrap_err();
        let others = error.others().iter().map(ToString::to_string);
        [error.to_string()]
            .into_iter()
            .chain(others)
            .collect::<Vec<_>>()
    };
    let few = told(&format!("{database}{}", layouts(9)));
    assert_eq!(few.len(), 13, "{few:?}");
    let many = told(&format!("{database}{}", layouts(40)));
    assert_eq!(many.len(), 21, "{many:?}");
    assert_eq!(many[20], "24 more mistakes are not shown");
}
