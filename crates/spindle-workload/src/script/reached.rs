//! Which statements of a program can have a turn at all: a condition of values that nothing changes decides for one
//! branch. `workload` asks before statements are prepared.

use std::collections::BTreeSet;

use super::expression::Scope;
use super::program::{Program, Step};
use super::random::Random;

/// The numbers of the statements that may have a turn.
pub(super) fn reached(program: &Program) -> BTreeSet<usize> {
    let may_change = |number: usize| program.changing.contains(&number);
    let mut statements = BTreeSet::new();
    for script in &program.scripts {
        let mut seen = BTreeSet::new();
        let mut ahead = vec![0];
        while let Some(at) = ahead.pop() {
            let Some(step) = script.steps.get(at).filter(|_| seen.insert(at)) else {
                continue;
            };
            match step {
                Step::Jump(to) => ahead.push(*to),
                Step::JumpUnless { condition, to, .. } => {
                    let mut scope = Scope {
                        variables: &program.beginning,
                        names: &program.names,
                        random: &mut Random::seeded(0),
                        stack: &mut Vec::new(),
                    };
                    let is_fixed = condition.is_fixed(&may_change);
                    // One without a value fails at its turn, and says so.
                    let value = is_fixed
                        .then(|| condition.evaluate(&mut scope).ok())
                        .flatten();
                    match value.map(|value| value.is_true()) {
                        Some(true) => ahead.push(at + 1),
                        Some(false) => ahead.push(*to),
                        None => ahead.extend([at + 1, *to]),
                    }
                }
                Step::Statement { number, .. } => {
                    statements.insert(*number);
                    ahead.push(at + 1);
                }
                _ => ahead.push(at + 1),
            }
        }
    }
    statements
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use spindle_text::section::TextFile;

    use super::super::program::read;
    use super::*;
    use crate::session::{Complaint, SessionError};
    use crate::sql::Dialect;

    /// The statements that have a turn, and those of them that may wait with this refusal.
    fn found(text: &str, refusal: Complaint) -> (Vec<usize>, Vec<usize>) {
        let file = TextFile {
            name: "x.sql".to_owned(),
            weight: 1,
            text: text.to_owned(),
        };
        let defined = BTreeMap::from([("version".to_owned(), "15".to_owned())]);
        let files = [file];
        let program = read(&files, &defined, Dialect::Postgres).unwrap();
        let reached = reached(&program);
        let refusal = SessionError::rejected(refusal, "no");
        let wait = reached.iter().copied();
        let wait = wait
            .filter(|number| program.may_wait(*number, &refusal))
            .collect();
        (reached.into_iter().collect(), wait)
    }

    #[test]
    fn what_is_defined_decides_for_one_branch() {
        let text = "select 0;\n\\if :version >= 18\nselect 1;\n\\elif :version >= 15\nselect 2;\n\\else\nselect 3;\n\\endif\nselect 4;";
        assert_eq!(found(text, Complaint::Names).0, [0, 2, 4]);
        for condition in [":n > 1", "random(1, 2) > 1", ":client_id = 1"] {
            let text =
                format!("\\set n 2\n\\if {condition}\nselect 0;\n\\else\nselect 1;\n\\endif");
            assert_eq!(found(&text, Complaint::Names).0, [0, 1], "{condition}");
        }
    }

    #[test]
    fn what_is_written_wrongly_does_not_wait_for_its_turn() {
        let text = "select 0;\n\\if random(1, 2) > 1\nselect 1;\n\\endif";
        assert_eq!(found(text, Complaint::Names).1, [1]);
        assert_eq!(found(text, Complaint::Syntax).1, [0; 0]);
        // Nor where its words name what the script makes.
        let text = "create table no (a int);\nselect 1;";
        assert_eq!(found(text, Complaint::Names).1, [0, 1]);
        assert_eq!(found(text, Complaint::Syntax).1, [0; 0]);
    }
}
