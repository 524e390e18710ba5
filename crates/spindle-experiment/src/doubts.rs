//! Settings that could not be read as they were meant: their values are wrong, they are misspelt, or they stand in the
//! wrong section. What is refused only because of the defaults that were read instead is no separate mistake.

use std::collections::BTreeSet;

/// Stands for every section: a key that was written in the wrong one is doubtful wherever it belongs.
const ANYWHERE: &str = "*.";

/// Keys that are asked for in any section, and tables that hold them.
const HELD: [(&str, &str); 3] = [
    ("*.engine", "database"),
    ("*.url", "database"),
    ("*.url", "layout"),
];

/// Keys in full.
#[derive(Default)]
pub(super) struct Doubts(BTreeSet<String>);

impl Doubts {
    /// Doubts a key, in full.
    pub fn add(&mut self, key: String) {
        self.0.insert(key);
    }

    /// Whether this key, or the table that it stands in, was not read as it was meant, for more reasons than `own`.
    pub fn is_misread(&self, key: &str, own: &[String]) -> bool {
        self.besides(own).any(|doubt| holds(doubt, key))
    }

    fn besides(&self, own: &[String]) -> impl Iterator<Item = &String> {
        self.0.iter().filter(|doubt| !own.contains(doubt))
    }

    /// Whether this key, what it stands in or anything within it was not read as it was meant, for more reasons than
    /// `own`.
    pub fn touch(&self, key: &str, own: &[String]) -> bool {
        // A table that is misread may hold it.
        let is_open = |doubt: &str| HELD.contains(&(key, last_of(doubt)));
        let touches = |doubt: &String| holds(doubt, key) || holds(key, doubt) || is_open(doubt);
        self.besides(own).any(touches)
    }
}

/// The key of this name in any section.
pub(super) fn anywhere(name: &str) -> String {
    format!("{ANYWHERE}{name}")
}

/// Whether `key` is `outer` or stands in it.
fn holds(outer: &str, key: &str) -> bool {
    if let Some(name) = outer.strip_prefix(ANYWHERE) {
        return last_of(key) == name;
    }
    let within = key.strip_prefix(outer);
    within.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn last_of(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_that_is_misread_is_so_with_all_its_keys() {
        let mut doubts = Doubts::default();
        doubts.add("database".to_owned());
        doubts.add("plan.rounds".to_owned());
        doubts.add(anywhere("url"));
        let is_misread = |key| doubts.is_misread(key, &[]);
        let touch = |key| doubts.touch(key, &[]);
        assert!(is_misread("database.engine") && is_misread("plan.rounds"));
        assert!(!is_misread("plan") && touch("plan"));
        assert!(!touch("plan.round") && !touch("databases.engine"));
        assert!(touch("layout.\"a\".database.url") && !touch("workload.curl"));
        assert!(!doubts.is_misread("plan.rounds", &["plan.rounds".to_owned()]));
    }
}
