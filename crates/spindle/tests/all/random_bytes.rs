//! Any text as an experiment file: what the fuzz target does, with the examples changed by seeds.

#[path = "../../../../fuzz/bodies/experiment.rs"]
mod experiment;
#[path = "../../../../fuzz/bodies/mutation.rs"]
mod mutation;

#[test]
fn an_experiment_is_read_or_refused_and_kept_as_it_was_read() {
    mutation::each_case(&experiment::beginnings(), 2_000, experiment::run);
}
