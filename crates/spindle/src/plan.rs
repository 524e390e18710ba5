//! `spindle plan`: what an experiment would make, write and take, before anything is touched.

mod databases;

use std::fmt::Write;
use std::time::Duration;

use spindle_layout::plan::{DelayedBy, LayoutPlan};
use spindle_layout::{Facts, LayoutSpec, Plan, SystemTree};
use spindle_stats::ROUNDS_MIN;

use crate::experiment::Experiment;
use crate::experiment::Layout;
use crate::experiment::quantity::{duration_text, size_text};
use crate::experiment::specs_of;
use crate::observe::SystemFiles;
use crate::observe::machine::DataPath;
use databases::Databases;

/// A look at what an experiment would do.
pub struct Look {
    /// For people.
    pub text: String,
    /// Whether at least one layout can be made here.
    pub can_run: bool,
}

/// Looks at devices, tools and rights; changes nothing.
///
/// # Errors
/// There is no current directory for relative paths.
pub fn look(experiment: &Experiment) -> std::io::Result<Look> {
    let layouts: Vec<usize> = (0..experiment.layouts.len()).collect();
    let made = specs_of(&experiment.layouts, &layouts)?;
    let facts = Facts::gather(&named(experiment, &made), &SystemTree::default());
    Ok(describe(experiment, &made, &facts))
}

/// What Spindle makes itself, with the names of all layouts that stand on it.
fn named(experiment: &Experiment, made: &[(LayoutSpec, Vec<usize>)]) -> Vec<LayoutSpec> {
    let named = |(spec, layouts): &(LayoutSpec, Vec<usize>)| {
        let names = layouts
            .iter()
            .map(|layout| experiment.layouts[*layout].name.as_str());
        LayoutSpec {
            name: names.collect::<Vec<_>>().join("; "),
            ..spec.clone()
        }
    };
    made.iter().map(named).collect()
}

/// The text for what is `made` on a machine with these facts.
fn describe(experiment: &Experiment, made: &[(LayoutSpec, Vec<usize>)], facts: &Facts) -> Look {
    let specs = named(experiment, made);
    let plan = Plan::of(&specs, facts, &experiment.name);
    let mut text = String::new();
    let there: Vec<_> = experiment
        .layouts
        .iter()
        .filter(|layout| layout.made.is_none() && layout.address().is_none())
        .collect();
    let mut can_be_used = false;
    for layout in &experiment.layouts {
        if let Some(address) = layout.address() {
            can_be_used = true;
            let _ = writeln!(
                text,
                "{}: the server at {address}, which somebody else runs: a schema of Spindle's own is made there, and dropped \
                 after the run",
                layout.name
            );
        }
    }
    for layout in &there {
        let _ = writeln!(
            text,
            "{}: the directory {}, which is there",
            layout.name,
            layout.path.display()
        );
        let is_server = experiment.database.engine.server().is_some();
        let is_undelayed = layout.delay.is_some() && is_server;
        if layout.delay.is_some() && !is_server {
            let _ = writeln!(text, "  delayed in the database, its own I/O only");
        }
        let undelayed = is_undelayed.then(|| not_delayed(experiment));
        match undelayed.or_else(|| cannot_be_put_back(experiment, layout)) {
            Some(reason) => {
                let _ = writeln!(text, "  cannot be used: {reason}");
            }
            None => can_be_used = true,
        }
    }
    if !specs.is_empty() {
        let _ = writeln!(text, "{plan}");
    }
    let databases = match experiment.is_foreign() {
        true => loaded_anew(experiment),
        false => Databases::of(experiment, made).to_string(),
    };
    let _ = writeln!(text, "{databases}");
    let _ = writeln!(text, "{}", trials(experiment));
    if let Some(price) = experiment.plan.restore.price() {
        let _ = writeln!(text, "Warning: {price}.");
    }
    let is_server = experiment.database.engine.server().is_some();
    let is_undelayed = |layout: &LayoutPlan| {
        is_server && matches!(layout.delayed_by, Some(DelayedBy::Database { .. }))
    };
    for layout in plan.layouts.iter().filter(|layout| is_undelayed(layout)) {
        let why = not_delayed(experiment);
        let _ = writeln!(text, "{} cannot be used: {why}.", layout.name);
    }
    let mut layouts = plan.layouts.iter();
    let can_be_made = layouts.any(|layout| layout.obstacles.is_empty() && !is_undelayed(layout));
    Look {
        text,
        can_run: can_be_made || can_be_used,
    }
}

fn not_delayed(experiment: &Experiment) -> String {
    let engine = experiment.database.engine;
    format!("{engine} does not delay its own I/O, and nothing beneath it can")
}

/// Why a directory that is there cannot be put back as the experiment asks, by its type; a run tries it.
fn cannot_be_put_back(experiment: &Experiment, layout: &Layout) -> Option<String> {
    let by = experiment.plan.restore;
    let place = DataPath::capture(&SystemFiles::default(), &layout.path);
    let reason = by.refusal_on(&place.file_system?.kind)?;
    Some(format!("not to be restored by {by}: {reason}"))
}

fn loaded_anew(experiment: &Experiment) -> String {
    let size = size_text(experiment.database.size_bytes);
    format!("Then the database is loaded into each schema before each trial: about {size}.")
}

fn trials(experiment: &Experiment) -> String {
    let plan = &experiment.plan;
    let cases = experiment.candidates().count() * experiment.workload.clients.len();
    let trials = |rounds: u32| cases as u64 * u64::from(rounds);
    let time = |rounds| {
        let time = Duration::from_millis(trials(rounds) * (plan.warmup_ms + plan.measure_ms));
        duration_text(time.as_secs() * 1000)
    };
    let (most, rounds_max) = (trials(plan.all_rounds()), plan.all_rounds());
    let restore = match experiment.is_foreign() {
        true => "loading again",
        false => plan.restore.as_str(),
    };
    if experiment.workload.transactions.queries().is_some() {
        return format!(
            "Then up to {most} trials ({cases} cases, {rounds_max} rounds), each as long as its queries take, and a restore before \
             each (by {restore})."
        );
    }
    let Some(auto) = plan.auto else {
        return format!(
            "Then {most} trials ({cases} cases, {rounds_max} rounds): at least {}, and a restore before each (by {restore}).",
            time(rounds_max)
        );
    };
    let rounds_min = ROUNDS_MIN * plan.runs;
    let (least, precision) = (trials(rounds_min), auto.precision_percent);
    format!(
        "Then {least} to {most} trials ({cases} cases, {rounds_min} to {rounds_max} rounds): {} to {} or more, and a restore \
         before each (by {restore}). A pair of cases is measured until it is beyond doubt, or its ratio known to {precision} %: a difference \
         of {} % or more is then found in 95 of 100 cases.",
        time(rounds_min),
        time(rounds_max),
        2.0 * precision
    )
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use spindle_layout::system::DeviceMapper;

    use super::*;

    const EXPERIMENT: &str = r#"
        [[layout]]
        name = "here"

        [[layout]]
        name = "xfs on stripes"
        devices = [{ file = "/d/a.img", size = "1GiB" }, { file = "/d/b.img", size = "1GiB" }]
        volume = { stripes = 2 }
        filesystem = { type = "xfs", mkfs = "-b size=4096", mount = "noatime" }
        precondition = {}

        [[layout]]
        name = "raw on a disk"
        devices = ["/dev/disk/by-id/none"]
        raw = true

        [[layout]]
        name = "half"
        devices = [{ file = "/d/c.img", size = "1GiB" }]
        share = "fair"
        raw = true

        [[layout]]
        name = "other half"
        devices = [{ file = "/d/c.img", size = "1GiB" }]
        share = "fair"
        diskgroup = {}
    "#;

    fn text(is_root: bool) -> String {
        let experiment = Experiment::parse("test.toml", EXPERIMENT, &[]).expect("it is right");
        let layouts: Vec<usize> = (0..experiment.layouts.len()).collect();
        let made = specs_of(&experiment.layouts, &layouts).expect("a directory");
        let tools = [
            "blkid", "losetup", "lvm", "mount", "mkfs.xfs", "wipefs", "blockdev",
        ];
        let facts = Facts {
            is_root,
            tools: tools
                .map(str::to_owned)
                .into_iter()
                .collect::<BTreeSet<_>>(),
            device_mapper: DeviceMapper::Loaded,
            mounts_under: "/run/spindle".into(),
            ..Facts::default()
        };
        describe(&experiment, &made, &facts).text
    }

    #[test]
    fn the_plan_is_told_step_by_step() {
        insta::assert_snapshot!(text(true));
    }

    #[test]
    fn what_needs_root_says_so() {
        insta::assert_snapshot!(text(false));
    }

    #[test]
    fn a_server_is_not_said_to_delay_itself() {
        let of = |engine: &str| {
            let text = format!(
                "[database]\nengine = \"{engine}\"\nsize = \"64MiB\"\nbuffer_cache = \"4MiB\"\n\
                 [[layout]]\nname = \"here\"\ndelay = {{ read_us = 500 }}\n\
                 [[layout]]\nname = \"made\"\ndevices = [{{ file = \"/d/a.img\", size = \"1GiB\" }}]\nfilesystem = \"xfs\"\n\
                 delay = {{ read_us = 500 }}\n"
            );
            let experiment = Experiment::parse("test.toml", &text, &[]).expect("it is right");
            let made = specs_of(&experiment.layouts, &[0, 1]).expect("a directory");
            let tools = [
                "blkid", "losetup", "mount", "mkfs.xfs", "wipefs", "blockdev",
            ];
            let facts = Facts {
                is_root: true,
                tools: tools.map(str::to_owned).into_iter().collect(),
                mounts_under: "/run/spindle".into(),
                ..Facts::default()
            };
            describe(&experiment, &made, &facts)
        };
        let (kernel, sqlite) = (of("kernel"), of("sqlite"));
        assert!(kernel.can_run && kernel.text.contains("delayed in the database"));
        let refusals = sqlite
            .text
            .matches("cannot be used: sqlite does not delay its own I/O");
        assert_eq!(
            (refusals.count(), sqlite.can_run),
            (2, false),
            "{}",
            sqlite.text
        );
    }
}
