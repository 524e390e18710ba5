//! The run directory that a record would have come from.

use std::path::Path;

use spindle_result::{CaseRecord, RunRecord, SampledTrial};
use spindle_run::journal::{Event, Journal};

use super::showcase::{self, Extent};

/// Makes the journal of the showcase of this extent, and says how many bytes it has.
pub fn store(record: &RunRecord, extent: Extent<'_>, directory: &Path) -> u64 {
    let mut journal = Journal::create(directory).expect("a new journal");
    let mut append = |event: Event| journal.append(&event).expect("the journal takes it");
    append(Event::RunStarted {
        run: "showcase".to_owned(),
        version: "0".to_owned(),
        at: "2026-01-01T12:00:00Z".to_owned(),
        working_directory: "/".into(),
        experiment: Box::new(showcase::experiment(extent)),
    });
    append(Event::MemoryBudget {
        bytes: record.memory_budget_bytes,
    });
    for (index, layout) in record.layouts.iter().enumerate() {
        append(Event::LayoutExamined {
            index,
            layout: layout.clone(),
            skip: None,
        });
    }
    for case in &record.cases {
        for trial in &case.trials {
            append(finished(record, case, trial.round));
        }
    }
    append(Event::RunFinished);
    let file = directory.join(spindle_run::journal::FILE_NAME);
    std::fs::metadata(file).expect("the journal is there").len()
}

fn finished(record: &RunRecord, case: &CaseRecord, round: u32) -> Event {
    let is_of_trial = |sampled: &&SampledTrial| {
        Some(&sampled.case) == record.id_of(case).as_ref() && sampled.round == round
    };
    let sampled = record.series.iter().find(is_of_trial);
    let sampled = sampled.expect("every trial was sampled");
    let mut trials = case.trials.iter();
    let trial = trials.find(|trial| trial.round == round);
    Event::TrialFinished {
        layout: case.layout,
        load: case.load,
        trial: Box::new(trial.expect("a trial of the case").clone()),
        sample_ms: sampled.interval_ms,
        samples: sampled.tps.clone(),
        system: sampled.system.clone(),
    }
}
