//! The parts of a result that belong together, found by their case or load level: the only place that joins them.

use std::path::{Component, Path, PathBuf};

use super::machine::DataPath;
use super::{
    Case, CaseId, Layout, LoadLevel, NoiseFloor, Pair, PairComparison, Ranking, RunResult,
    StackKind,
};

impl RunResult {
    /// The most that the page cache held of the datafiles when a trial ended, bytes, where that alone is more than the
    /// budget of memory. A server's sessions are allowed more than they take, and the rest becomes page cache.
    pub fn beyond_budget_bytes(&self) -> Option<u64> {
        let budget_bytes = self.memory_budget_bytes?;
        let trials = self.cases.iter().flat_map(|case| &case.trials);
        let held_bytes = trials.filter_map(|trial| trial.audit.page_cache_bytes_at_end);
        held_bytes.max().filter(|bytes| *bytes > budget_bytes)
    }

    /// Whether every case had to do with the same memory.
    pub fn was_memory_held(&self) -> bool {
        self.memory_budget_bytes.is_some() && self.beyond_budget_bytes().is_none()
    }

    /// The case of this name.
    pub fn case(&self, id: &CaseId) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == *id)
    }

    /// Where the files of a layout lie, as the machine was looked at: of places within each other the innermost. `None`
    /// where that is not known.
    pub fn place_of(&self, layout: &Layout) -> Option<&DataPath> {
        let places = &self.machine.as_ref()?.data_paths;
        let parts = Path::new(&layout.path).components();
        let path: PathBuf = parts.filter(|part| *part != Component::CurDir).collect();
        match (places.as_slice(), path.as_os_str().is_empty()) {
            ([only], true) => Some(only),
            (_, true) => None,
            // The experiment may name a directory from where it stands itself.
            _ => {
                let holds_it = |place: &&DataPath| {
                    let place = Path::new(&place.path);
                    path.starts_with(place) || (path.is_relative() && place.ends_with(&path))
                };
                let depth = |place: &&DataPath| Path::new(&place.path).components().count();
                places.iter().filter(holds_it).max_by_key(depth)
            }
        }
    }

    /// The devices of a case's layout, and how they were made slower; `None` when they are not known.
    pub(super) fn devices_of(&self, case: &Case) -> Option<(Vec<&str>, &[String])> {
        let layout = self.layout_of(case)?;
        let parts = layout.stack.iter().flatten();
        let devices = parts.filter(|part| part.kind == StackKind::Device);
        let mut names: Vec<&str> = devices.map(|part| part.title.as_str()).collect();
        if names.is_empty() {
            names.push(&self.place_of(layout)?.device.as_ref()?.name);
        }
        Some((names, &layout.emulated))
    }

    /// The cases that compete at a load level, in the order of [`RunResult::cases`].
    pub fn cases_at(&self, load: LoadLevel) -> impl Iterator<Item = &Case> {
        let cases = self.cases.iter();
        cases.filter(move |case| case.id.load == load)
    }

    /// The best case of a load level against every other.
    pub fn verdicts_of(&self, ranking: &Ranking) -> impl Iterator<Item = &PairComparison> {
        let load = ranking.load;
        let verdicts = self.verdicts.iter();
        verdicts.filter(move |verdict| verdict.cases.load == load)
    }

    /// Every case of a load level beside every other.
    pub fn pairs_of(&self, ranking: &Ranking) -> impl Iterator<Item = &Pair> {
        let load = ranking.load;
        let pairs = self.pairs.iter();
        pairs.filter(move |pair| pair.cases.load == load)
    }

    /// The machine's own noise at a load level, where it was looked at.
    pub fn noise_at(&self, load: LoadLevel) -> Option<&NoiseFloor> {
        let mut noise = self.noise.iter();
        noise.find(|noise| noise.case.load == load)
    }

    /// The cases of each load level, in the order of [`RunResult::cases`]: only cases of one group were compared with
    /// each other.
    pub fn groups(&self) -> Vec<Vec<&Case>> {
        let mut levels: Vec<LoadLevel> = Vec::new();
        for case in &self.cases {
            if !levels.contains(&case.id.load) {
                levels.push(case.id.load);
            }
        }
        let groups = levels.into_iter();
        groups.map(|load| self.cases_at(load).collect()).collect()
    }

    /// The same, of the cases that take part in verdicts; a group may be empty.
    pub fn compared_groups(&self) -> Vec<Vec<&Case>> {
        let mut groups = self.groups();
        for group in &mut groups {
            group.retain(|case| case.is_compared());
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::Machine;
    use crate::{build, sample};

    #[test]
    fn a_layout_lies_at_the_innermost_place() {
        let place = |path: &str| DataPath {
            path: path.to_owned(),
            ..DataPath::default()
        };
        let mut result = build(&sample::record(&[("a", &[1.0])])).unwrap();
        result.machine = Some(Machine {
            data_paths: ["/srv", "/srv/data", "/mnt"].map(place).into(),
            ..Machine::default()
        });
        let mut layout = result.layouts[0].clone();
        let mut found = |path: &str| {
            layout.path = path.to_owned();
            let place = result.place_of(&layout);
            place.map(|place| place.path.as_str().to_owned())
        };
        assert_eq!(found("/srv/data/x").as_deref(), Some("/srv/data"));
        assert_eq!(found("/srv/database").as_deref(), Some("/srv"));
        assert_eq!(found("./data").as_deref(), Some("/srv/data"));
        assert_eq!(found("/home"), None);
    }
}
