//! Judges a history: recovers the order of each row's versions from the lists that were read, draws who depends on
//! whom, and looks for what read committed forbids (see `history::Kind`). Depending on others is one of three things
//! (Adya's names): `ww`, writing the version after theirs; `wr`, reading their version; `rw`, writing the version after
//! the one they read. Histories here have some hundred transactions, so circles are found by breadth-first search from
//! each of them: that needs no library of graphs, and gives the shortest circle, which is what people want to see.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use super::history::{Anomaly, Ending, History, Key, Kind, Moment, Step, Transaction, Value};

/// What a scan promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scans {
    /// Each row as last committed when it was come by.
    RowByRow,
    /// All rows as they were committed at one moment.
    OneMoment,
}

/// How one transaction depends on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dependency {
    /// Wrote the version after the other's: the row, the value and the next.
    Ww(Key, Value, Value),
    /// Read the other's version: the row and the value.
    Wr(Key, Value),
}

impl fmt::Display for Dependency {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Dependency::Ww(key, value, next) => {
                write!(formatter, "ww (row {key}: {value}, then {next})")
            }
            Dependency::Wr(key, value) => write!(formatter, "wr (row {key}: {value} was read)"),
        }
    }
}

/// A statement's view: where in each row's order of versions it stood.
struct View {
    reader: usize,
    called: Moment,
    /// Row and how many of its last list's values were seen.
    seen: Vec<(Key, usize)>,
}

/// The verdict on a history.
pub struct Judgement {
    /// Everything that must not be, the worst first.
    pub anomalies: Vec<Anomaly>,
    /// Pairs of transactions of which one depends on the other (`ww` and `wr`): what there was to go wrong.
    pub dependencies: usize,
}

/// Judges a history.
pub fn judge(history: &History, scans: Scans) -> Judgement {
    let mut checker = Checker::new(history);
    checker.judge_last();
    let views = checker.judge_reads(scans);
    checker.judge_circles();
    checker.judge_views(&views);
    checker.anomalies.sort_by_key(|anomaly| anomaly.kind);
    Judgement {
        anomalies: checker.anomalies,
        dependencies: checker.edges.iter().map(BTreeMap::len).sum(),
    }
}

struct Checker<'a> {
    history: &'a History,
    /// Who wrote a value, and to which row.
    writers: BTreeMap<Value, (usize, Key)>,
    /// For each transaction, by row, its values in order.
    appends: Vec<BTreeMap<Key, Vec<Value>>>,
    committed: Vec<bool>,
    /// For each transaction, those that depend on it.
    edges: Vec<BTreeMap<usize, Dependency>>,
    anomalies: Vec<Anomaly>,
}

impl<'a> Checker<'a> {
    fn new(history: &'a History) -> Checker<'a> {
        let mut writers = BTreeMap::new();
        let mut appends = Vec::new();
        for (number, transaction) in history.transactions.iter().enumerate() {
            let mut own: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
            for step in &transaction.steps {
                if let Step::Append(key, value) = *step {
                    own.entry(key).or_default().push(value);
                    let before = writers.insert(value, (number, key));
                    assert!(before.is_none(), "value {value} is appended twice");
                }
            }
            appends.push(own);
        }
        let mut checker = Checker {
            history,
            writers,
            appends,
            committed: Vec::new(),
            edges: vec![BTreeMap::new(); history.transactions.len()],
            anomalies: Vec::new(),
        };
        checker.committed = checker.resolve();
        checker
    }

    /// Who is committed. A transaction whose commit was cut short is if anybody else saw a value of it.
    fn resolve(&self) -> Vec<bool> {
        let mut seen = BTreeSet::new();
        let mut look = |reader: Option<usize>, values: &[Value]| {
            let writers = values.iter().filter_map(|value| self.writers.get(value));
            seen.extend(
                writers
                    .map(|(writer, _)| *writer)
                    .filter(|writer| Some(*writer) != reader),
            );
        };
        for (number, transaction) in self.history.transactions.iter().enumerate() {
            for step in &transaction.steps {
                if let Step::Read { rows, .. } = step {
                    rows.iter()
                        .for_each(|(_, values)| look(Some(number), values));
                }
            }
        }
        self.history
            .last
            .values()
            .for_each(|values| look(None, values));
        let ending = |(number, transaction): (usize, &Transaction)| match transaction.ending {
            Ending::Committed => true,
            Ending::RolledBack => false,
            Ending::Unknown => seen.contains(&number),
        };
        self.history
            .transactions
            .iter()
            .enumerate()
            .map(ending)
            .collect()
    }

    fn name(&self, transaction: usize) -> String {
        format!(
            "T{transaction} of client {}",
            self.history.transactions[transaction].client
        )
    }

    fn note(&mut self, kind: Kind, evidence: String) {
        self.anomalies.push(Anomaly { kind, evidence });
    }

    fn last(&self, key: Key) -> &'a [Value] {
        self.history.last.get(&key).map_or(&[], |values| values)
    }

    /// What is wrong with a list by itself, seen by `who` (nobody's own values among it). False when it says nothing of
    /// the order of versions.
    fn judge_list(&mut self, who: &str, key: Key, values: &[Value]) -> bool {
        let before = self.anomalies.len();
        for (place, value) in values.iter().enumerate() {
            let saw = || format!("{who} saw row {key} as {values:?}");
            if values[..place].contains(value) {
                self.note(
                    Kind::Duplicate,
                    format!("{}: {value} is there twice", saw()),
                );
            }
            match self.writers.get(value) {
                Some(&(writer, row)) if row == key => {
                    if !self.committed[writer] {
                        let writer = self.name(writer);
                        let evidence = format!("{}: {value} is by {writer}, rolled back", saw());
                        self.note(Kind::G1aAbortedRead, evidence);
                    }
                }
                _ => self.note(
                    Kind::ThinAir,
                    format!("{}: nobody wrote {value} there", saw()),
                ),
            }
        }
        self.anomalies.len() == before
    }

    /// The lists in the end: nothing that should not be there, everything that should; from them the order of versions.
    fn judge_last(&mut self) {
        let history = self.history;
        for (&key, values) in &history.last {
            self.judge_list("the last look", key, values);
            for pair in values.windows(2) {
                let writers = [pair[0], pair[1]].map(|value| self.writers.get(&value).copied());
                if let [Some((first, _)), Some((second, _))] = writers
                    && first != second
                {
                    let dependency = Dependency::Ww(key, pair[0], pair[1]);
                    self.edges[first].entry(second).or_insert(dependency);
                }
            }
        }
        for writer in 0..history.transactions.len() {
            if !self.committed[writer] {
                continue;
            }
            for (key, values) in self.appends[writer].clone() {
                let last = self.last(key);
                for value in values.iter().filter(|value| !last.contains(value)) {
                    let name = self.name(writer);
                    let evidence =
                        format!("row {key} is {last:?} in the end, without {value} of {name}");
                    self.note(Kind::LostAppend, evidence);
                }
            }
        }
    }

    /// Every read of every transaction, also of those rolled back: while it runs, none knows how it will end.
    fn judge_reads(&mut self, scans: Scans) -> Vec<View> {
        let mut views = Vec::new();
        for (reader, transaction) in self.history.transactions.iter().enumerate() {
            let mut own: BTreeMap<Key, Vec<Value>> = BTreeMap::new();
            for step in &transaction.steps {
                match step {
                    Step::Append(key, value) => own.entry(*key).or_default().push(*value),
                    Step::Read { called, rows } => {
                        let no_own = Vec::new();
                        let seen = rows.iter().filter_map(|(key, values)| {
                            let own = own.get(key).unwrap_or(&no_own);
                            Some((*key, self.judge_read(reader, *key, values, own)?))
                        });
                        let seen: Vec<_> = seen.collect();
                        let view = |seen| View {
                            reader,
                            called: *called,
                            seen,
                        };
                        match scans {
                            Scans::OneMoment => views.push(view(seen)),
                            Scans::RowByRow => {
                                views.extend(seen.into_iter().map(|seen| view(vec![seen])));
                            }
                        }
                    }
                }
            }
        }
        views
    }

    /// One row that `reader` saw after its `own` appends to it. Returns how many committed values it saw, if the list
    /// is in order.
    fn judge_read(
        &mut self,
        reader: usize,
        key: Key,
        values: &[Value],
        own: &[Value],
    ) -> Option<usize> {
        let who = self.name(reader);
        let Some(others) = values.strip_suffix(own) else {
            let evidence =
                format!("{who} saw row {key} as {values:?} after it had appended {own:?}");
            self.note(Kind::OwnWriteUnseen, evidence);
            return None;
        };
        if !self.judge_list(&who, key, others) {
            return None;
        }
        if let Some(value) = others.last() {
            let (writer, _) = self.writers[value];
            if self.appends[writer][&key].last() != Some(value) {
                let (name, all) = (self.name(writer), &self.appends[writer][&key]);
                let evidence =
                    format!("{who} saw row {key} as {values:?}, but {name} appended {all:?}");
                self.note(Kind::G1bIntermediateRead, evidence);
                return None;
            }
            if self.committed[reader] && writer != reader {
                let dependency = Dependency::Wr(key, *value);
                self.edges[writer].entry(reader).or_insert(dependency);
            }
        }
        let last = self.last(key);
        if !last.starts_with(others) {
            let evidence = format!("{who} saw row {key} as {others:?}, which ended as {last:?}");
            self.note(Kind::OtherOrder, evidence);
            return None;
        }
        Some(others.len())
    }

    /// The shortest way from one transaction back to itself by dependencies that `allowed` lets pass.
    fn circle(&self, allowed: impl Fn(&Dependency) -> bool) -> Option<String> {
        let from = 0..self.edges.len();
        let circles = from.filter_map(|start| self.path(start, start, &allowed));
        let shortest = circles.min_by_key(Vec::len)?;
        Some(self.told(&shortest))
    }

    /// The shortest way between two transactions, of at least one step.
    fn path(
        &self,
        from: usize,
        to: usize,
        allowed: impl Fn(&Dependency) -> bool,
    ) -> Option<Vec<(usize, Dependency, usize)>> {
        let mut came: BTreeMap<usize, (usize, Dependency)> = BTreeMap::new();
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for (&next, dependency) in &self.edges[at] {
                if !allowed(dependency) || came.contains_key(&next) {
                    continue;
                }
                came.insert(next, (at, *dependency));
                queue.push_back(next);
            }
            if came.contains_key(&to) {
                break;
            }
        }
        let mut path = Vec::new();
        let mut at = to;
        while path.is_empty() || at != from {
            let (before, dependency) = *came.get(&at)?;
            path.push((before, dependency, at));
            at = before;
        }
        path.reverse();
        Some(path)
    }

    fn told(&self, path: &[(usize, Dependency, usize)]) -> String {
        let step = |(from, dependency, to): &(usize, Dependency, usize)| {
            format!(
                "\n  {} -> {}: {dependency}",
                self.name(*from),
                self.name(*to)
            )
        };
        path.iter().map(step).collect()
    }

    fn judge_circles(&mut self) {
        if let Some(circle) = self.circle(|dependency| matches!(dependency, Dependency::Ww(..))) {
            self.note(Kind::G0WriteCycle, circle);
        } else if let Some(circle) = self.circle(|_| true) {
            self.note(Kind::G1cCircularFlow, circle);
        }
    }

    /// For each transaction, those that must have been committed after it: by dependency, or because their commit was
    /// called when its own was over.
    fn later(&self) -> Vec<Vec<bool>> {
        let transactions = &self.history.transactions;
        let is_later = |from: usize, to: usize| {
            let over = transactions[from].commit_over;
            self.edges[from].contains_key(&to)
                || self.committed[to] && over > 0 && over < transactions[to].commit_called
        };
        let count = transactions.len();
        let direct: Vec<Vec<usize>> = (0..count)
            .map(|from| {
                (0..count)
                    .filter(|to| self.committed[from] && is_later(from, *to))
                    .collect()
            })
            .collect();
        let reached = |from: usize| {
            let mut reached = vec![false; count];
            let mut left = vec![from];
            while let Some(at) = left.pop() {
                if !std::mem::replace(&mut reached[at], true) {
                    left.extend(&direct[at]);
                }
            }
            reached
        };
        (0..count).map(reached).collect()
    }

    /// Every statement saw the state after some number of commits, and no older one than when it was called: what it
    /// did not see of a row was not committed before anything that it did see, nor before it was called. (With `rw`
    /// from the statement to what it did not see this is Adya's G-single; and real time counts.)
    fn judge_views(&mut self, views: &[View]) {
        let later = self.later();
        for view in views {
            let value = |key: Key, place: usize| {
                let value = *self.last(key).get(place)?;
                let (writer, _) = *self.writers.get(&value)?;
                (self.committed[writer] && writer != view.reader).then_some((key, value, writer))
            };
            let seen = view.seen.iter().filter(|(_, count)| *count > 0);
            let seen: Vec<_> = seen
                .filter_map(|(key, count)| value(*key, count - 1))
                .collect();
            let unseen = view
                .seen
                .iter()
                .filter_map(|(key, count)| value(*key, *count));
            let old = unseen.into_iter().find_map(|unseen| {
                let over = self.history.transactions[unseen.2].commit_over;
                let because = if over > 0 && over < view.called {
                    "committed before the statement was called".to_string()
                } else {
                    let (key, value, writer) = seen.iter().find(|seen| later[unseen.2][seen.2])?;
                    let writer = self.name(*writer);
                    format!("committed before {value} of row {key} by {writer}, which it saw")
                };
                Some((unseen, because))
            });
            if let Some(((key, value, writer), because)) = old {
                let (reader, writer) = (self.name(view.reader), self.name(writer));
                let evidence =
                    format!("{reader} did not see {value} of row {key} by {writer}, {because}");
                self.note(Kind::OldView, evidence);
            }
        }
    }
}
