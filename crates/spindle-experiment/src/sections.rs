//! The sections of the experiment file and the keys they understand, as what reads them asks for them: for who changes
//! a file before it is read, and for who wrote a key into another section.

use crate::access_path::{AccessPath, Caching, Method, read_access_path};
use crate::changes::Known;
use crate::database::{Database, Inherited, SharedDatabase};
use crate::document::DocumentTable;
use crate::layout::{self, Layout};
use crate::limit::{Delay, Rates};
use crate::load_machine::LoadMachine;
use crate::plan::Plan;
use crate::reader::{keys_asked_by, keys_in};
use crate::workload::{self, Transactions, WorkloadChoice};

/// How people know the section of the database.
const DATABASE_SECTION: &str = "[database]";
/// How people know the section of a layout.
const LAYOUT_SECTION: &str = "[[layout]]";
/// How the name of a section of one kind of workload begins.
const OF_KIND: &str = "[workload] with kind = ";

/// What those need to know who change a file before it is read.
pub(crate) fn known() -> Known {
    let sections = keys_by_section();
    let keys_of = |wanted: &str| {
        let of_section = sections.iter().filter(|(section, _)| section == wanted);
        of_section.flat_map(|(_, keys)| keys).copied().collect()
    };
    Known {
        layout_keys: keys_of(LAYOUT_SECTION),
        database_keys: keys_of(DATABASE_SECTION),
        counted: workload::kinds_that(Transactions::are_counted),
    }
}

/// The sections of the file and the keys they understand.
pub(crate) fn keys_by_section() -> Vec<(String, Vec<&'static str>)> {
    let mut database = None;
    let mut sections = vec![(
        DATABASE_SECTION.to_owned(),
        keys_asked_by(|reader| {
            database = Some(Database::read(reader, Inherited::default()));
        }),
    )];
    let database = database.expect("it was read");
    sections.push(("[plan]".to_owned(), keys_asked_by(Plan::read)));
    for (kind, keys) in workload::keys_by_kind() {
        sections.push((format!("{OF_KIND}\"{kind}\""), keys));
    }
    sections.push((
        "[workload]".to_owned(),
        keys_asked_by(|reader| WorkloadChoice::read(reader, &database)),
    ));
    let shared = SharedDatabase {
        database: &database,
        table: &DocumentTable::EMPTY,
        inherited: Inherited::default(),
    };
    sections.push((
        LAYOUT_SECTION.to_owned(),
        keys_asked_by(|reader| Layout::read(reader, &shared)),
    ));
    let io = AccessPath::new(Caching::Buffered, Method::Sync);
    sections.push((
        "the io table of a [[layout]]".to_owned(),
        keys_asked_by(|reader| read_access_path(reader, io)),
    ));
    sections.extend(layout::keys_of_tables());
    sections.push(("[[load]]".to_owned(), keys_asked_by(LoadMachine::read)));
    sections.push((
        "the limit table of a [[layout]]".to_owned(),
        keys_in::<Rates>(),
    ));
    sections.push((
        "the delay table of a [[layout]]".to_owned(),
        keys_in::<Delay>(),
    ));
    sections
}

/// The section that a key belongs to, for a person who wrote it in another; of workloads, each kind that has it.
pub(crate) fn home_of(key: &str) -> Option<String> {
    let sections = keys_by_section().into_iter();
    let homes = sections.filter(|(_, keys)| keys.contains(&key));
    let homes: Vec<String> = homes.map(|(section, _)| section).collect();
    let first = homes.first()?;
    let kinds: Vec<&str> = homes
        .iter()
        .filter_map(|home| home.strip_prefix(OF_KIND))
        .collect();
    Some(match kinds.as_slice() {
        [before @ .., last] if !before.is_empty() && first.starts_with(OF_KIND) => {
            format!("{OF_KIND}{} or {last}", before.join(", "))
        }
        _ => first.clone(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_of_several_workloads_is_told_with_all_of_them() {
        assert!(home_of("scale").unwrap().ends_with("\"tpch\" or \"tpcb\""));
    }
}
