//! Queries over all rows of a table, as decision support asks them: data, for engines that can carry them out.

use std::ops::RangeInclusive;

/// A number or a part of a key in a row: where it begins, and its length, bytes. Numbers have their highest byte first.
pub type RowField = (u16, u16);

/// What is made of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableQueryPlan {
    /// Groups of rows with the same key, with the number of rows and the sum of some number of each.
    Groups {
        /// The key; without parts all rows are one group.
        key: &'static [RowField],
        /// The number that is added up.
        sum: RowField,
        /// Groups come by their sums, the greatest first; else by their keys.
        by_sum: bool,
    },
    /// The rows in the order of a key.
    Rows {
        /// The key.
        key: &'static [RowField],
    },
}

/// What the answer must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RightAnswer {
    /// Rows that count.
    pub rows: u64,
    /// Groups of them; `None` where there are none.
    pub groups: Option<u64>,
    /// Sum over all groups; `None` where it is not known.
    pub sum: Option<u64>,
}

/// A query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableQuery {
    /// Which of the workload's kinds it is.
    pub kind: usize,
    /// Which table.
    pub table: usize,
    /// Rows count whose number at a place lies in a range; `None`: all.
    pub filter: Option<(RowField, RangeInclusive<u64>)>,
    /// What is made of them.
    pub plan: TableQueryPlan,
    /// Processes that carry it out.
    pub slaves: u32,
    /// What the answer must be.
    pub expected: RightAnswer,
}

/// Looks at an answer as it comes, and says whether it is right.
pub struct AnswerJudge<'a> {
    query: &'a TableQuery,
    found: RightAnswer,
    last: Vec<u8>,
    last_sum: u64,
    /// What was not in order, the first time.
    disorder: Option<String>,
}

impl<'a> AnswerJudge<'a> {
    /// Before the first row of the answer.
    pub fn new(query: &'a TableQuery) -> AnswerJudge<'a> {
        AnswerJudge {
            query,
            found: RightAnswer {
                rows: 0,
                groups: None,
                sum: None,
            },
            last: Vec::new(),
            last_sum: u64::MAX,
            disorder: None,
        }
    }

    /// A group: its key, its rows and their sum.
    pub fn group(&mut self, key: &[u8], rows: u64, sum: u64) {
        let found = &mut self.found;
        found.rows += rows;
        found.sum = Some(found.sum.unwrap_or(0) + sum);
        let number = found.groups.unwrap_or(0);
        found.groups = Some(number + 1);
        let TableQueryPlan::Groups { by_sum, .. } = self.query.plan else {
            return self.not_in_order("a group came where rows were asked for".to_owned());
        };
        let comes_after = match by_sum && sum != self.last_sum {
            true => sum < self.last_sum,
            false => number == 0 || key > &self.last[..],
        };
        if !comes_after {
            self.not_in_order(format!("group {number} is not in order"));
        }
        self.last_sum = sum;
        self.last.clear();
        self.last.extend_from_slice(key);
    }

    /// A row.
    pub fn row(&mut self, row: &[u8]) {
        self.found.rows += 1;
        let TableQueryPlan::Rows { key } = self.query.plan else {
            return self.not_in_order("a row came where groups were asked for".to_owned());
        };
        let mut of_row = Vec::with_capacity(self.last.len());
        for (offset, bytes) in key {
            let start = usize::from(*offset);
            of_row.extend_from_slice(&row[start..start + usize::from(*bytes)]);
        }
        if of_row < self.last {
            self.not_in_order(format!("row {} is not in order", self.found.rows));
        }
        self.last = of_row;
    }

    fn not_in_order(&mut self, what: String) {
        self.disorder.get_or_insert(what);
    }

    /// What is wrong with the whole answer, in words; `None` of the right one.
    pub fn wrong(self) -> Option<String> {
        if self.disorder.is_some() {
            return self.disorder;
        }
        let (found, expected) = (self.found, self.query.expected);
        let sum_is_right = expected.sum.is_none_or(|sum| found.sum == Some(sum));
        let is_right =
            found.rows == expected.rows && found.groups == expected.groups && sum_is_right;
        (!is_right).then(|| format!("the answer is {found:?}, the right one {expected:?}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(plan: TableQueryPlan, expected: (u64, Option<u64>, Option<u64>)) -> TableQuery {
        let (rows, groups, sum) = expected;
        TableQuery {
            kind: 0,
            table: 0,
            filter: None,
            plan,
            slaves: 1,
            expected: RightAnswer { rows, groups, sum },
        }
    }

    fn of_groups(by_sum: bool, groups: &[(&[u8], u64, u64)]) -> Option<String> {
        let plan = TableQueryPlan::Groups {
            key: &[(0, 1)],
            sum: (1, 1),
            by_sum,
        };
        let query = query(plan, (6, Some(3), Some(60)));
        let mut judge = AnswerJudge::new(&query);
        for (key, rows, sum) in groups {
            judge.group(key, *rows, *sum);
        }
        judge.wrong()
    }

    #[test]
    fn groups_are_counted_added_up_and_in_order() {
        let by_key: [(&[u8], u64, u64); 3] = [(b"a", 1, 20), (b"b", 2, 20), (b"c", 3, 20)];
        assert_eq!(of_groups(false, &by_key), None);
        assert_eq!(of_groups(true, &by_key), None, "equal sums go by key");
        assert_eq!(
            of_groups(true, &[(b"c", 1, 30), (b"a", 2, 20), (b"b", 3, 10)]),
            None
        );
        assert!(of_groups(false, &[(b"b", 1, 20), (b"a", 2, 20), (b"c", 3, 20)]).is_some());
        assert!(of_groups(true, &[(b"a", 1, 10), (b"b", 2, 20), (b"c", 3, 30)]).is_some());
        assert!(of_groups(false, &by_key[1..]).is_some(), "one is missing");
        assert!(of_groups(false, &[(b"a", 1, 20), (b"b", 2, 20), (b"c", 3, 21)]).is_some());
    }

    #[test]
    fn rows_are_counted_and_in_order() {
        let plan = TableQueryPlan::Rows { key: &[(1, 1)] };
        let judged = |rows: &[&[u8]]| {
            let query = query(plan, (2, None, None));
            let mut judge = AnswerJudge::new(&query);
            rows.iter().for_each(|row| judge.row(row));
            judge.wrong()
        };
        assert_eq!(judged(&[b"za", b"yb"]), None);
        assert!(judged(&[b"ab", b"ba"]).is_some());
        assert!(judged(&[b"za"]).is_some());
    }
}
