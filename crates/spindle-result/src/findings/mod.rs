//! Findings: what a run's figures show that a person can act on. Each kind is a file: what it is called, what it says,
//! what helps, and a look at one case that finds it or does not. A new kind is a file and a line in [`KINDS`]. What is
//! not in the figures is not said: every look asks for all of its evidence, and stays silent where a figure is not
//! known. Nor is anything said against a verdict: see [`said`].

mod case_facts;
mod checkpoints;
mod client_bound;
mod cpu_bound;
mod dbwr_behind;
mod device_saturated;
mod double_buffering;
mod file_lock;
mod kind;
mod locks;
mod log_writes;
#[cfg(test)]
mod matrix;
mod noisy_neighbour;
#[cfg(test)]
mod stage;
mod starved_clients;
mod temporary_segments;
mod throttled;
mod write_amplification;

use self::case_facts::CaseFacts;
use self::kind::{AtLoad, FindingKind, Sighting};
pub(super) use self::noisy_neighbour::{PROGRAMS_MIN_PERCENT, STEAL_MIN_PERCENT};
use super::{Case, Finding, Neighbour, RunResult, Verdict, named};

/// Every kind of finding.
const KINDS: &[FindingKind] = &[
    throttled::KIND,
    noisy_neighbour::KIND,
    cpu_bound::KIND,
    client_bound::KIND,
    device_saturated::KIND,
    log_writes::KIND,
    locks::KIND,
    checkpoints::KIND,
    dbwr_behind::KIND,
    file_lock::KIND,
    double_buffering::KIND,
    temporary_segments::KIND,
    write_amplification::KIND,
    starved_clients::KIND,
];

/// Name, sentence and remedy of each kind.
pub fn kinds_of_findings() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    KINDS.iter().map(|kind| (kind.name, kind.text, kind.remedy))
}

/// Everything found, the weightiest first. A kind is said once, with the evidence of each case; oftener, where its
/// words differ between cases.
pub(super) fn findings(result: &RunResult) -> Vec<Finding> {
    let cases = || result.cases.iter().filter(|case| case.is_compared());
    let mut findings: Vec<(f64, Finding)> = Vec::new();
    for kind in KINDS {
        let mut told: Vec<(&str, Vec<(&Case, Sighting)>)> = Vec::new();
        for case in cases() {
            let Some(facts) = CaseFacts::of(case, result) else {
                continue;
            };
            let Some(seen) = (kind.look)(&facts) else {
                continue;
            };
            let text = said(kind, &facts, at_load(result, case));
            match told.iter_mut().find(|(other, _)| *other == text) {
                Some((_, cases)) => cases.push((case, seen)),
                None => told.push((text, vec![(case, seen)])),
            }
        }
        findings.extend(
            told.iter()
                .filter_map(|(text, seen)| finding(kind, text, seen)),
        );
    }
    findings.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    findings.into_iter().map(|(_, finding)| finding).collect()
}

/// Whether a case's device was at its limit.
pub(super) fn is_device_saturated(result: &RunResult, case: &Case) -> bool {
    let facts = CaseFacts::of(case, result);
    facts.is_some_and(|facts| (device_saturated::KIND.look)(&facts).is_some())
}

/// The program that used a case's device beside its database, where that was enough to be felt.
pub(super) fn neighbour_of<'a>(result: &'a RunResult, case: &'a Case) -> Option<&'a Neighbour> {
    noisy_neighbour::on_device(&CaseFacts::of(case, result)?)
}

/// Whether all verdicts at the load level of a case are draws.
pub(super) fn are_alike(result: &RunResult, case: &Case) -> bool {
    at_load(result, case) == AtLoad::Alike
}

/// What the verdicts at the load level of a case say of it.
fn at_load(result: &RunResult, case: &Case) -> AtLoad {
    let verdicts = result.verdicts.iter();
    let of_load = verdicts.filter(|verdict| verdict.cases.load == case.id.load);
    let (mut is_ahead, mut is_behind, mut do_differ, mut is_open) = (false, false, false, false);
    for verdict in of_load {
        let (faster, slower) = match verdict.verdict {
            Verdict::Faster => (&verdict.cases.a, &verdict.cases.b),
            Verdict::Slower => (&verdict.cases.b, &verdict.cases.a),
            Verdict::Undecided | Verdict::Draw => {
                is_open |= verdict.verdict == Verdict::Undecided;
                continue;
            }
        };
        do_differ = true;
        is_ahead |= *faster == case.id.layout;
        is_behind |= *slower == case.id.layout;
    }
    match (is_ahead, is_behind) {
        (true, false) => AtLoad::Ahead,
        (false, true) => AtLoad::Behind,
        _ if do_differ => AtLoad::Between,
        _ if is_open => AtLoad::Open,
        _ => AtLoad::Alike,
    }
}

/// The words for a kind that go with the case and the verdicts. The only place where they are chosen.
fn said(kind: &FindingKind, facts: &CaseFacts<'_>, at_load: AtLoad) -> &'static str {
    kind.words.map_or(kind.text, |words| words(facts, at_load))
}

/// One kind in the cases that it was seen in; `None` when it was seen in none.
fn finding(kind: &FindingKind, text: &str, seen: &[(&Case, Sighting)]) -> Option<(f64, Finding)> {
    let weight = seen
        .iter()
        .map(|(_, seen)| seen.weight)
        .max_by(f64::total_cmp)?;
    let mut layouts: Vec<String> = seen
        .iter()
        .map(|(case, _)| case.id.layout.clone())
        .collect();
    let mut clients: Vec<u32> = seen.iter().map(|(case, _)| case.id.load.clients).collect();
    let mut seen_in = std::collections::BTreeSet::new();
    layouts.retain(|layout| seen_in.insert(layout.clone()));
    clients.sort_unstable();
    clients.dedup();
    let evidence = seen.iter().map(|(case, seen)| {
        format!(
            "{}, {}: {}",
            named(&case.id.layout),
            case.id.load,
            seen.evidence
        )
    });
    let finding = Finding {
        kind: kind.name.to_owned(),
        layouts,
        clients,
        cases: seen.iter().map(|(case, _)| case.id.clone()).collect(),
        text: text.to_owned(),
        evidence: evidence.collect(),
        remedy: kind.remedy.to_owned(),
    };
    Some((weight, finding))
}

#[cfg(test)]
mod tests {
    use super::super::{
        CaseId, ResponseTime, SampledTrial, SystemColumn, SystemSeries, TimePart, build, sample,
    };
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

    /// Words by which a finding would say that layouts cannot differ.
    const ALIKE: [&str; 4] = ["hardly matters", "do not differ", "no difference", "alike"];

    #[test]
    fn no_kind_says_that_layouts_cannot_differ_where_a_verdict_says_that_they_do() {
        let stage = stage::Stage::new();
        for kind in KINDS {
            for at_load in [AtLoad::Ahead, AtLoad::Behind, AtLoad::Between] {
                for text in [stage.said(kind, at_load), kind.remedy] {
                    let text = text.to_lowercase();
                    assert!(ALIKE.iter().all(|words| !text.contains(words)), "{text}");
                }
            }
        }
    }

    /// Two layouts at two load levels, all at the processors' limit: with 8 clients one is twice as fast, with 64 they
    /// are equal.
    #[test]
    fn words_go_with_the_verdicts_of_the_load_level() {
        let rounds = |tpm: f64| [1.0, 1.001, 0.999, 1.0005, 1.0].map(|factor| factor * tpm);
        let two = |a: f64, b: f64| sample::record(&[("a", &rounds(a)), ("b", &rounds(b))]);
        let mut record = two(200.0, 100.0);
        let equal = two(200.0, 200.0).cases.into_iter();
        record.cases.extend(equal.map(|mut case| {
            case.load = 64.into();
            case
        }));
        for case in &mut record.cases {
            for trial in &mut case.trials {
                let cpu = trial.cpu.as_mut().expect("the sample knows it");
                (cpu.user, cpu.system) = (80.0, 19.0);
                trial.response_time = Some(all_on_a_processor());
            }
        }
        let cases = record.cases.iter();
        record.series = cases
            .map(|case| {
                series(
                    ["a", "b"][case.layout],
                    case.load.clients,
                    "other_programs_cpu_percent",
                    &[0.0],
                )
            })
            .collect();
        let result = build(&record).unwrap();
        let verdicts = result.verdicts.iter();
        let verdicts: Vec<_> = verdicts
            .map(|it| (it.cases.load.clients, it.verdict))
            .collect();
        assert_eq!(verdicts, [(8, Verdict::Faster), (64, Verdict::Draw)]);
        let said = result.findings.iter();
        let mut said: Vec<_> = said
            .map(|it| {
                (
                    it.clients[0],
                    it.layouts.join(" "),
                    match it.text.as_str() {
                        text if text.contains("hardly matters") => "alike",
                        text if text.contains("further ahead") => "ahead",
                        text if text.contains("are behind") => "behind",
                        text => text,
                    },
                )
            })
            .collect();
        said.sort_unstable();
        let of = |clients, layouts: &str, said| (clients, layouts.to_owned(), said);
        let expected = [
            of(8, "a", "ahead"),
            of(8, "b", "behind"),
            of(64, "a b", "alike"),
        ];
        assert_eq!(said, expected);
    }

    fn all_on_a_processor() -> ResponseTime {
        ResponseTime {
            mean_us: 100.0,
            parts: vec![TimePart {
                part: "user CPU".into(),
                us: 100.0,
            }],
            excess_us: 0.0,
        }
    }

    fn series(layout: &str, clients: u32, column: &str, values: &[f32]) -> SampledTrial {
        SampledTrial {
            case: CaseId::new(layout, clients),
            round: 1,
            interval_ms: 1000,
            tps: Vec::new(),
            system: SystemSeries {
                interval_ms: 1000,
                columns: vec![SystemColumn {
                    name: column.into(),
                    values: values.iter().copied().map(Some).collect(),
                }],
            },
        }
    }

    #[test]
    fn one_kind_in_several_cases_is_one_finding() {
        let mut record = sample::record(&[("a", &[100.0, 101.0]), ("b", &[200.0, 201.0])]);
        for layout in ["a", "b"] {
            record.series.push(series(
                layout,
                8,
                "other_programs_cpu_percent",
                &[30.0, 40.0],
            ));
        }
        let findings = build(&record).unwrap().findings;
        let [finding] = findings.as_slice() else {
            panic!("{findings:?}");
        };
        assert_eq!(finding.kind, "noisy neighbour");
        assert_eq!(finding.layouts, ["a", "b"]);
        assert_eq!(finding.clients, [8]);
        assert_eq!(finding.cases, ["a", "b"].map(|name| CaseId::new(name, 8)));
        assert_eq!(
            finding.evidence[0],
            "a, 8 clients: other programs took 35 % of the processors"
        );
    }
}
