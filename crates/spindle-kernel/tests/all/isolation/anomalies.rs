//! The checker itself, on histories made by hand: each anomaly is found, and named, and what read committed allows is
//! not.

use super::checker::{Scans, judge};
use super::history::{Ending, History, Key, Kind, Step, Value};

/// A step as the tests write it.
#[derive(Clone, Copy)]
enum Do<'a> {
    Append(Key, Value),
    Read(&'a [(Key, &'a [Value])]),
}
use Do::{Append, Read};
use Ending::{Committed, RolledBack, Unknown};

impl History {
    /// A transaction that begins when those before have ended.
    fn add(&mut self, ending: Ending, steps: &[Do<'_>]) -> usize {
        let number = self.begin(self.transactions.len());
        self.steps(number, steps);
        self.end(number, ending);
        number
    }

    fn steps(&mut self, number: usize, steps: &[Do<'_>]) {
        for step in steps {
            let called = self.tick();
            let step = match *step {
                Append(key, value) => Step::Append(key, value),
                Read(rows) => {
                    let rows = rows.iter().map(|(key, values)| (*key, values.to_vec()));
                    Step::Read {
                        called,
                        rows: rows.collect(),
                    }
                }
            };
            self.transactions[number].steps.push(step);
        }
    }

    fn end(&mut self, number: usize, ending: Ending) {
        if ending != RolledBack {
            self.call_commit(number);
        }
        match ending {
            Committed => self.committed(number),
            Unknown => self.power_cut(),
            RolledBack => {}
        }
    }

    /// Transactions that are all under way together and commit in this order.
    fn together(&mut self, all: &[&[Do<'_>]]) {
        let numbers: Vec<_> = all
            .iter()
            .map(|_| self.begin(self.transactions.len()))
            .collect();
        for (number, steps) in numbers.iter().zip(all) {
            self.steps(*number, steps);
        }
        for number in &numbers {
            self.call_commit(*number);
        }
        for number in &numbers {
            self.committed(*number);
        }
    }
}

/// What is found when the rows end as `last`.
fn found(mut history: History, scans: Scans, last: &[(Key, &[Value])]) -> Vec<Kind> {
    history.last = last
        .iter()
        .map(|(key, values)| (*key, values.to_vec()))
        .collect();
    let anomalies = judge(&history, scans).anomalies;
    anomalies.iter().for_each(|anomaly| println!("{anomaly}"));
    anomalies.into_iter().map(|anomaly| anomaly.kind).collect()
}

/// What is found in one history of transactions that follow each other.
fn one_by_one(all: &[(Ending, &[Do<'_>])], last: &[(Key, &[Value])]) -> Vec<Kind> {
    let mut history = History::default();
    for (ending, steps) in all {
        history.add(*ending, steps);
    }
    found(history, Scans::OneMoment, last)
}

#[test]
fn what_read_committed_allows_is_no_anomaly() {
    let mut history = History::default();
    history.add(Committed, &[Append(1, 1), Read(&[(1, &[1])])]);
    history.add(RolledBack, &[Append(1, 2), Read(&[(1, &[1, 2]), (2, &[])])]);
    // Each reads what the other then appends to: write skew, which is of rw alone.
    history.together(&[
        &[Read(&[(2, &[])]), Append(1, 3)],
        &[Read(&[(1, &[1])]), Append(2, 4)],
    ]);
    // A reader that sees a later version in its second statement.
    let reader = history.begin(9);
    history.steps(reader, &[Read(&[(1, &[1, 3])])]);
    history.add(Committed, &[Append(1, 5)]);
    history.steps(reader, &[Read(&[(1, &[1, 3, 5])])]);
    history.end(reader, Committed);
    assert_eq!(
        found(history, Scans::OneMoment, &[(1, &[1, 3, 5]), (2, &[4])]),
        []
    );
}

#[test]
fn g0_transactions_that_write_over_each_other_in_turn() {
    let mut history = History::default();
    history.together(&[&[Append(1, 1), Append(2, 2)], &[Append(1, 3), Append(2, 4)]]);
    let kinds = found(history, Scans::OneMoment, &[(1, &[1, 3]), (2, &[4, 2])]);
    assert_eq!(kinds, [Kind::G0WriteCycle]);
    // On one row.
    let mut history = History::default();
    history.together(&[&[Append(1, 1), Append(1, 2)], &[Append(1, 3)]]);
    assert_eq!(
        found(history, Scans::OneMoment, &[(1, &[1, 3, 2])]),
        [Kind::G0WriteCycle]
    );
}

#[test]
fn g1a_a_value_that_was_rolled_back_is_read() {
    let rolled_back: (Ending, &[Do<'_>]) = (RolledBack, &[Append(1, 1)]);
    let kinds = one_by_one(&[rolled_back, (Committed, &[Read(&[(1, &[1])])])], &[]);
    assert_eq!(kinds, [Kind::G1aAbortedRead]);
    assert_eq!(
        one_by_one(&[rolled_back], &[(1, &[1])]),
        [Kind::G1aAbortedRead]
    );
}

#[test]
fn g1b_a_value_is_read_that_was_not_the_last() {
    let mut history = History::default();
    history.together(&[&[Append(1, 1), Append(1, 2)], &[Read(&[(1, &[1])])]]);
    let kinds = found(history, Scans::OneMoment, &[(1, &[1, 2])]);
    assert_eq!(kinds, [Kind::G1bIntermediateRead]);
}

#[test]
fn g1c_transactions_that_read_from_each_other() {
    let mut history = History::default();
    history.together(&[
        &[Append(1, 1), Read(&[(2, &[2])])],
        &[Append(2, 2), Read(&[(1, &[1])])],
    ]);
    let kinds = found(history, Scans::OneMoment, &[(1, &[1]), (2, &[2])]);
    assert_eq!(kinds, [Kind::G1cCircularFlow]);
    // Three, one of whom wrote over another.
    let mut history = History::default();
    history.together(&[
        &[Append(1, 1), Read(&[(3, &[4])])],
        &[Append(1, 2), Append(2, 3)],
        &[Read(&[(2, &[3])]), Append(3, 4)],
    ]);
    let kinds = found(
        history,
        Scans::OneMoment,
        &[(1, &[1, 2]), (2, &[3]), (3, &[4])],
    );
    assert_eq!(kinds, [Kind::G1cCircularFlow]);
}

#[test]
fn a_circle_is_told_with_its_evidence() {
    let mut history = History::default();
    history.together(&[
        &[Append(1, 1), Read(&[(2, &[2])])],
        &[Append(2, 2), Append(1, 3)],
    ]);
    history.last = [(1, vec![1, 3]), (2, vec![2])].into();
    let anomalies = judge(&history, Scans::RowByRow).anomalies;
    let said: Vec<_> = anomalies
        .iter()
        .map(|anomaly| anomaly.to_string())
        .collect();
    assert_eq!(
        said,
        ["G1cCircularFlow: \
          \n  T0 of client 0 -> T1 of client 1: ww (row 1: 1, then 3)\
          \n  T1 of client 1 -> T0 of client 0: wr (row 2: 2 was read)"]
    );
}

#[test]
fn committed_values_that_are_gone_or_half_there_are_lost() {
    assert_eq!(
        one_by_one(&[(Committed, &[Append(1, 1)])], &[]),
        [Kind::LostAppend]
    );
    // An unknown outcome is settled by what is seen: all or nothing.
    let cut: (Ending, &[Do<'_>]) = (Unknown, &[Append(1, 1), Append(2, 2)]);
    assert_eq!(one_by_one(&[cut], &[]), []);
    assert_eq!(one_by_one(&[cut], &[(1, &[1]), (2, &[2])]), []);
    assert_eq!(one_by_one(&[cut], &[(1, &[1])]), [Kind::LostAppend]);
}

#[test]
fn values_from_nowhere_or_twice_are_told() {
    assert_eq!(one_by_one(&[], &[(1, &[7])]), [Kind::ThinAir]);
    let elsewhere: (Ending, &[Do<'_>]) = (Committed, &[Append(2, 7)]);
    assert_eq!(
        one_by_one(&[elsewhere], &[(1, &[7]), (2, &[7])]),
        [Kind::ThinAir]
    );
    let kinds = one_by_one(
        &[elsewhere, (Committed, &[Read(&[(2, &[7, 7])])])],
        &[(2, &[7])],
    );
    assert_eq!(kinds, [Kind::Duplicate]);
}

#[test]
fn own_writes_are_seen_at_the_end_of_the_list() {
    for list in [&[][..], &[1], &[2], &[2, 1], &[1, 3, 2]] {
        let own = [Append(1, 1), Append(1, 2), Read(&[(1, list)])];
        let kinds = one_by_one(&[(RolledBack, &own)], &[]);
        assert_eq!(kinds, [Kind::OwnWriteUnseen], "{list:?}");
    }
}

#[test]
fn a_version_that_vanished_is_told() {
    let kinds = one_by_one(
        &[
            (Committed, &[Append(1, 1)]),
            (Committed, &[Append(1, 2)]),
            (Committed, &[Read(&[(1, &[2])])]),
        ],
        &[(1, &[1, 2])],
    );
    assert_eq!(kinds, [Kind::OtherOrder]);
}

#[test]
fn a_statement_sees_what_was_committed_before_it() {
    let kinds = one_by_one(
        &[
            (Committed, &[Append(1, 1)]),
            (Committed, &[Read(&[(1, &[])])]),
        ],
        &[(1, &[1])],
    );
    assert_eq!(kinds, [Kind::OldView]);
}

#[test]
fn a_scan_of_one_moment_sees_no_transaction_in_part() {
    let scan = |rows: &[(Key, &[Value])], scans| {
        let mut history = History::default();
        history.together(&[&[Append(1, 1), Append(2, 2)], &[Read(rows)]]);
        found(history, scans, &[(1, &[1]), (2, &[2])])
    };
    let half: [(Key, &[Value]); 2] = [(1, &[]), (2, &[2])];
    assert_eq!(scan(&half, Scans::OneMoment), [Kind::OldView]);
    assert_eq!(scan(&half, Scans::RowByRow), []);
    assert_eq!(scan(&[(1, &[1]), (2, &[2])], Scans::OneMoment), []);
    assert_eq!(scan(&[(1, &[]), (2, &[])], Scans::OneMoment), []);
}

#[test]
fn a_scan_of_one_moment_sees_commits_in_their_order() {
    let scan = |rows: &[(Key, &[Value])], scans| {
        let mut history = History::default();
        let reader = history.begin(9);
        history.steps(reader, &[Read(rows)]);
        history.add(Committed, &[Append(1, 1)]);
        // No row in common with the first: only its time says that it came later.
        history.add(Committed, &[Append(2, 2)]);
        history.end(reader, Committed);
        found(history, scans, &[(1, &[1]), (2, &[2])])
    };
    let second_alone: [(Key, &[Value]); 2] = [(1, &[]), (2, &[2])];
    assert_eq!(scan(&second_alone, Scans::OneMoment), [Kind::OldView]);
    assert_eq!(scan(&second_alone, Scans::RowByRow), []);
    assert_eq!(scan(&[(1, &[1]), (2, &[])], Scans::OneMoment), []);
}
