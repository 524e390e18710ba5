//! Which trials come next, in plans of every kind.

use super::*;
use crate::journal::Event;
use spindle_experiment::Experiment;
use spindle_result::{LoadLevel, Phase, Trial, TrialTimes, sample};

fn state(plan: &str, layouts: &[&str]) -> RunState {
    let layouts: String = layouts
        .iter()
        .map(|name| format!("[[layout]]\nname = \"{name}\"\n"))
        .collect();
    let experiment = Experiment::parse("x.toml", &format!("{plan}\n{layouts}"), &[]).unwrap();
    let started = Event::RunStarted {
        run: "r".to_string(),
        version: String::new(),
        at: String::new(),
        working_directory: std::path::PathBuf::new(),
        experiment: Box::new(experiment),
    };
    RunState::of(&[started]).unwrap()
}

fn finish(state: &mut RunState, planned: Planned, tpm: f64) {
    finish_keeping(state, planned, tpm, Keeps::EveryCommit);
}

fn finish_keeping(state: &mut RunState, planned: Planned, tpm: f64, keeps: Keeps) {
    let mut trial = sample::trial(planned.round, tpm);
    trial.promise.keeps = keeps;
    add(state, planned, trial);
}

fn add(state: &mut RunState, planned: Planned, trial: Trial) {
    state.add(&Event::TrialFinished {
        layout: planned.case.0,
        load: planned.case.1,
        trial: Box::new(trial),
        sample_ms: 100,
        samples: Vec::new(),
        system: Default::default(),
    });
}

/// Noise of about 1 %, of its own for each case and round.
fn noise(case: CaseKey, round: u32) -> f64 {
    const NOISE: [f64; 7] = [0.004, -0.011, 0.009, -0.003, 0.012, -0.008, 0.001];
    1.0 + NOISE[(case.0 * 3 + round as usize * (case.0 + 2)) % 7]
}

/// Runs to the end with these throughputs of the layouts, and tells how many rounds each of them took.
fn rounds_taken(state: &mut RunState, speeds: &[f64]) -> Vec<usize> {
    loop {
        let round = next_round(state);
        if round.is_empty() {
            break;
        }
        for planned in round {
            let tpm = speeds[planned.case.0] * noise(planned.case, planned.round);
            finish(state, planned, tpm);
        }
    }
    let taken = state.cases().into_iter();
    taken.map(|case| state.finished(case).count()).collect()
}

const AUTO: &str = "[plan]\nrounds = \"auto\"\nprecision = \"0.5%\"\nmargin = \"1%\"\nmax = 20\n";

#[test]
fn by_turns_only_cases_of_one_load_are_under_way_together() {
    let state = state("[workload]\nclients = [4, 8]", &["a", "b", "c"]);
    let round = next_round(&state);
    let loads = by_load(&round);
    assert_eq!(loads.len(), 2);
    for load in &loads {
        let layouts: BTreeSet<usize> = load.iter().map(|planned| planned.case.0).collect();
        let clients: BTreeSet<LoadLevel> = load.iter().map(|planned| planned.case.1).collect();
        assert_eq!((layouts.len(), clients.len()), (3, 1));
    }
    let orders: BTreeSet<Vec<u32>> = (0..20)
        .map(|turn| {
            let mut trials = vec![1, 2, 3];
            shuffle_turns(&mut trials, 1, 1, turn);
            trials
        })
        .collect();
    assert_eq!(orders.len(), 6, "each order comes");
}

#[test]
fn every_round_has_every_case_once_in_an_order_of_its_own() {
    let state = state("[workload]\nclients = [4, 8]", &["a", "b", "c"]);
    let rounds: Vec<Vec<CaseKey>> = (1..=3).map(|round| order(&state, round)).collect();
    for round in &rounds {
        let mut sorted = round.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, state.cases());
    }
    assert!(rounds[0] != rounds[1] || rounds[1] != rounds[2]);
    assert_eq!(next_round(&state).len(), 6);
    assert_eq!(trials_left(&state), 18);
}

/// Two layouts, of which the second does half of what the first does.
fn with_parts(plan: &str) -> RunState {
    state(
        &format!("{plan}[workload]\nclients = 8\nrate = [\"30%\", \"90%\"]"),
        &["a", "b"],
    )
}

/// Ends the trials of a round; whether each had a rate.
fn end_round(state: &mut RunState) -> Vec<bool> {
    let round = next_round(state);
    for planned in &round {
        finish(state, *planned, [12_000.0, 6_000.0][planned.case.0]);
    }
    let has_rate = round.iter().map(|planned| planned.case.1.rate.is_some());
    has_rate.collect()
}

#[test]
fn all_closed_loops_come_before_any_part_of_the_slowest() {
    let mut state = with_parts("[plan]\nrounds = 4\n");
    assert_eq!(trials_left(&state), 24);
    for _ in 0..3 {
        assert!(!maxima_left(&state).is_empty());
        assert_eq!(end_round(&mut state), [false; 2]);
    }
    assert!(maxima_left(&state).is_empty());
    assert_eq!(slowest(&state, 8), Some((1, 100.0)));
    assert_eq!(trials_left(&state), 18);
    for _ in 0..3 {
        assert_eq!(end_round(&mut state), [true; 4]);
    }
    // What tells no rate any more comes with the others, and changes none.
    let last = next_round(&state);
    assert_eq!((last.len(), last[0].round), (6, 4));
    for planned in last {
        finish(&mut state, planned, 60.0);
    }
    assert_eq!(slowest(&state, 8), Some((1, 100.0)));
    assert!(next_round(&state).is_empty());
}

#[test]
fn rates_stay_what_they_were_when_a_run_goes_on() {
    let mut state = with_parts("[plan]\nrounds = 1\n");
    assert_eq!(end_round(&mut state), [false; 2]);
    assert_eq!(state.slowest_per_s(8), None);
    state.add(&Event::SlowestKnown {
        clients: 8,
        layout: "b".to_owned(),
        per_s: 100.0,
    });
    assert_eq!(state.slowest_per_s(8), Some(100.0));
    assert_eq!(state.slowest_per_s(16), None);
    assert_eq!(end_round(&mut state), [true; 4]);
}

#[test]
fn a_layout_that_has_no_closed_loop_is_not_the_slowest() {
    let mut state = with_parts("[plan]\nrounds = 1\n");
    assert_eq!(slowest(&state, 8), None);
    state.add(&Event::TrialFailed {
        layout: 1,
        load: LoadLevel::of(8),
        round: 1,
        reason: "the disk is full".to_owned(),
    });
    assert_eq!(end_round(&mut state), [false]);
    assert_eq!(slowest(&state, 8), Some((0, 200.0)));
}

#[test]
fn with_auto_rounds_closed_loops_come_first_too() {
    let mut state = with_parts(AUTO);
    for _ in 0..3 {
        assert_eq!(end_round(&mut state), [false; 2]);
    }
    assert_eq!(end_round(&mut state), [true; 4]);
}

#[test]
fn a_failed_case_is_left_out_until_the_run_goes_on() {
    let mut state = state("", &["a", "b", "c"]);
    let failed = Event::TrialFailed {
        layout: 1,
        load: LoadLevel::of(8),
        round: 1,
        reason: "r".to_string(),
    };
    state.add(&failed);
    assert_eq!((next_round(&state).len(), trials_left(&state)), (2, 6));
    state.forgive();
    assert_eq!((next_round(&state).len(), trials_left(&state)), (3, 9));
}

#[test]
fn a_fixed_plan_takes_all_its_rounds() {
    let mut state = state("[plan]\nrounds = 4\n", &["a", "b"]);
    assert_eq!(rounds_taken(&mut state, &[100.0, 900.0]), [4, 4]);
    assert_eq!(layouts_not_done(&state), Vec::<usize>::new());
}

#[test]
fn what_is_settled_is_measured_no_more() {
    let mut state = state(AUTO, &["slow", "fast", "nearly as fast"]);
    let taken = rounds_taken(&mut state, &[100.0, 200.0, 198.0]);
    assert_eq!(taken[0], spindle_stats::ROUNDS_MIN as usize);
    assert!(taken[1] > taken[0] && taken[1] == taken[2], "{taken:?}");
    assert_eq!((trials_left(&state), layouts_not_done(&state)), (0, vec![]));
}

/// Each trial takes 10 s, loading 15 s: of two minutes, five rounds of two cases are left.
#[test]
fn a_plan_with_a_time_ends_with_it() {
    let taken = |time: &str| {
        let plan = format!("[plan]\nrounds = \"auto\"\nprecision = \"0.1%\"\ntime = \"{time}\"\n");
        let mut state = state(&plan, &["a", "b"]);
        state.add(&Event::PhaseDone {
            phase: Phase {
                what: "loading databases".to_owned(),
                ms: 15_000,
            },
        });
        let mut rounds = 0;
        loop {
            let round = next_round(&state);
            if round.is_empty() {
                return rounds;
            }
            rounds += 1;
            for planned in round {
                let mut trial =
                    sample::trial(planned.round, 100.0 * noise(planned.case, planned.round));
                trial.conditions.times = Some(TrialTimes {
                    whole_ms: 10_000,
                    ..TrialTimes::default()
                });
                add(&mut state, planned, trial);
            }
            let left = trials_left(&state) as u64;
            assert!(
                rounds < 3 || 15_000 + 20_000 * rounds + 10_000 * left <= 120_000,
                "{rounds} {left}"
            );
        }
    };
    assert_eq!((taken("2m"), taken("1s")), (5, 3));
}

/// Warm-up and measuring are 1.5 s of a trial; restoring, checking and stopping another.
#[test]
fn before_the_first_trial_ends_the_rest_of_it_is_reckoned_with() {
    let plan = "[database]\nsize = \"256MiB\"\n[plan]\nrounds = \"auto\"\ntime = \"60s\"\n\
                warmup = \"300ms\"\nmeasure = \"1200ms\"\n";
    let mut state = state(plan, &["a", "b", "c"]);
    let left = trials_left(&state);
    assert!(
        (12..=24).contains(&left) && left.is_multiple_of(3),
        "whole rounds: {left}"
    );
    let reckoned = trial_time(&state);
    let first = next_round(&state)[0];
    let mut trial = sample::trial(first.round, 100.0);
    trial.conditions.times = Some(TrialTimes {
        whole_ms: 9_000,
        ..TrialTimes::default()
    });
    add(&mut state, first, trial);
    assert!(reckoned < Duration::from_secs(5), "{reckoned:?}");
    assert_eq!(trial_time(&state), Duration::from_secs(9));
    assert_eq!(
        trials_left(&state),
        8,
        "what a trial really takes counts at once"
    );
}

/// Three rounds are measured however long they take, and no more are announced.
#[test]
fn a_time_that_is_too_short_takes_three_rounds() {
    let mut state = state("[plan]\nrounds = \"auto\"\ntime = \"1s\"\n", &["a", "b"]);
    let mut announced = vec![trials_left(&state)];
    while let Some(planned) = next_round(&state).first().copied() {
        finish(&mut state, planned, 100.0);
        announced.push(trials_left(&state));
    }
    assert_eq!(announced, [6, 5, 4, 3, 2, 1, 0]);
}

/// A trial that is set aside takes its time as well.
#[test]
fn time_for_trials_that_are_set_aside_is_spent_too() {
    let plan = "[plan]\nrounds = \"auto\"\ntime = \"30s\"\n";
    let mut state = state(plan, &["a", "b"]);
    let planned = next_round(&state)[0];
    let mut trial = sample::trial(planned.round, 100.0);
    trial.conditions.times = Some(TrialTimes {
        whole_ms: 10_000,
        ..TrialTimes::default()
    });
    assert!(has_time_to_repeat(&state, &trial), "20 s of 30 s");
    state.add(&Event::TrialSetAside {
        layout: planned.case.0,
        load: planned.case.1,
        trial: Box::new(trial.clone()),
        reason: "it lasted 1.2 s instead of 1.0 s".to_owned(),
    });
    assert!(has_time_to_repeat(&state, &trial), "30 s of 30 s");
    state.add(&Event::TrialSetAside {
        layout: planned.case.0,
        load: planned.case.1,
        trial: Box::new(trial.clone()),
        reason: "it lasted 1.2 s instead of 1.0 s".to_owned(),
    });
    assert!(!has_time_to_repeat(&state, &trial));
}

/// Effects are of all cases, so the slow ones of a matrix are measured as often as those that are close.
#[test]
fn no_case_of_a_matrix_ends_before_the_others() {
    let matrix = "[vary]\nio.method = [\"sync\", \"async\"]\ndatabase.datafiles = [1, 4]\n";
    let mut state = state(&format!("{AUTO}\n{matrix}"), &["base"]);
    let taken = rounds_taken(&mut state, &[100.0, 101.0, 200.0, 198.0]);
    assert!(taken[0] > spindle_stats::ROUNDS_MIN as usize, "{taken:?}");
    assert!(taken.iter().all(|rounds| *rounds == taken[0]), "{taken:?}");
}

/// The quickest may lose commits: whether it is much or very much quicker decides nothing, and who wins among the
/// others does.
#[test]
fn rounds_go_to_the_layouts_that_keep_the_most() {
    let taken = |keeps: [Keeps; 3]| {
        let mut state = state(AUTO, &["careful", "as careful", "careless"]);
        loop {
            let round = next_round(&state);
            if round.is_empty() {
                break;
            }
            for planned in round {
                let tpm = [100.0, 99.0, 101.0][planned.case.0] * noise(planned.case, planned.round);
                finish_keeping(&mut state, planned, tpm, keeps[planned.case.0]);
            }
        }
        [0, 1, 2].map(|layout| state.finished((layout, 8.into())).count())
    };
    let least = spindle_stats::ROUNDS_MIN as usize;
    let every = Keeps::EveryCommit;
    let [careful, as_careful, careless] = taken([every, every, Keeps::AllButTheLast]);
    assert!(
        careful > least && careful == as_careful,
        "{careful} {as_careful}"
    );
    assert_eq!(careless, least);
    assert!(taken([every; 3])[2] > least);
    // Nobody keeps as much as the first: then the others are what is told of it.
    let [careful, careless, _] = taken([every, Keeps::AllButTheLast, Keeps::MayBeDamaged]);
    assert!(careful > least && careless > least, "{careful} {careless}");
}

#[test]
fn each_run_takes_the_rounds_that_it_needs_by_itself() {
    let plan = AUTO.replace("[plan]", "[plan]\nruns = 3");
    let mut state = state(&plan, &["a", "b"]);
    let mut left_before = usize::MAX;
    loop {
        let round = next_round(&state);
        let Some(first) = round.first() else {
            break;
        };
        let run = state.experiment.plan.run_of(first.round);
        assert_eq!(next_run(&state), Some(run));
        // A run that goes on later must not look like one without progress.
        let left = trials_left(&state);
        assert!(left < left_before, "{left} after {left_before}");
        left_before = left;
        for planned in round {
            // Only in the second run are they hard to tell apart.
            let of_second = if run == 2 { 199.0 } else { 100.0 };
            let tpm = [200.0, of_second][planned.case.0] * noise(planned.case, planned.round);
            finish(&mut state, planned, tpm);
        }
    }
    let taken = |run: u32| {
        let rounds = state.experiment.plan.rounds_of(run);
        state
            .finished((0, 8.into()))
            .filter(|trial| rounds.contains(&trial.round))
            .count()
    };
    let least = spindle_stats::ROUNDS_MIN as usize;
    assert_eq!((taken(1), taken(3)), (least, least));
    assert!(taken(2) > least, "{}", taken(2));
    assert_eq!((trials_left(&state), layouts_not_done(&state)), (0, vec![]));
}

/// Runs to the end; each run adds so much to the ratio of the two layouts, in turn. Returns the rounds of each run.
fn rounds_of_runs(state: &mut RunState, of_runs: &[f64]) -> Vec<usize> {
    let mut left_before = usize::MAX;
    let mut last = 0;
    loop {
        let round = next_round(state);
        let Some(first) = round.first() else {
            break;
        };
        assert!(first.round > last, "round {} comes back", first.round);
        last = first.round;
        assert_eq!(round.len(), 2, "every case has every round");
        let left = trials_left(state);
        assert!(left < left_before, "{left} after {left_before}");
        left_before = left;
        let run = next_run(state).unwrap() as usize;
        if *state.experiment.plan.rounds_of(run as u32).start() == first.round {
            let phase = Phase {
                what: "load".to_owned(),
                ms: 4_000,
            };
            state.add(&Event::PhaseDone { phase });
        }
        for planned in round {
            let of_run = [1.0, of_runs[run % of_runs.len()]][planned.case.0];
            let tpm = 100.0 * of_run * noise(planned.case, planned.round);
            finish(state, planned, tpm);
        }
    }
    assert_eq!((trials_left(state), layouts_not_done(state)), (0, vec![]));
    let plan = &state.experiment.plan;
    let of_run = |run: u32| {
        let rounds = plan.rounds_of(run);
        let finished = state.finished((0, 8.into()));
        finished
            .filter(|trial| rounds.contains(&trial.round))
            .count()
    };
    let runs = (1..=plan.runs).map(of_run);
    runs.filter(|rounds| *rounds > 0).collect()
}

#[test]
fn runs_are_repeated_until_they_settle_the_pair() {
    let plan =
        "[plan]\nruns = \"auto\"\nmax_runs = 12\nrounds = 2\nmargin = \"1%\"\npause = \"0s\"\n";
    let taken = |of_runs: &[f64]| rounds_of_runs(&mut state(plan, &["a", "b"]), of_runs);
    // Certain after six runs; runs that differ by more than what they show are made to the last.
    assert_eq!(taken(&[0.5]), [2; 6]);
    assert_eq!(taken(&[0.9, 1.1]), [2; 12]);
}

#[test]
fn runs_and_rounds_are_repeated_where_the_variance_is() {
    let plan = "[plan]\nruns = \"auto\"\nmax_runs = 12\nrounds = \"auto\"\nmargin = \"1%\"\npause = \"0s\"\n";
    let taken = |of_runs: &[f64]| rounds_of_runs(&mut state(plan, &["a", "b"]), of_runs);
    let lucky = taken(&[0.9, 1.1]);
    assert_eq!((lucky[..3].to_vec(), lucky.len()), (vec![3; 3], 12));
    assert!(lucky[3..].iter().all(|rounds| *rounds == 1), "{lucky:?}");
    // No variance between runs: as many rounds as there may be, and the fewest runs.
    let steady = taken(&[0.5]);
    assert!(steady.len() == 6 && steady[5] > 3, "{steady:?}");
}

#[test]
fn no_run_begins_that_would_not_end_in_time() {
    let plan = "[plan]\nruns = \"auto\"\nrounds = 2\ntime = \"60s\"\npause = \"0s\"\n";
    let mut state = state(plan, &["a", "b"]);
    let taken = rounds_of_runs(&mut state, &[0.9, 1.1]);
    assert!((3..20).contains(&taken.len()), "{taken:?}");
}

/// Six rounds, or runs, were certain long before the time was over: nothing says that it ended them.
#[test]
fn a_plan_that_was_certain_in_time_was_not_ended_by_it() {
    for (repeats, of_runs, is_ended) in [
        ("rounds = \"auto\"", 0.5, false),
        ("rounds = 2\nruns = \"auto\"\npause = \"0s\"", 0.5, false),
        ("rounds = \"auto\"", 1.0, true),
    ] {
        let time = if is_ended { "20s" } else { "1h" };
        let plan = format!(
            "[plan]\n{repeats}\nprecision = \"0.1%\"\nmargin = \"0%\"\ntime = \"{time}\"\n"
        );
        let mut state = state(&plan, &["a", "b"]);
        rounds_taken(&mut state, &[100.0, 100.0 * of_runs]);
        state.add(&Event::RunFinished);
        let ended = state.record().auto.unwrap().ended_by_time_ms;
        assert_eq!(ended.is_some(), is_ended, "{repeats}: {ended:?}");
    }
}

#[test]
fn no_case_takes_more_than_the_most() {
    let mut state = state(&AUTO.replace("20", "8"), &["a", "b"]);
    assert_eq!(rounds_taken(&mut state, &[100.0, 101.0]), [8, 8]);
}

#[test]
fn each_load_level_is_settled_by_itself() {
    let plan = format!("{AUTO}[workload]\nclients = [4, 8]\n");
    let mut state = state(&plan, &["a", "b"]);
    loop {
        let round = next_round(&state);
        if round.is_empty() {
            break;
        }
        for planned in round {
            let is_plain = planned.case == (1, 4.into());
            let speed = if is_plain { 300.0 } else { 100.0 };
            finish(
                &mut state,
                planned,
                speed * noise(planned.case, planned.round),
            );
        }
    }
    let taken = |case| state.finished(case).count();
    assert_eq!((taken((0, 4.into())), taken((1, 4.into()))), (6, 6));
    assert!(taken((0, 8.into())) > 6 && taken((0, 8.into())) == taken((1, 8.into())));
}

#[test]
fn a_run_that_goes_on_wants_what_it_would_have_wanted() {
    let mut whole = state(AUTO, &["slow", "fast", "nearly as fast"]);
    let mut events: Vec<(Planned, f64)> = Vec::new();
    loop {
        let round = next_round(&whole);
        if round.is_empty() {
            break;
        }
        for planned in round {
            let tpm = [100.0, 200.0, 198.0][planned.case.0] * noise(planned.case, planned.round);
            finish(&mut whole, planned, tpm);
            events.push((planned, tpm));
        }
    }
    for cut in 0..events.len() {
        let mut again = state(AUTO, &["slow", "fast", "nearly as fast"]);
        for (planned, tpm) in &events[..cut] {
            finish(&mut again, *planned, *tpm);
        }
        assert_eq!(next_round(&again)[0], events[cut].0, "after {cut} trials");
    }
}

#[test]
fn a_new_best_brings_back_what_is_not_settled_beside_it() {
    let mut state = state(AUTO, &["third", "first", "best later"]);
    let mut came_back = false;
    for _ in 0..20 {
        let round = next_round(&state);
        let number = round.first().map_or(0, |planned| planned.round);
        came_back |= number > 7 && round.iter().any(|planned| planned.case.0 == 0);
        for planned in round {
            // The last one is wild, and overtakes after the first has beaten the third; the third has not been beaten
            // by it.
            let wild = if planned.round <= 6 {
                [60.0, 140.0][planned.round as usize % 2]
            } else {
                260.0
            };
            let tpm = [98.0, 100.0, wild][planned.case.0];
            finish(&mut state, planned, tpm);
        }
    }
    assert!(came_back);
}

#[test]
fn a_layout_that_is_run_again_is_measured_with_the_one_it_repeats() {
    let plan = AUTO.replace("[plan]", "[plan]\nnoise_check = true");
    let mut state = state(&plan, &["base", "fast"]);
    assert_eq!(state.cases().len(), 3);
    let taken = rounds_taken(&mut state, &[100.0, 200.0, 100.0]);
    assert_eq!(taken[1], spindle_stats::ROUNDS_MIN as usize);
    assert!(taken[0] > taken[1] && taken[0] == taken[2], "{taken:?}");
}

#[test]
fn runs_follow_one_another_with_orders_of_their_own() {
    let mut state = state("[plan]\nrounds = 2\nruns = 3", &["a", "b"]);
    assert_eq!(trials_left(&state), 12);
    let mut seen = Vec::new();
    while let Some(run) = next_run(&state) {
        for planned in next_round(&state) {
            seen.push((run, planned.round));
            finish(&mut state, planned, 100.0);
        }
    }
    let expected = [1_u32, 2, 3, 4, 5, 6].map(|round| (round.div_ceil(2), round));
    seen.dedup();
    assert_eq!(seen, expected);
    assert!(layouts_not_done(&state).is_empty());
}

#[test]
fn no_place_in_the_file_is_made_first_in_every_run() {
    let made_in = |run: u32| {
        let mut state = state("", &["a", "b", "c"]);
        state.run = format!("r-{run}");
        order_of_making(&state, &[2, 0, 1, 0])
    };
    let mut times_first = [0; 3];
    for run in 0..300 {
        let order = made_in(run);
        assert_eq!(order, made_in(run), "the same when the run goes on");
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, [0, 1, 2]);
        times_first[order[0]] += 1;
    }
    assert!(
        times_first.iter().all(|times| (70..130).contains(times)),
        "{times_first:?}"
    );
}
