//! Some clients wait for their turn all the time, while others are served again and again.

use super::super::ClientAudit;
use super::case_facts::CaseFacts;
use super::kind::{FindingKind, Sighting};

pub(super) const KIND: FindingKind = FindingKind {
    name: "clients starve",
    text: "Some clients wait for their turn while others are served again and again. Percentiles cover only the \
           clients that are served; the mean covers all.",
    words: None,
    remedy: "Let fewer clients write at once, or queue them before the database. SQLite lets one connection write at \
             a time; another that finds it busy sleeps and tries again, without a queue.",
    look,
};

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let audits = facts.case.trials.iter();
    let audits: Vec<ClientAudit> = audits.filter_map(|trial| trial.audit.clients).collect();
    let starved = |audit: &&ClientAudit| audit.got_a_turn < audit.clients;
    let seen: Vec<&ClientAudit> = audits.iter().filter(starved).collect();
    // Once may be chance.
    if seen.len() * 2 <= audits.len() {
        return None;
    }
    let worst = seen.iter().min_by_key(|audit| audit.got_a_turn)?;
    let open = match worst.open_at_end {
        0 => String::new(),
        _ => format!(
            "; the oldest of those open at the end had taken {:.1} s",
            worst.longest_open_s
        ),
    };
    Some(Sighting {
        weight: 1.0 - worst.got_a_turn as f64 / worst.clients as f64,
        evidence: format!(
            "{} of {} clients got a turn (a tenth of an equal share): the least served ended {} transactions, the most served \
             {}{open}",
            worst.got_a_turn, worst.clients, worst.fewest, worst.most
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;

    fn stage(got_a_turn: [u64; 2]) -> Stage {
        let mut stage = Stage::new();
        for (trial, got_a_turn) in stage.case.trials.iter_mut().zip(got_a_turn) {
            trial.audit.clients = Some(ClientAudit {
                clients: 4,
                in_transactions: 4.0,
                deferring: 0.0,
                thinking: 0.0,
                idle: 0.0,
                away: 0.0,
                open_at_end: 3,
                longest_open_s: 5.01,
                got_a_turn,
                fewest: 0,
                most: 1_400,
            });
        }
        stage
    }

    #[test]
    fn clients_that_are_not_served_show_it() {
        let seen = stage([2, 1]).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "1 of 4 clients got a turn (a tenth of an equal share): the least served ended 0 transactions, the most served \
             1400; the oldest of those open at the end had taken 5.0 s"
        );
        assert_eq!(seen.weight, 0.75);
    }

    #[test]
    fn fair_turns_and_one_bad_round_do_not() {
        assert_eq!(stage([4, 4]).look(&KIND), None);
        assert_eq!(stage([4, 1]).look(&KIND), None);
        assert_eq!(Stage::new().look(&KIND), None);
    }
}
