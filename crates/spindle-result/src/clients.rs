//! What is to be said of a case whose trials do not account for all of their clients.

use super::wording::{case_label, rounds_where};
use super::{Case, ClientAudit, RunResult, Trial};

/// Clients that neither transactions nor pauses account for, in the worst of the trials in which the law does not hold.
pub(super) fn unaccounted(result: &RunResult, case: &Case) -> Option<String> {
    let fails = |trial: &Trial| trial.audit.clients.filter(|clients| !clients.holds());
    let rounds = rounds_where(case, |trial| fails(trial).is_some())?;
    let off = |clients: &ClientAudit| (clients.in_transactions / clients.at_work()).ln().abs();
    let failed = case.trials.iter().filter_map(fails);
    let worst = failed.max_by(|a, b| off(a).total_cmp(&off(b)))?;
    Some(format!(
        "{}: throughput times mean transaction time accounts for {:.2} clients, and {:.2} were at work ({rounds}): the rest of \
         their time went to the program itself, between transactions. Use fewer clients than processors can serve, or \
         longer transactions.",
        case_label(result, case),
        worst.in_transactions,
        worst.at_work()
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{build, sample};
    use super::*;

    #[test]
    fn a_trial_that_does_not_account_for_its_clients_is_told_with_its_figures() {
        let mut record = sample::record(&[("a", &[100.0, 90.0]), ("b", &[100.0, 90.0])]);
        let audit = |in_transactions| ClientAudit {
            clients: 8,
            in_transactions,
            thinking: 0.0,
            idle: 0.0,
            away: 0.0,
            open_at_end: 8,
            longest_open_s: 0.1,
            got_a_turn: 8,
            fewest: 9,
            most: 11,
        };
        for case in &mut record.cases {
            case.trials[0].audit.clients = Some(audit(7.9));
        }
        record.cases[1].trials[1].audit.clients = Some(audit(7.0));
        let result = build(&record).unwrap();
        let said: Vec<&str> = result
            .warnings
            .iter()
            .map(|warning| warning.text.as_str())
            .filter(|text| text.contains("at work"))
            .collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].contains("accounts for 7.00 clients, and 8.00 were at work (round 2)"),
            "{said:?}"
        );
    }
}
