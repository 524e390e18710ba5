//! What became of the queries of a trial: seconds of each, and the standard's figures.

use spindle_workload::driver::KindRecord;

use spindle_experiment::WorkloadChoice;
use spindle_result::tpch;
use spindle_result::{QueryRun, QueryTime, is_refresh};

/// From the kinds of transactions; `None` for a workload that is not one of queries. `streams` asked at once, and took
/// `elapsed_s` together.
pub fn query_run(
    workload: &WorkloadChoice,
    streams: u32,
    kinds: Vec<KindRecord>,
    elapsed_s: f64,
) -> Option<QueryRun> {
    let transactions = &workload.transactions;
    if !transactions.ask_queries() {
        return None;
    }
    let standard = transactions.queries();
    let temporary_bytes = temporary_bytes_of_queries(&kinds);
    let times: Vec<QueryTime> = kinds.into_iter().filter_map(time_of).collect();
    let asked = || times.iter().filter(|time| !time.is_refresh());
    let answered: u64 = asked().map(|time| time.count).sum();
    // A figure of the benchmark is one of all its queries, each answered in each stream.
    let is_sound = standard.filter(|(version, _)| {
        let whole = version.queries().count();
        let is_whole = asked().count() == whole && answered == whole as u64 * u64::from(streams);
        is_whole && times.iter().all(|time| time.errors == 0)
    });
    let scale = is_sound.map(|(_, queries)| queries.scale);
    let seconds = |time: &QueryTime| time.seconds;
    let all: Option<Vec<f64>> = times.iter().map(seconds).collect();
    let of_queries: Option<Vec<f64>> = asked().map(seconds).collect();
    let power = scale.filter(|_| streams == 1).zip(all);
    let throughput = scale.filter(|_| streams > 1);
    Some(QueryRun {
        geometric_mean_s: of_queries.and_then(|seconds| tpch::geometric_mean(&seconds)),
        power: power.and_then(|(scale, seconds)| tpch::power(scale, &seconds)),
        throughput: throughput.and_then(|scale| tpch::throughput(scale, answered, elapsed_s)),
        times,
        temporary_bytes,
    })
}

/// `None` unless it is known of every query.
fn temporary_bytes_of_queries(kinds: &[KindRecord]) -> Option<u64> {
    let queries = kinds.iter().filter(|record| !is_refresh(&record.kind));
    let ended = queries.filter(|record| record.latencies.count() > 0);
    ended.map(|record| record.temporary_bytes).sum()
}

/// `None` for what was not carried out.
fn time_of(record: KindRecord) -> Option<QueryTime> {
    let count = record.latencies.count();
    (count + record.errors > 0).then(|| QueryTime {
        name: record.kind,
        seconds: (count > 0).then(|| record.latencies.mean_us() / 1e6),
        count,
        errors: record.errors,
        temporary_bytes: record
            .temporary_bytes
            .filter(|_| count > 0)
            .map(|bytes| bytes as f64 / count as f64),
    })
}

#[cfg(test)]
mod tests {
    use spindle_stats::LatencyHistogram;
    use spindle_workload::sql::tpch::KINDS;

    use super::*;
    use spindle_experiment::Experiment;

    fn workload() -> WorkloadChoice {
        let text = "[database]\nengine = \"sqlite\"\nbuffer_cache = \"4MiB\"\n[workload]\nkind = \"tpch\"\nscale = 2\n\
                    [[layout]]\nname = \"a\"\n";
        Experiment::parse("x", text, &[])
            .expect("it is one")
            .workload
    }

    /// Every query took two seconds so often.
    fn kinds(count: usize) -> Vec<KindRecord> {
        let of = |kind: &'static str| {
            let mut latencies = LatencyHistogram::new();
            if kind.starts_with('Q') {
                (0..count).for_each(|_| latencies.record_ns(2_000_000_000));
            }
            KindRecord {
                at_least: LatencyHistogram::new(),
                kind: kind.to_owned(),
                latencies,
                errors: 0,
                temporary_bytes: None,
            }
        };
        KINDS.map(of).to_vec()
    }

    #[test]
    fn one_stream_has_power_and_several_have_throughput() {
        let run = query_run(&workload(), 1, kinds(1), 44.0).unwrap();
        assert_eq!(run.times.len(), 22);
        assert!((run.geometric_mean_s.unwrap() - 2.0).abs() < 0.01);
        assert!((run.power.unwrap() - 3600.0).abs() < 10.0);
        assert_eq!(run.throughput, None);

        let run = query_run(&workload(), 3, kinds(3), 66.0).unwrap();
        assert_eq!(run.power, None);
        assert_eq!(run.throughput, Some(66.0 * 3600.0 / 66.0 * 2.0));
    }

    #[test]
    fn temporary_space_of_all_queries_is_known_when_it_is_of_each() {
        let mut known = kinds(2);
        for (number, record) in known.iter_mut().enumerate() {
            record.temporary_bytes = Some(10 * number as u64);
        }
        // Of refresh functions it need not be known.
        known[23].latencies = known[0].latencies.clone();
        known[23].temporary_bytes = None;
        let run = query_run(&workload(), 2, known.clone(), 88.0).unwrap();
        assert_eq!(run.times[3].temporary_bytes, Some(15.0));
        let sum = (0..22).map(|number| 10 * number).sum();
        assert_eq!(run.temporary_bytes, Some(sum));

        known[3].temporary_bytes = None;
        let run = query_run(&workload(), 2, known, 88.0).unwrap();
        assert_eq!(
            (run.times[3].temporary_bytes, run.temporary_bytes),
            (None, None)
        );
    }

    #[test]
    fn a_query_that_failed_leaves_no_figure_of_the_benchmark() {
        let mut failed = kinds(1);
        failed[4].latencies = LatencyHistogram::new();
        failed[4].errors = 1;
        let run = query_run(&workload(), 1, failed, 42.0).unwrap();
        assert_eq!((run.power, run.geometric_mean_s), (None, None));
        let time = &run.times[4];
        assert_eq!((time.seconds, time.count, time.errors), (None, 0, 1));

        let mut some = kinds(1);
        some.truncate(3);
        let run = query_run(&workload(), 1, some, 6.0).unwrap();
        assert_eq!(run.power, None);
        assert!(run.geometric_mean_s.is_some());
    }
}
