//! Findings: what a run's figures show that a person can act on. Each kind is a file: what it is called, what it says, what
//! helps, and a look at one case that finds it or does not. A new kind is a file and a line in [`KINDS`]. What is not in
//! the figures is not said: every look asks for all of its evidence, and stays silent where a figure is not known.

mod cpu_bound;
mod dbwr_behind;
mod device_saturated;
mod double_buffering;
mod file_lock;
mod log_writes;
mod noisy_neighbour;
mod scene;
#[cfg(test)]
mod stage;
mod throttled;

use self::scene::Scene;
use super::{Case, Finding, RunRecord, RunResult};
use crate::experiment::Experiment;

/// Every kind of finding.
const KINDS: &[Kind] = &[
    throttled::KIND,
    noisy_neighbour::KIND,
    cpu_bound::KIND,
    device_saturated::KIND,
    log_writes::KIND,
    dbwr_behind::KIND,
    file_lock::KIND,
    double_buffering::KIND,
];

/// One kind of finding.
struct Kind {
    /// What it is called, the same in every run.
    name: &'static str,
    /// What was found, in a sentence.
    text: &'static str,
    /// What can be done about it.
    remedy: &'static str,
    /// Looks for it in a case.
    look: fn(&Scene<'_>) -> Option<Seen>,
}

/// That it was found in a case.
#[derive(Debug, Clone, PartialEq)]
struct Seen {
    /// How much it matters, 0 to 1: about the share of a transaction's time that it explains.
    weight: f64,
    /// The figures that show it, in words.
    evidence: String,
}

/// Everything found, the weightiest first; a kind is said once for a workload, with the evidence of each case.
pub(super) fn findings(result: &RunResult, record: &RunRecord) -> Vec<Finding> {
    let experiment: Option<Experiment> = serde_json::from_value(record.experiment.clone()).ok();
    let cases = || result.cases.iter().filter(|case| case.is_compared());
    let mut workloads: Vec<&str> = Vec::new();
    for case in cases() {
        if !workloads.contains(&case.workload.as_str()) {
            workloads.push(&case.workload);
        }
    }
    let mut findings: Vec<(f64, Finding)> = Vec::new();
    for workload in workloads {
        for kind in KINDS {
            let looks = cases()
                .filter(|case| case.workload == workload)
                .filter_map(|case| {
                    let scene = Scene::of(case, result, experiment.as_ref())?;
                    Some((case, (kind.look)(&scene)?))
                });
            findings.extend(finding(kind, workload, &looks.collect::<Vec<_>>()));
        }
    }
    findings.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    findings.into_iter().map(|(_, finding)| finding).collect()
}

/// Whether a case's device was at its limit.
pub(super) fn is_device_saturated(result: &RunResult, case: &Case) -> bool {
    let scene = Scene::of(case, result, None);
    scene.is_some_and(|scene| (device_saturated::KIND.look)(&scene).is_some())
}

/// One kind in the cases of one workload; `None` when it was seen in none.
fn finding(kind: &Kind, workload: &str, seen: &[(&Case, Seen)]) -> Option<(f64, Finding)> {
    let weight = seen
        .iter()
        .map(|(_, seen)| seen.weight)
        .max_by(f64::total_cmp)?;
    let mut layouts: Vec<String> = seen.iter().map(|(case, _)| case.layout.clone()).collect();
    let mut clients: Vec<u32> = seen.iter().map(|(case, _)| case.clients).collect();
    let mut named = std::collections::BTreeSet::new();
    layouts.retain(|layout| named.insert(layout.clone()));
    clients.sort_unstable();
    clients.dedup();
    let evidence = seen.iter().map(|(case, seen)| {
        let clients = match case.clients {
            1 => "1 client".to_owned(),
            clients => format!("{clients} clients"),
        };
        format!("{}, {clients}: {}", case.layout, seen.evidence)
    });
    let finding = Finding {
        kind: kind.name.to_owned(),
        layouts,
        workload: workload.to_owned(),
        clients,
        text: kind.text.to_owned(),
        evidence: evidence.collect(),
        remedy: kind.remedy.to_owned(),
    };
    Some((weight, finding))
}

#[cfg(test)]
mod tests {
    use super::super::{SystemColumn, SystemSeries, build, sample};
    use super::*;

    #[test]
    fn a_quiet_run_finds_nothing() {
        let record = sample::record(&[("a", &[100.0, 101.0]), ("b", &[200.0, 201.0])]);
        assert_eq!(build(&record).unwrap().findings, []);
    }

    #[test]
    fn kinds_are_named_once_and_say_what_helps() {
        let names: std::collections::BTreeSet<_> = KINDS.iter().map(|kind| kind.name).collect();
        assert_eq!(names.len(), KINDS.len());
        for kind in KINDS {
            assert!(kind.text.ends_with('.') && kind.remedy.ends_with('.'));
        }
    }

    #[test]
    fn one_kind_in_several_cases_is_one_finding() {
        let mut record = sample::record(&[("a", &[100.0, 101.0]), ("b", &[200.0, 201.0])]);
        for layout in [0, 1] {
            record.series.push(super::super::SampledTrial {
                layout,
                workload: "oltp_mix".to_owned(),
                clients: 8,
                round: 1,
                interval_ms: 1000,
                tps: Vec::new(),
                system: SystemSeries {
                    interval_ms: 1000,
                    columns: vec![SystemColumn {
                        name: "other_programs_cpu_percent".to_owned(),
                        values: vec![Some(30.0), Some(40.0)],
                    }],
                },
            });
        }
        let findings = build(&record).unwrap().findings;
        let [finding] = findings.as_slice() else {
            panic!("{findings:?}");
        };
        assert_eq!(finding.kind, "noisy neighbour");
        assert_eq!(finding.layouts, ["a", "b"]);
        assert_eq!(finding.clients, [8]);
        assert_eq!(
            finding.evidence[0],
            "a, 8 clients: other programs took 35 % of the processors"
        );
    }
}
