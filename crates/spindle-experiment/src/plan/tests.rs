//! Plans that end by themselves, and keys that say nothing without another.

use super::*;
use crate::tests::{ONE_LAYOUT, error_of, parse};

#[test]
fn rounds_and_runs_may_be_as_many_as_it_takes() {
    let plan = |text: &str| parse(&format!("[plan]\n{text}\n{ONE_LAYOUT}")).plan;
    let until_known = |repeats| {
        Some(Auto {
            precision_percent: 2.0,
            time_ms: None,
            repeats,
        })
    };
    for (text, rounds, runs, repeats) in [
        (
            "rounds = \"auto\"\nprecision = \"2%\"\nmax = 12",
            12,
            1,
            Repeats::Rounds,
        ),
        (
            "rounds = \"auto\"\nmargin = \"4%\"\nruns = 3",
            30,
            3,
            Repeats::Rounds,
        ),
        (
            "rounds = 2\nmargin = \"4%\"\nruns = \"auto\"",
            2,
            20,
            Repeats::Runs,
        ),
        (
            "rounds = \"auto\"\nmargin = \"4%\"\nruns = \"auto\"\nmax_runs = 8",
            30,
            8,
            Repeats::RunsAndRounds,
        ),
    ] {
        let plan = plan(text);
        assert_eq!((plan.rounds, plan.runs), (rounds, runs), "{text}");
        assert_eq!(plan.auto, until_known(repeats), "{text}");
        assert_eq!(plan.standard().looks, Looks::EveryRound);
        let (least, most) = (plan.fewest_rounds(), plan.all_rounds());
        assert!(least >= ROUNDS_MIN && least <= most, "{text}");
    }
    let fixed = plan("rounds = 4");
    assert_eq!(fixed.standard().looks, Looks::Once);
    assert_eq!((fixed.fewest_rounds(), fixed.fewest_runs()), (4, 1));
}

#[test]
fn a_warmup_lasts_until_the_throughput_is_steady_unless_it_is_told_how_long() {
    let plan = |text: &str| {
        let plan = parse(&format!("[plan]\n{text}\n{ONE_LAYOUT}")).plan;
        (plan.warmup_ms, plan.warmup_max_ms)
    };
    assert_eq!(plan("warmup = \"7s\""), (7_000, None));
    assert_eq!(plan("warmup = \"auto\""), (5_000, Some(60_000)));
    assert_eq!(plan("measure = \"1m\""), (15_000, Some(60_000)));
    assert_eq!(plan("warmup_max = \"2s\""), (2_000, Some(2_000)));
}

#[test]
fn keys_of_auto_need_it() {
    for key in [
        "precision = \"2%\"",
        "max = 10",
        "max_runs = 10",
        "time = \"9m\"",
    ] {
        let error = error_of(&format!("[plan]\n{key}\n{ONE_LAYOUT}"), &[]);
        let key = key.split(' ').next().unwrap();
        assert_eq!(error.key(), Some(format!("plan.{key}").as_str()));
    }
    for (key, other) in [("max", "runs"), ("max_runs", "rounds")] {
        let text = format!("[plan]\n{other} = \"auto\"\n{key} = 10\n{ONE_LAYOUT}");
        assert_eq!(
            error_of(&text, &[]).key(),
            Some(format!("plan.{key}").as_str())
        );
    }
    let text = format!("[plan]\nwarmup = \"2s\"\nwarmup_max = \"9s\"\n{ONE_LAYOUT}");
    assert_eq!(error_of(&text, &[]).key(), Some("plan.warmup_max"));
}
