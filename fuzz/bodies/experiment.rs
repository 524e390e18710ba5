//! Any text as an experiment file: read, or refused with a message that can be shown. What was read is kept with a run,
//! and must be read back from there as the same, but for passwords, which are never kept.

use spindle_experiment::Experiment;

/// Reads the experiment.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match Experiment::parse("random.toml", text, &[]) {
        Ok(experiment) => {
            let kept = serde_json::to_string(&experiment).expect("an experiment is data");
            let again: Experiment = serde_json::from_str(&kept).expect("it was written just now");
            assert_eq!(serde_json::to_string(&again).expect("likewise"), kept);
            let has_password = format!("{experiment:?}").contains("password: Some(");
            assert!(has_password || again == experiment, "{experiment:?}");
        }
        Err(error) => {
            let shown = format!("{:?}", miette::Report::new(error));
            assert!(!shown.trim().is_empty());
        }
    }
}

/// The examples.
pub fn beginnings() -> Vec<Vec<u8>> {
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let examples = std::fs::read_dir(examples).expect("the examples");
    let mut paths: Vec<_> = examples.map(|entry| entry.expect("one").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "toml"));
    paths.sort();
    let texts = paths.iter().map(std::fs::read);
    texts.map(|text| text.expect("an example")).collect()
}
