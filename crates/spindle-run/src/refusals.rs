//! What the engines, as they are installed here, say of the candidates' methods and settings, and of what is loaded,
//! before anything runs. A mistake in the experiment ends the command; what this machine or this version does not have
//! leaves a candidate out. Commands ask before they plan or run; what a place refuses is found by
//! [`examine`](super::examine).

use std::collections::BTreeMap;

use spindle_engines::engine::Engine;
use spindle_engines::sql::{ServerRequest, server};
use spindle_engines::{EngineError, ErrorKind};
use spindle_experiment::{Caching, DatabaseSpec, Experiment, KernelSpec, MadeLayout};
use spindle_layout::spec::DeviceSpec;

use super::databases::blocks;
use super::examine::smaller_than_sectors;
use super::server_files::request_of;

/// Candidates that are refused here, by the numbers of their layouts.
pub struct Refusals(BTreeMap<usize, EngineError>);

impl Refusals {
    /// Looks at nothing but methods, settings and dumps, and changes nothing.
    pub fn of(experiment: &Experiment) -> Refusals {
        let mut asked: Vec<(Option<ServerRequest>, Option<EngineError>)> = Vec::new();
        let mut refused = BTreeMap::new();
        for index in experiment.candidates() {
            let request = request_to_server(experiment, index);
            let mut known = asked.iter();
            let known = known.find(|(of, _)| request.is_some() && *of == request);
            let why = match known {
                Some((_, why)) => why.clone(),
                None => {
                    let why = refusal(experiment, index, request.as_ref());
                    asked.push((request, why.clone()));
                    why
                }
            };
            refused.extend(why.map(|why| (index, why)));
        }
        Refusals(refused)
    }

    /// The settings that are misspelt, each with its layout where others are right; `None` where there is none.
    pub fn mistakes(&self, experiment: &Experiment) -> Option<String> {
        let all = experiment.candidates().count();
        self.told(all, |index| experiment.layouts[index].name.as_str())
    }

    fn told<'a>(&self, all: usize, name_of: impl Fn(usize) -> &'a str) -> Option<String> {
        let is_mistake = |why: &EngineError| why.kind() == ErrorKind::MisspeltSetting;
        let mut told: Vec<(String, Vec<&str>)> = Vec::new();
        for (index, why) in self.0.iter().filter(|(_, why)| is_mistake(why)) {
            let name = name_of(*index);
            for why in why.to_string().lines().map(without_stop) {
                match told.iter_mut().find(|(known, _)| known == why) {
                    Some((_, names)) => names.push(name),
                    None => told.push((why.to_owned(), vec![name])),
                }
            }
        }
        let told = told
            .into_iter()
            .map(|(why, names)| match names.len() == all {
                true => why,
                false => format!("{}: {why}", names.join("; ")),
            });
        let told: Vec<String> = told.collect();
        (!told.is_empty()).then(|| told.join("\n"))
    }

    /// Those that are combinations of a matrix, with the reasons.
    pub fn combinations(&self, experiment: &Experiment) -> Vec<(usize, String)> {
        let Some(matrix) = &experiment.matrix else {
            return Vec::new();
        };
        let of_matrix = self.0.iter();
        let of_matrix =
            of_matrix.filter(|(index, _)| matrix.has(&experiment.layouts[**index].name));
        of_matrix
            .map(|(index, why)| (*index, in_words(why)))
            .collect()
    }

    /// All of them, with the reasons.
    pub fn reasons(&self) -> BTreeMap<usize, String> {
        let all = self.0.iter();
        all.map(|(index, why)| (*index, in_words(why))).collect()
    }
}

fn in_words(why: &EngineError) -> String {
    without_stop(&why.to_string()).to_owned()
}

fn without_stop(line: &str) -> &str {
    line.trim_end_matches('.')
}

/// What a layout asks of a server that is installed here, which takes its time to answer. `None`: nothing; datafiles on
/// devices have their own settings.
fn request_to_server(experiment: &Experiment, index: usize) -> Option<ServerRequest> {
    let layout = &experiment.layouts[index];
    match &experiment.database_of(index).spec {
        DatabaseSpec::Server(spec) if !layout.made.as_ref().is_some_and(MadeLayout::is_raw) => {
            Some(request_of(spec, experiment, index))
        }
        _ => None,
    }
}

/// Why the method or the settings of a candidate cannot be used here, or what is loaded into it.
fn refusal(
    experiment: &Experiment,
    index: usize,
    request: Option<&ServerRequest>,
) -> Option<EngineError> {
    match &experiment.database_of(index).spec {
        DatabaseSpec::Kernel(kernel) => {
            let refused = blocks::engine(experiment, index, kernel).examine().err();
            refused.or_else(|| smaller_than_sectors_of_devices(experiment, index, kernel))
        }
        DatabaseSpec::Server(spec) => {
            let (server, request) = (server(spec.kind), request?);
            let dumps = experiment.workload.dumps();
            let mut refused = dumps
                .into_iter()
                .filter_map(|dump| server.examine_dump(request, dump).err());
            server.examine(request).err().or_else(|| refused.next())
        }
        // It is not started from here.
        DatabaseSpec::Remote(_) => None,
    }
}

/// Why direct I/O cannot be done on a device that is there before the layout is made.
fn smaller_than_sectors_of_devices(
    experiment: &Experiment,
    index: usize,
    kernel: &KernelSpec,
) -> Option<EngineError> {
    let layout = &experiment.layouts[index];
    let made = layout
        .made
        .as_ref()
        .filter(|_| layout.io.caching == Caching::Direct)?;
    let mut devices = made.spec.devices.iter().filter_map(|device| match device {
        DeviceSpec::Existing(path) => Some(path),
        DeviceSpec::File { .. } => None,
    });
    let block_bytes = kernel.files.block_size_bytes;
    let why = devices.find_map(|path| smaller_than_sectors(path, block_bytes))?;
    Some(EngineError::refused(why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_several_layouts_is_told_once() {
        let misspelt = |lines: &[&str]| EngineError::misspelt(lines.join("\n"));
        let refusals = Refusals(BTreeMap::from([
            (0, misspelt(&["no \"fsnyc\".", "no \"wal_levle\"."])),
            (1, misspelt(&["no \"wal_levle\".", "no \"port\"."])),
            (2, EngineError::refused("needs PostgreSQL 18")),
        ]));
        let told = refusals.told(2, |index| ["a", "b", "c"][index]).unwrap();
        assert_eq!(told, "a: no \"fsnyc\"\nno \"wal_levle\"\nb: no \"port\"");
    }
}
