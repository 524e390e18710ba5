//! Trials whose throughput lies far from the other rounds of their case. One of them decides the case's mean, and with
//! it the ranking: as when all clients but one stood still, and that one ran away.

use spindle_stats::median;
use spindle_text::quantity::thousands;

use super::wording::{case_label, format_ratio, named};
use super::{Case, CaseId, PairComparison, RunResult, Trial};

/// This many times the median of the rounds, or the median divided by it.
const FAR: f64 = 5.0;
/// Means and ratio that differ by less than this factor may stand in either order.
const GAP_MIN: f64 = 1.03;
/// With fewer rounds nothing says which one is far out.
const ROUNDS_MIN: usize = 3;

/// That a case has such trials.
pub(super) fn warning(result: &RunResult, case: &Case) -> Option<String> {
    if !case.is_compared() || case.trials.len() < ROUNDS_MIN {
        return None;
    }
    let median_tpm = median(case.trials.iter().map(|trial| trial.tpm))?;
    let is_far = |trial: &&Trial| (trial.tpm / median_tpm).ln().abs() > FAR.ln();
    let told = case.trials.iter().filter(is_far);
    let told: Vec<String> = told.map(|trial| one(trial, median_tpm)).collect();
    (!told.is_empty()).then(|| {
        format!(
            "{}: {}. Do not trust the mean of this case, nor its place: measure more rounds.",
            case_label(result, case),
            told.join("; ")
        )
    })
}

/// That the mean throughputs of two layouts stand in the other order than their ratio, with the widest gap.
pub(super) fn order(result: &RunResult) -> Option<String> {
    let mean = |layout: &str, comparison: &PairComparison| {
        let case = result.case(&CaseId::new(layout, comparison.cases.load))?;
        let is_throughput = case.rate_per_s().is_none() && case.capacity().is_none();
        case.tpm.filter(|_| is_throughput).map(|tpm| tpm.mean)
    };
    let against = |comparison: &PairComparison| {
        let (a, b) = (&comparison.cases.a, &comparison.cases.b);
        let means = mean(a, comparison)? / mean(b, comparison)?;
        let gap = (means.ln() - comparison.ratio.ln()).abs();
        let is_other = (means > 1.0) != (comparison.ratio > 1.0) && gap > GAP_MIN.ln();
        let (ahead, behind) = if means > 1.0 { (a, b) } else { (b, a) };
        is_other.then(|| (gap, ahead.clone(), behind.clone()))
    };
    let found = result.verdicts.iter().filter_map(against);
    let (_, ahead, behind) = found.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (ahead, behind) = (named(&ahead), named(&behind));
    Some(format!(
        "{ahead} has the higher mean and the lower ratio beside {behind}: a mean counts all transactions, a ratio compares \
         round by round. Their rounds differ too much to order them."
    ))
}

fn one(trial: &Trial, median_tpm: f64) -> String {
    let clients = trial.audit.clients;
    let starved = clients.filter(|audit| audit.got_a_turn < audit.clients);
    let starved = starved.map_or_else(String::new, |audit| {
        format!(
            ", and only {} of {} clients got a turn",
            audit.got_a_turn, audit.clients
        )
    });
    format!(
        "round {} had {} transactions per minute, {} x the median of its rounds ({}){starved}",
        trial.round,
        thousands(trial.tpm),
        format_ratio(trial.tpm / median_tpm),
        thousands(median_tpm)
    )
}

#[cfg(test)]
mod tests {
    use super::super::{ClientAudit, build, sample};

    fn warnings(tpm: &[f64]) -> Vec<String> {
        let mut record = sample::record(&[("shallow", tpm), ("deep", tpm)]);
        record.cases[1].trials.truncate(2);
        record.planned_rounds = 2;
        record.cases[0].trials[0].audit.clients = Some(ClientAudit {
            clients: 48,
            in_transactions: 48.0,
            deferring: 0.0,
            thinking: 0.0,
            idle: 0.0,
            away: 0.0,
            open_at_end: 47,
            longest_open_s: 5.0,
            got_a_turn: 1,
            fewest: 0,
            most: 1_600_000,
        });
        let result = build(&record).unwrap();
        let warnings = result.warnings.into_iter().map(|warning| warning.text);
        warnings
            .filter(|text| text.contains("the median of its rounds"))
            .collect()
    }

    #[test]
    fn means_in_another_order_than_the_ratio_are_told() {
        let said = |a: &[f64], b: &[f64]| {
            let result = build(&sample::record(&[("a", a), ("b", b)])).unwrap();
            let mut texts = result.warnings.into_iter().map(|warning| warning.text);
            texts.find(|text| text.contains("the higher mean"))
        };
        let b = [270e3, 240e3, 245e3];
        let told = said(&[89e3, 393e3, 391e3], &b).expect("told");
        assert!(
            told.starts_with("a has the higher mean and the lower ratio beside b:"),
            "{told}"
        );
        assert_eq!(said(&[240e3, 241e3, 242e3], &b), None);
    }

    #[test]
    fn a_trial_that_ran_away_is_told_with_its_clients() {
        assert_eq!(
            warnings(&[20e6, 650e3, 640e3]),
            [
                "shallow: round 1 had 20,000,000 transactions per minute, 30.8 x the median of its rounds (650,000), and only \
                 1 of 48 clients got a turn. Do not trust the mean of this case, nor its place: measure more rounds."
            ]
        );
        let stood_still = warnings(&[650e3, 640e3, 100e3]);
        assert!(
            stood_still[0]
                .contains("round 3 had 100,000 transactions per minute, 0.16 x the median"),
            "{stood_still:?}"
        );
    }

    #[test]
    fn rounds_that_only_spread_and_two_alone_are_not() {
        assert_eq!(warnings(&[650e3, 2e6, 400e3]), [""; 0]);
        assert_eq!(warnings(&[20e6, 650e3]), [""; 0]);
    }
}
