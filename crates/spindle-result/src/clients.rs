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

/// Trials in which fewer transactions ended than clients were at work: some of them ended none.
pub(super) fn fewer_than_clients(result: &RunResult, case: &Case) -> Option<String> {
    let is_short = |trial: &Trial| {
        let clients = trial.audit.clients;
        clients.is_some_and(|clients| (trial.transactions as f64) < clients.at_work())
    };
    let rounds = rounds_where(case, is_short)?;
    let fewest = case.trials.iter().map(|trial| trial.transactions).min()?;
    Some(format!(
        "{}: as few as {fewest} transactions ended ({rounds}), fewer than clients were at work, so its throughput says \
         little. Measure longer, or use fewer clients.",
        case_label(result, case)
    ))
}

#[cfg(test)]
mod tests {
    use super::super::{build, sample};
    use super::*;

    #[test]
    fn fewer_transactions_than_clients_are_told() {
        let mut record = sample::record(&[("a", &[100.0, 90.0]), ("b", &[100.0, 90.0])]);
        let trial = &mut record.cases[1].trials[0];
        trial.transactions = 3;
        trial.audit.clients = Some(ClientAudit {
            clients: 1000,
            in_transactions: 1000.0,
            deferring: 0.0,
            thinking: 0.0,
            idle: 0.0,
            away: 0.0,
            open_at_end: 1000,
            longest_open_s: 1.0,
            got_a_turn: 1000,
            fewest: 0,
            most: 1,
        });
        let result = build(&record).expect("it adds up");
        let told: Vec<&str> = result.warnings.iter().map(|it| it.text.as_str()).collect();
        let is_told = |text: &&&str| text.contains("as few as 3 transactions ended (round 1)");
        assert_eq!(told.iter().filter(is_told).count(), 1, "{told:?}");
    }

    #[test]
    fn a_trial_that_does_not_account_for_its_clients_is_told_with_its_figures() {
        let mut record = sample::record(&[("a", &[100.0, 90.0]), ("b", &[100.0, 90.0])]);
        let audit = |in_transactions| ClientAudit {
            clients: 8,
            in_transactions,
            deferring: 0.0,
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
            .filter(|text| text.contains("accounts for"))
            .collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].contains("accounts for 7.00 clients, and 8.00 were at work (round 2)"),
            "{said:?}"
        );
    }
}
