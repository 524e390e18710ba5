//! The parts of a result that belong together, found by their case or load level: the only place that joins them.

use super::{Case, CaseId, Comparison, Load, NoiseFloor, Pair, Ranking, RunResult};

impl RunResult {
    /// The case of this name.
    pub fn case(&self, id: &CaseId) -> Option<&Case> {
        self.cases.iter().find(|case| case.id == *id)
    }

    /// The cases that compete at a load level, in the order of [`RunResult::cases`].
    pub fn cases_at(&self, load: Load) -> impl Iterator<Item = &Case> {
        let cases = self.cases.iter();
        cases.filter(move |case| case.id.load == load)
    }

    /// The best case of a load level against every other.
    pub fn verdicts_of(&self, ranking: &Ranking) -> impl Iterator<Item = &Comparison> {
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
    pub fn noise_at(&self, load: Load) -> Option<&NoiseFloor> {
        let mut noise = self.noise.iter();
        noise.find(|noise| noise.case.load == load)
    }

    /// The cases of each load level, in the order of [`RunResult::cases`]: only cases of one group were compared with
    /// each other.
    pub fn groups(&self) -> Vec<Vec<&Case>> {
        let mut levels: Vec<Load> = Vec::new();
        for case in &self.cases {
            if !levels.contains(&case.id.load) {
                levels.push(case.id.load);
            }
        }
        let groups = levels.into_iter();
        groups.map(|load| self.cases_at(load).collect()).collect()
    }
}
