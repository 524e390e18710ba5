//! By how many system calls each case of the embedded database did its I/O, in words, below the table of checks.

use spindle_result::{Case, IoCalls, RunResult};

/// A line for each case that counted them.
pub(super) fn lines(result: &RunResult) -> Vec<String> {
    result.cases.iter().filter_map(line).collect()
}

fn line(case: &Case) -> Option<String> {
    let calls = IoCalls::sum(case.trials.iter().filter_map(|trial| trial.io_calls))?;
    let transactions: u64 = case.trials.iter().map(|trial| trial.transactions).sum();
    let each = |count: u64| count as f64 / transactions.max(1) as f64;
    let mut line = format!(
        "{}, {}: {:.2} system calls per I/O",
        case.id.layout,
        case.id.load,
        calls.per_request()?
    );
    if let Some(requests) = calls.per_submit() {
        line += &format!(", {requests:.1} requests in each that hands over a queue");
    }
    if calls.kernel_workers_us > 0 {
        line += &format!(
            "; io_uring's workers took {:.0} us of processor time a transaction",
            each(calls.kernel_workers_us)
        );
    }
    line += &format!(
        "; a transaction has {:.1} context switches to wait and {:.1} to make room for others",
        each(calls.sleeps),
        each(calls.preemptions)
    );
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;
    use spindle_result::{build, sample};

    #[test]
    fn what_was_counted_is_said_of_the_cases_that_counted() {
        let mut record = sample::record(&[("odm", &[100.0, 100.0]), ("server", &[90.0, 90.0])]);
        for trial in &mut record.cases[0].trials {
            trial.transactions = 100;
            trial.io_calls = Some(IoCalls {
                requests: 1_000,
                calls: 400,
                submits: 200,
                queued: 620,
                kernel_workers_us: 1_200,
                sleeps: 210,
                preemptions: 40,
            });
        }
        assert_eq!(
            lines(&build(&record).unwrap()),
            [
                "odm, 8 clients: 0.40 system calls per I/O, 3.1 requests in each that hands over a queue; io_uring's workers took \
              12 us of processor time a transaction; a transaction has 2.1 context switches to wait and 0.4 to make room for \
              others"
            ]
        );
    }
}
