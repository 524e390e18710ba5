//! Run directories with journals that are made up, as runs would have left them.

use std::path::Path;

use spindle_experiment::Experiment;
use spindle_result::{Layout, LoadLevel, PageCache, SystemSeries};
use spindle_run::journal::{Event, Journal};

use crate::report::fixture;

const EXPERIMENT: &str = r#"
name = "made-up"
[workload]
clients = 8
[plan]
warmup = "1s"
measure = "5s"
[[layout]]
name = "buffered"
[[layout]]
name = "direct"
io = { caching = "direct" }
"#;

/// What a made-up run is like.
pub struct Run<'a> {
    /// When it began.
    pub at: &'a str,
    /// How fast its second layout is beside that of the usual run.
    pub speed_of_second: f64,
    /// Rounds that are done, of three.
    pub rounds: u32,
    /// Overrides of the experiment.
    pub sets: &'a [&'a str],
}

impl Default for Run<'_> {
    fn default() -> Self {
        Run {
            at: "2026-01-01T12:00:00Z",
            speed_of_second: 1.0,
            rounds: 3,
            sets: &[],
        }
    }
}

impl Run<'_> {
    /// Makes the run directory.
    pub fn write(&self, directory: &Path) {
        std::fs::create_dir_all(directory).unwrap();
        let mut journal = Journal::create(directory).unwrap();
        for event in self.events() {
            journal.append(&event).unwrap();
        }
    }

    fn events(&self) -> Vec<Event> {
        let sets: Vec<String> = self.sets.iter().map(|set| (*set).to_owned()).collect();
        let experiment = Experiment::parse("made-up.toml", EXPERIMENT, &sets).unwrap();
        let mut events = vec![Event::RunStarted {
            run: "made-up".to_owned(),
            version: "0".to_owned(),
            at: self.at.to_owned(),
            working_directory: "/".into(),
            experiment: Box::new(experiment),
        }];
        for (index, name) in ["buffered", "direct"].into_iter().enumerate() {
            events.push(Event::LayoutExamined {
                index,
                layout: layout(name),
                skip: None,
            });
        }
        for round in 1..=self.rounds {
            events.extend([0, 1].map(|layout| self.trial(layout, round)));
        }
        if self.rounds == 3 {
            events.push(Event::RunFinished);
        }
        events
    }

    fn trial(&self, layout: usize, round: u32) -> Event {
        let mut trial = fixture::trial(2 * layout, round);
        if layout == 1 {
            trial.tpm *= self.speed_of_second;
        }
        Event::TrialFinished {
            layout,
            load: LoadLevel::of(8),
            samples: vec![trial.tpm / 60.0; 10],
            trial: Box::new(trial),
            sample_ms: 500,
            system: SystemSeries::default(),
        }
    }
}

fn layout(name: &str) -> Layout {
    Layout {
        name: name.to_owned(),
        path: "/srv/spindle".to_owned(),
        caching: match name {
            "buffered" => PageCache::Buffered,
            _ => PageCache::Direct,
        },
        method: "sync".into(),
        engine: None,
        price: None,
        description: format!("files on ext4, {name}"),
        emulated: Vec::new(),
        not_direct: None,
        notes: Vec::new(),
        database: None,
        stack: Vec::new(),
    }
}
