//! The clients themselves are the limit: they wait for processors of the machine they run on, or keep them busy.

use super::super::ClientProcessors;
use super::case_facts::CaseFacts;
use super::cpu_bound;
use super::kind::{FindingKind, Sighting};

/// Share of a transaction's time that its client is on a processor or waits for one.
const SHARE_MIN: f64 = 0.5;

pub(super) const KIND: FindingKind = FindingKind {
    name: "client-bound",
    text: "The clients are the limit: for most of a transaction's time they use the processors of the machine they run \
           on, or wait for them. The database could do more than they ask of it.",
    words: None,
    remedy: "Let the clients run on a machine with more free processors, with nothing else beside them, or use fewer \
             clients.",
    look,
};

fn look(facts: &CaseFacts<'_>) -> Option<Sighting> {
    let trials = facts.case.trials.iter();
    let known = trials.map(|trial| trial.audit.client_processors);
    let known: Vec<ClientProcessors> = known.collect::<Option<_>>()?;
    let mean = |of: fn(&ClientProcessors) -> f64| {
        known.iter().map(of).sum::<f64>() / known.len().max(1) as f64
    };
    // Where the database itself is at that limit, it could not do more than they ask.
    if (cpu_bound::KIND.look)(facts).is_some() {
        return None;
    }
    // Beside a database of this machine they wait for other programs as it does.
    let foreign = match facts.database {
        Some(_) => facts.foreign_share(),
        None => 0.0,
    };
    let waiting = mean(|of| of.waiting) * (1.0 - foreign);
    let running = mean(|of| of.running);
    let share = running + waiting;
    (share >= SHARE_MIN).then(|| Sighting {
        weight: share.min(1.0),
        evidence: format!(
            "its client waits for a processor of its machine for {:.0} % of a transaction's time, and is on one for \
             {:.0} %",
            100.0 * waiting,
            100.0 * running
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::super::stage::Stage;
    use super::*;

    fn stage(shares: [(f64, f64); 2]) -> Stage {
        let mut stage = Stage::new();
        for (trial, (running, waiting)) in stage.case.trials.iter_mut().zip(shares) {
            trial.audit.client_processors = Some(ClientProcessors { running, waiting });
        }
        stage
    }

    #[test]
    fn clients_that_wait_for_processors_show_it() {
        let seen = stage([(0.1, 0.7), (0.2, 0.6)]).look(&KIND).expect("seen");
        assert_eq!(
            seen.evidence,
            "its client waits for a processor of its machine for 65 % of a transaction's time, and is on one for 15 %"
        );
        assert!((seen.weight - 0.8).abs() < 1e-9);
    }

    #[test]
    fn beside_a_database_that_waits_as_they_do_they_are_not_the_limit() {
        let starved = || stage([(0.1, 0.7), (0.1, 0.7)]);
        let busy = |others: f64| {
            starved()
                .trials(|trial| {
                    let cpu = trial.cpu.as_mut().expect("the sample knows it");
                    (cpu.user, cpu.system) = (75.0, 20.0);
                })
                .system(&[("other_programs_cpu_percent", others)])
        };
        assert!(busy(2.0).look(&KIND).is_some());
        assert_eq!(busy(60.0).look(&KIND), None);
        // Those of another machine wait for that one's.
        let mut elsewhere = busy(60.0);
        elsewhere.database = None;
        assert!(elsewhere.look(&KIND).is_some());
        let at_its_limit = busy(2.0).parts(&[("user CPU", 50.0), ("run queue", 50.0)]);
        assert!(at_its_limit.look(&cpu_bound::KIND).is_some());
        assert_eq!(at_its_limit.look(&KIND), None);
    }

    #[test]
    fn clients_that_wait_for_the_database_and_unknown_ones_do_not() {
        assert_eq!(stage([(0.2, 0.1), (0.3, 0.2)]).look(&KIND), None);
        assert_eq!(stage([(0.1, 0.7), (0.1, 0.0)]).look(&KIND), None);
        let mut one = stage([(0.1, 0.8), (0.1, 0.8)]);
        one.case.trials[1].audit.client_processors = None;
        assert_eq!(one.look(&KIND), None);
        assert_eq!(Stage::new().look(&KIND), None);
    }
}
