//! What version 0.1 wrote before results had format 2 still reads: the journal of a run, and its `result.json`. Both
//! files are as they were written, by a run of two load levels one of whose layouts could not be measured.

use std::path::Path;

use spindle_result::{CaseId, RunResult};

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/old_run");

fn old_result() -> RunResult {
    RunResult::from_json(include_str!("old_run/result.json")).expect("format 1 still reads")
}

#[test]
fn a_result_of_format_1_reads_with_its_workload_in_the_head() {
    let text = include_str!("old_run/result.json");
    assert!(text.contains("\"format\": 1"), "the fixture is old");
    let result = old_result();
    assert_eq!(result.workload, "oltp_mix");
    assert_eq!((result.cases.len(), result.rankings.len()), (4, 2));
    let case = result
        .case(&CaseId::new("buffered", 2))
        .expect("it is there");
    assert_eq!(case.trials.len(), 2);
    let layout = &result.layouts[1];
    let why = layout.not_direct.as_deref().expect("it stood in a note");
    assert!(why.starts_with("tmpfs accepts O_DIRECT"), "{why}");
    assert_eq!(layout.notes, Vec::<String>::new());
    let again = RunResult::from_json(&result.to_json()).expect("it is written as of today");
    assert_eq!(again, result);
}

#[test]
fn a_journal_of_that_time_adds_up_to_the_same_result() {
    let now = spindle_run::directory::read(Path::new(DIRECTORY)).expect("the journal still reads");
    let (now, old) = (now.result, old_result());
    assert_eq!(now.workload, old.workload);
    assert_eq!(now.cases, old.cases);
    assert_eq!(now.rankings, old.rankings);
    assert_eq!(now.layouts, old.layouts);
}
