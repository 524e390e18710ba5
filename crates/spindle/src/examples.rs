//! The experiment files of `examples/`, which are in the program: what each asks, what it needs, and copying one.

use std::fmt::Write as _;

use spindle_text::paragraph::wrapped;

/// An experiment file to start from.
pub struct Example {
    /// What it is called: its file's name without `.toml`.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
    /// How long a run takes, about.
    minutes: u32,
    /// Free room that it needs.
    room: &'static str,
    /// What else it needs; empty for an ordinary user with nothing installed.
    needs: &'static str,
}

/// `name => minutes, room, needs`.
macro_rules! examples {
    ($($name:literal => $minutes:literal, $room:literal, $needs:literal;)*) => {
        /// All of them, the simplest first.
        pub const EXAMPLES: &[Example] = &[$(Example {
            name: $name,
            text: include_str!(concat!("../../../examples/", $name, ".toml")),
            minutes: $minutes,
            room: $room,
            needs: $needs,
        },)*];
    };
}

examples! {
    "quickstart" => 4, "1.2 GiB", "";
    "sqlite-journal-modes" => 8, "0.3 GiB", "";
    "tpch-query-times" => 2, "0.1 GiB", "";
    "mariadb-or-kernel" => 6, "0.8 GiB", "";
    "postgres-io-method" => 6, "1.9 GiB", "PostgreSQL 18";
    "tpcb-pgbench" => 4, "1.6 GiB", "PostgreSQL";
    "sysbench-postgres" => 3, "0.8 GiB", "PostgreSQL";
    "tpcc-postgres" => 6, "2.6 GiB", "PostgreSQL";
    "mariadb-flush-method" => 7, "0.9 GiB", "MariaDB";
    "server-by-url" => 3, "none", "two servers of yours";
    "raw-or-filesystem" => 3, "1.9 GiB", "root";
    "tpcc-raw-or-filesystem" => 2, "2.5 GiB", "root";
    "ext4-xfs-asm" => 2, "3 GiB", "root";
    "file-manager" => 4, "2.3 GiB", "root";
    "disks-or-solid-state" => 2, "1.4 GiB", "root";
    "asm-or-lvm" => 2, "2.4 GiB", "root, device-mapper and LVM";
    "junk-asm-or-lvm" => 2, "2.4 GiB", "root, device-mapper and LVM";
    "tpch-kernel" => 2, "2.8 GiB", "root";
    "dss-asm-or-lvm" => 2, "1.6 GiB", "root, device-mapper and LVM";
    "postgres-ext4-xfs-btrfs" => 5, "4.4 GiB", "root, PostgreSQL";
    "postgres-wal-device" => 4, "4.9 GiB", "root, PostgreSQL";
    "mariadb-raw" => 5, "3.7 GiB", "root, MariaDB";
    "sqlite-raw" => 3, "0.9 GiB", "root, the feature sqlite-devices";
    "power-cut" => 30, "41 GiB", "root, device-mapper; run by `spindle powercut`";
}

/// Paths in `workloads`.
macro_rules! scripts {
    ($($path:literal)*) => {
        /// Scripts of examples: the path in `workloads`, and the text.
        const SCRIPTS: &[(&str, &str)] = &[$(($path, include_str!(concat!("../../../workloads/", $path))),)*];
    };
}

scripts! {
    "sysbench/check.sql"
    "sysbench/oltp_read_write.sql"
    "sysbench/postgres.sql"
    "sysbench/rows.sql"
}

/// Where scripts are, seen from `examples`, and where a copy has them.
const BESIDE_EXAMPLES: &str = "../workloads/";
const BESIDE_COPIES: &str = "workloads/";

impl Example {
    /// The file as it is where it is copied to, with its scripts in a folder there.
    pub fn copy(&self) -> String {
        self.text.replace(BESIDE_EXAMPLES, BESIDE_COPIES)
    }

    /// The scripts of a copy, each with its path beside it and its text.
    pub fn scripts(&self) -> Vec<(String, &'static str)> {
        let named = SCRIPTS
            .iter()
            .filter(|(path, _)| self.text.contains(&format!("{BESIDE_EXAMPLES}{path}")));
        let copied = named.map(|(path, text)| (format!("{BESIDE_COPIES}{path}"), *text));
        copied.collect()
    }

    /// What it asks: the first question of its first paragraph.
    pub fn question(&self) -> String {
        let comment = self.text.lines().map_while(|line| line.strip_prefix('#'));
        let comment: Vec<&str> = comment
            .map(str::trim)
            .take_while(|line| !line.is_empty())
            .collect();
        let comment = comment.join(" ");
        let end = comment.find('?').map_or(comment.len(), |end| end + 1);
        comment[..end].to_owned()
    }
}

/// The one of this name, with or without `.toml`.
pub fn find(name: &str) -> Option<&'static Example> {
    let name = name.strip_suffix(".toml").unwrap_or(name);
    EXAMPLES.iter().find(|example| example.name == name)
}

/// A paragraph for each.
pub fn list() -> String {
    let mut text = String::new();
    for example in EXAMPLES {
        let needs = match example.needs {
            "" => String::new(),
            needs => format!("; needs {needs}"),
        };
        let (name, minutes, room) = (example.name, example.minutes, example.room);
        let _ = writeln!(text, "{name}: about {minutes} min, room {room}{needs}");
        for line in wrapped(&example.question(), 76) {
            let _ = writeln!(text, "    {line}");
        }
    }
    text.push_str("\nCopy one, change it, look what it would take, run it:\n");
    text.push_str("  spindle examples --copy quickstart\n  spindle plan quickstart.toml\n  spindle run quickstart.toml\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_experiment::Experiment;

    #[test]
    fn every_example_is_in_the_program_and_says_what_it_asks() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
        let files = std::fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = files.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(".toml"));
        assert_eq!(names.len(), EXAMPLES.len(), "{names:?}");
        for example in EXAMPLES {
            assert!(names.contains(&format!("{}.toml", example.name)));
            assert!(
                example.question().ends_with('?'),
                "{}: {}",
                example.name,
                example.question()
            );
            let path = format!("{directory}/{}.toml", example.name);
            Experiment::parse(&path, example.text, &[])
                .unwrap_or_else(|error| panic!("{}: {error}", example.name));
        }
        insta::assert_snapshot!(list());
        assert_eq!(find("quickstart.toml").unwrap().name, "quickstart");
    }
}
