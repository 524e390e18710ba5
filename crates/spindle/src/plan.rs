//! `spindle plan`: what an experiment would make, write and take, before anything is touched. `run` looks at the same
//! first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::Path;

use spindle_io::real::facts::FsFacts;
use spindle_layout::plan::{DelayedBy, LayoutPlan};
use spindle_layout::{Facts, LayoutSpec, ProvisionPlan, why_no_file};
use spindle_system::SystemTree;

use spindle_experiment::specs_of;
use spindle_experiment::{DatabaseSpec, Experiment, FactorMatrix, Layout, Repeats, deal, listed};
use spindle_report::sentences::counted;
use spindle_result::is_answer;
use spindle_run::description;
use spindle_run::reckoning::{
    Destinations, MachineMemory, ProcessNeeds, Reckoning, ReckoningInput, file_system_of, try_out,
};
use spindle_run::refusals::Refusals;
use spindle_run::schedule;
use spindle_run::schemas::{ServerPutBack, refusal_of, way_of};
use spindle_system::machine::DataPath;
use spindle_text::plain::sentence;
use spindle_text::quantity::{duration_text, size};

/// A look at what an experiment would do.
pub struct ExperimentLook {
    /// For people.
    pub text: String,
    /// What it would take.
    pub reckoning: Reckoning,
    /// Whether the layouts that can be used here, by what was looked at, would answer what is asked.
    pub can_be_answered: bool,
}

/// What is known of the machine.
struct Known<'a> {
    facts: &'a Facts,
    memory: Option<MachineMemory>,
    try_out: &'a dyn Fn(ProcessNeeds) -> [std::io::Result<()>; 2],
    file_system: &'a dyn Fn(&Path) -> Option<FsFacts>,
    /// Why the existing server of a layout cannot be measured.
    refused_by_server: &'a dyn Fn(usize) -> Option<String>,
    /// Layouts whose method or settings the engine refuses, as it is installed here, and why.
    refused_by_engine: &'a BTreeMap<usize, String>,
    /// Where the run's directory is to be.
    results: &'a Path,
}

/// Looks at devices, tools and rights, and reckons what a run takes whose directory is made in `results`; changes
/// nothing.
///
/// # Errors
/// There is no current directory for relative paths.
pub fn look(experiment: &Experiment, results: &Path) -> std::io::Result<ExperimentLook> {
    look_at(experiment, results, &|_| None)
}

/// The same, and asks existing servers whether they let themselves be measured, as a run does when it has begun.
///
/// # Errors
/// See [`look`].
pub fn look_at_servers_too(
    experiment: &Experiment,
    results: &Path,
) -> std::io::Result<ExperimentLook> {
    look_at(experiment, results, &|layout| {
        refusal_of(experiment, layout)
    })
}

fn look_at(
    experiment: &Experiment,
    results: &Path,
    refused_by_server: &dyn Fn(usize) -> Option<String>,
) -> std::io::Result<ExperimentLook> {
    let layouts: Vec<usize> = (0..experiment.layouts.len()).collect();
    let made = specs_of(&experiment.layouts, &layouts)?;
    let facts = Facts::gather(&named(experiment, &made), &SystemTree::default());
    let known = Known {
        facts: &facts,
        memory: MachineMemory::look(),
        try_out: &try_out,
        file_system: &file_system_of,
        refused_by_server,
        refused_by_engine: &Refusals::of(experiment).reasons(),
        results,
    };
    Ok(describe(experiment, &made, &known))
}

/// What is left out of a matrix, and why: a line for each reason.
pub fn left_out(experiment: &Experiment) -> Vec<String> {
    let reasons = experiment
        .matrix
        .iter()
        .flat_map(FactorMatrix::left_out_by_reason);
    reasons
        .map(|(reason, layouts)| format!("left out: {}: {reason}", listed(&layouts)))
        .collect()
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

/// Whether the layouts that can be used would answer what is asked.
fn can_be_answered(experiment: &Experiment, can_be_used: &dyn Fn(usize) -> bool) -> bool {
    let of = |is_usable: bool| -> Vec<spindle_result::Layout> {
        let candidates = experiment.candidates();
        let those = candidates.filter(|layout| can_be_used(*layout) == is_usable);
        those
            .map(|layout| description::describe(experiment, layout))
            .collect()
    };
    let (usable, others) = (of(true), of(false));
    let [usable, others] = [&usable, &others].map(|of| of.iter().collect::<Vec<_>>());
    is_answer(&usable, &others)
}

/// What is told of what is `made`, with what is known of the machine.
fn describe(
    experiment: &Experiment,
    made: &[(LayoutSpec, Vec<usize>)],
    known: &Known<'_>,
) -> ExperimentLook {
    let specs = named(experiment, made);
    let plan = ProvisionPlan::of(&specs, known.facts, &experiment.name);
    let mut text = match &experiment.matrix {
        Some(matrix) => format!("{matrix}\n"),
        None => String::new(),
    };
    let is_remote = matches!(experiment.spec(), DatabaseSpec::Remote(_));
    let way = is_remote.then(|| way_of(experiment));
    let mut unusable = describe_those_there(experiment, way.as_ref(), known, &mut text);
    if !specs.is_empty() {
        let _ = writeln!(text, "{plan}");
    }
    for (layout, (_, standing)) in plan.layouts.iter().zip(made) {
        if !layout.obstacles.is_empty() || is_undelayed(experiment, layout) {
            unusable.extend(standing);
        }
    }
    unusable.extend(known.refused_by_engine.keys());
    let can_be_used = |layout: usize| {
        let placement = &experiment.layouts[layout].placement;
        let is_named = |name: &str| {
            unusable
                .iter()
                .any(|of| experiment.layouts[*of].name == name)
        };
        !unusable.contains(&layout) && !placement.layouts().any(is_named)
    };
    let reckoning = Reckoning::of(ReckoningInput {
        destinations: Destinations {
            experiment,
            specs: made,
            plan: &plan,
        },
        can_be_used: &can_be_used,
        file_system: known.file_system,
        memory: known.memory,
        try_out: known.try_out,
        results: known.results,
    });
    if reckoning.cases > 0 {
        let _ = writeln!(text, "{}", loaded(experiment, &reckoning, way.as_ref()));
    }
    let restore = || experiment.plan.restore.to_string();
    let by = way.map_or_else(restore, |way| way.to_string());
    let _ = writeln!(text, "{}", trials(experiment, &reckoning, &by));
    if reckoning.cases > 0 {
        let _ = write!(text, "{reckoning}");
    }
    if let Some(price) = experiment.plan.restore.price() {
        let _ = writeln!(text, "Warning: {price}.");
    }
    for (name, why) in made_and_refused(experiment, &plan, known) {
        let _ = writeln!(text, "{name} cannot be used: {}", sentence(&why));
    }
    ExperimentLook {
        text,
        reckoning,
        can_be_answered: can_be_answered(experiment, &can_be_used),
    }
}

/// Whether a layout that Spindle makes is to be delayed, and nothing can do so.
fn is_undelayed(experiment: &Experiment, layout: &LayoutPlan) -> bool {
    let is_left_to_it = matches!(layout.delayed_by, Some(DelayedBy::Database { .. }));
    is_left_to_it && !delays_itself(experiment)
}

/// Layouts that Spindle could make, and the database refuses: their names, and why.
fn made_and_refused<'a>(
    experiment: &'a Experiment,
    plan: &'a ProvisionPlan,
    known: &'a Known<'_>,
) -> impl Iterator<Item = (&'a str, String)> {
    let undelayed = plan
        .layouts
        .iter()
        .filter(|layout| is_undelayed(experiment, layout));
    let undelayed = undelayed.map(|layout| (layout.name.as_str(), not_delayed(experiment)));
    let refused = known
        .refused_by_engine
        .iter()
        .map(|(layout, why)| (&experiment.layouts[*layout], why));
    let made = refused.filter(|(layout, _)| layout.made.is_some());
    undelayed.chain(made.map(|(layout, why)| (layout.name.as_str(), why.clone())))
}

/// Tells of layouts that Spindle does not make. Returns those that cannot be used.
fn describe_those_there(
    experiment: &Experiment,
    way: Option<&ServerPutBack>,
    known: &Known<'_>,
    text: &mut String,
) -> BTreeSet<usize> {
    let mut unusable = BTreeSet::new();
    for (index, layout) in experiment.layouts.iter().enumerate() {
        let Some(address) = layout.address() else {
            continue;
        };
        if let Some(reason) = (known.refused_by_server)(index) {
            let name = &layout.name;
            let _ = writeln!(text, "{name}: the existing server at {address}");
            let _ = writeln!(text, "  cannot be used: {reason}");
            unusable.insert(index);
        } else {
            let _ = writeln!(
                text,
                "{}: the existing server at {address}: {} made there, and dropped after the run",
                layout.name,
                match way {
                    Some(ServerPutBack::Copy(_)) => "two databases of Spindle's own are",
                    Some(ServerPutBack::Reload { .. }) | None => "a schema of Spindle's own is",
                }
            );
        }
    }
    let is_server = !delays_itself(experiment);
    let is_there = |layout: &Layout| layout.made.is_none() && layout.address().is_none();
    let layouts = experiment.layouts.iter().enumerate();
    for (index, layout) in layouts.filter(|(_, layout)| is_there(layout)) {
        let path = layout.path.display();
        let _ = writeln!(text, "{}: existing directory {path}", layout.name);
        let is_undelayed = layout.delay.is_some() && is_server;
        if layout.delay.is_some() && !is_server {
            let _ = writeln!(text, "  delayed in the database, its own I/O only");
        }
        let undelayed = is_undelayed.then(|| not_delayed(experiment));
        let unfit = || why_no_file(&layout.path).or_else(|| cannot_be_put_back(experiment, layout));
        let refused = || known.refused_by_engine.get(&index).cloned();
        if let Some(reason) = undelayed.or_else(unfit).or_else(refused) {
            let _ = writeln!(text, "  cannot be used: {reason}");
            unusable.insert(index);
        }
    }
    unusable
}

/// Whether the database can delay its own I/O.
fn delays_itself(experiment: &Experiment) -> bool {
    matches!(experiment.spec(), DatabaseSpec::Kernel(_))
}

fn not_delayed(experiment: &Experiment) -> String {
    let engine = experiment.database.engine();
    format!("{engine} does not delay its own I/O, and nothing beneath it can")
}

/// Why an existing directory cannot be put back as the experiment asks, by its type; a run tries it.
fn cannot_be_put_back(experiment: &Experiment, layout: &Layout) -> Option<String> {
    let by = experiment.plan.restore;
    let place = DataPath::capture(&SystemTree::default(), &layout.path);
    let reason = by.refusal_on(&place.file_system?.kind)?;
    Some(format!("not to be restored by {by}: {reason}"))
}

/// What is loaded, here or into existing servers.
fn loaded(experiment: &Experiment, reckoning: &Reckoning, way: Option<&ServerPutBack>) -> String {
    let databases = reckoning.databases.as_ref();
    let loaded = databases.map_or_else(|| loaded_there(experiment, way), ToString::to_string);
    match experiment.plan.runs {
        runs if runs > 1 && !experiment.plan.repeats_runs() => {
            format!("{loaded} Each of {runs} runs does so again.")
        }
        _ => loaded,
    }
}

/// What is loaded into existing servers.
fn loaded_there(experiment: &Experiment, way: Option<&ServerPutBack>) -> String {
    let size = size(experiment.database.size_bytes);
    match way {
        Some(ServerPutBack::Copy(_)) => format!(
            "Then the database is loaded once on each server, about {size}, and copied there before each trial: room for both \
             is needed."
        ),
        Some(ServerPutBack::Reload { why: Some(why) }) => format!(
            "Then the database is loaded into each schema before each trial, about {size}. It is not copied within the server: \
             {}",
            sentence(why)
        ),
        Some(ServerPutBack::Reload { why: None }) | None => {
            format!("Then the database is loaded into each schema before each trial: about {size}.")
        }
    }
}

/// On which machines clients run, if not all on this one: how many of each load level.
fn load_machines(experiment: &Experiment) -> String {
    let machines = &experiment.load;
    let levels = experiment.workload.clients.iter();
    let dealt: Vec<(u32, Vec<u32>)> = levels
        .map(|&clients| (clients, deal(clients, machines)))
        .collect();
    let mut text = String::new();
    for (place, machine) in machines.iter().enumerate() {
        let shares = dealt.iter();
        let shares: Vec<String> = shares
            .map(|(clients, dealt)| format!("{} of {clients}", dealt[place]))
            .collect();
        let _ = writeln!(
            text,
            "Load machine {}: {} clients",
            machine.way,
            shares.join(", ")
        );
    }
    text
}

/// `restore`: how databases are put back.
fn trials(experiment: &Experiment, reckoning: &Reckoning, restore: &str) -> String {
    if reckoning.cases == 0 {
        return "No layout can be measured here, so there are no trials.".to_owned();
    }
    let first_look = match experiment.is_quick {
        true => "A first look (--quick): few short rounds, in place of the plan of the file. ",
        false => "",
    };
    format!(
        "{}{first_look}{}{}",
        load_machines(experiment),
        trials_planned(experiment, reckoning, restore),
        rates_planned(experiment)
    )
}

/// Where the plan has several rates: which, and what has to be measured before.
fn rates_planned(experiment: &Experiment) -> String {
    let workload = &experiment.workload;
    let Some(levels) = &workload.levels else {
        return String::new();
    };
    let rates: Vec<String> = levels.rates.iter().map(|rate| rate.to_string()).collect();
    let rates = rates.join(", ");
    match workload.has_rates_of_slowest() {
        false => format!(" Each layout has a case for each rate of arrivals: {rates}."),
        true => format!(
            " Each layout has a case without a rate and one for each of {rates}. First come {} of the cases without: the \
             others are then given these parts of what the slowest layout did.",
            counted(
                schedule::rounds_of_maxima(&experiment.plan).count(),
                "round"
            )
        ),
    }
}

fn trials_planned(experiment: &Experiment, reckoning: &Reckoning, restore: &str) -> String {
    let plan = &experiment.plan;
    let cases = counted(reckoning.cases, "case");
    let rounds_max = plan.all_rounds();
    let (least, most) = reckoning.trials;
    let rounds = match plan.runs {
        1 => counted(rounds_max as usize, "round"),
        runs => format!("{runs} runs of {}", counted(plan.rounds as usize, "round")),
    };
    if experiment.workload.transactions.ask_queries() {
        return format!(
            "Then up to {} ({cases}, {rounds}), each as long as its queries take, and a restore before each (by {restore}).",
            counted(most as usize, "trial"),
        );
    }
    let Some(auto) = plan.auto else {
        return format!(
            "Then {} ({cases}, {rounds}), and a restore before each (by {restore}).",
            counted(most as usize, "trial"),
        );
    };
    let rounds_min = plan.fewest_rounds();
    let precision = auto.precision_percent;
    if plan.repeats_runs() {
        let rounds = match auto.repeats {
            Repeats::RunsAndRounds => {
                "the number of rounds that narrows the intervals most for its time".to_owned()
            }
            _ => counted(plan.rounds as usize, "round"),
        };
        let in_time = auto.time_ms.map_or_else(String::new, |time_ms| {
            format!(", as far as {} allow", duration_text(time_ms))
        });
        return format!(
            "Then {} to {} runs of {cases}, each on files made again{in_time}. A run has {rounds}, and a restore before each \
             trial (by {restore}). Runs end when every pair of cases is decided, or its ratio known to within {precision} %.",
            plan.fewest_runs(),
            plan.runs,
        );
    }
    if let Some(time_ms) = auto.time_ms {
        let time = duration_text(time_ms);
        return format!(
            "Then as many rounds of {cases} as {time} allow, three at least, {rounds_max} at most, and a restore before each \
             trial (by {restore}). They end earlier when every pair of cases is decided, or its ratio known to within {precision} %."
        );
    }
    format!(
        "Then {least} to {most} trials ({cases}, {rounds_min} to {rounds_max} rounds), and a restore before each (by \
         {restore}). A pair of cases is measured until it is decided, or its ratio known to within {precision} %: a difference of {} % or \
         more is then found in 95 of 100 cases.",
        2.0 * precision
    )
}

#[cfg(test)]
mod tests {
    use spindle_harness::foreign_words;
    use spindle_system::DeviceMapper;
    use spindle_text::paragraph::fitted;
    use spindle_text::vocabulary::Vocabulary;

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
        looked(&experiment, &made, &facts).text
    }

    /// On a machine whose sizes are known.
    fn looked(
        experiment: &Experiment,
        made: &[(LayoutSpec, Vec<usize>)],
        facts: &Facts,
    ) -> ExperimentLook {
        let file_system = |path: &Path| {
            let of = path.starts_with("/d");
            Some(FsFacts {
                type_name: "ext4".to_owned(),
                magic: 0xEF53,
                device_major: 8,
                device_minor: u32::from(of),
                free_bytes: 50 << 30,
                block_bytes: 4096,
                mount_point: if of { "/d".into() } else { "/".into() },
                source: "/dev/sda".to_owned(),
                options: String::new(),
            })
        };
        let known = Known {
            facts,
            try_out: &|_| [Ok(()), Ok(())],
            memory: Some(MachineMemory {
                all_bytes: 16 << 30,
                available_bytes: 12 << 30,
            }),
            file_system: &file_system,
            refused_by_server: &|_| None,
            refused_by_engine: &BTreeMap::new(),
            results: Path::new("."),
        };
        describe(experiment, made, &known)
    }

    #[test]
    fn the_plan_is_told_step_by_step() {
        insta::assert_snapshot!(text(true));
    }

    #[test]
    fn runs_that_are_repeated_are_told_with_their_rounds() {
        let told = |plan: &str| {
            let text = format!("[plan]\nruns = \"auto\"\n{plan}\n[[layout]]\nname = \"here\"\n");
            let experiment = Experiment::parse("test.toml", &text, &[]).expect("it is right");
            looked(&experiment, &[], &Facts::default()).text
        };
        let fixed = told("rounds = 2\ntime = \"20m\"");
        let expected = "Then 6 to 20 runs of 1 case, each on files made again, as far as 20m allow. A run has 2 rounds,";
        assert!(fixed.contains(expected), "{fixed}");
        let chosen = told("rounds = \"auto\"\nmax_runs = 8");
        assert!(chosen.contains("Then 6 to 8 runs"), "{chosen}");
        assert!(
            chosen.contains("A run has the number of rounds that narrows"),
            "{chosen}"
        );
        assert!(chosen.contains("12 to 240 trials"), "{chosen}");
    }

    #[test]
    fn what_needs_root_says_so() {
        insta::assert_snapshot!(text(false));
    }

    #[test]
    fn the_plan_of_a_server_is_in_its_own_words() {
        for engine in ["postgres", "mariadb", "sqlite"] {
            let text = format!(
                "[database]\nengine = \"{engine}\"\nsize = \"64MiB\"\nbuffer_cache = \"4MiB\"\n\
                 [[layout]]\nname = \"here\"\n[[layout]]\nname = \"there\"\npath = \"/tmp\"\n"
            );
            let experiment = Experiment::parse("test.toml", &text, &[]).expect("it is right");
            let made = specs_of(&experiment.layouts, &[0, 1]).expect("a directory");
            let look = looked(&experiment, &made, &Facts::default());
            let found = foreign_words(engine, &look.text);
            assert!(found.is_empty(), "{engine}: {found:?}: {}", look.text);
            let words = Vocabulary::of(engine);
            // SQLite's lies in its own directory, and grows.
            let is_reckoned = engine == "sqlite" || look.text.contains(words.log);
            assert!(is_reckoned, "{engine}: {}", look.text);
            assert!(look.text.contains(words.cache), "{engine}: {}", look.text);
        }
    }

    #[test]
    fn a_plan_fits_the_terminal() {
        for columns in [80, 120] {
            let told = fitted(&text(true), columns);
            let is_wide = |line: &&str| line.chars().count() > columns;
            let wide: Vec<&str> = told.lines().filter(is_wide).collect();
            assert!(wide.is_empty(), "at {columns}: {wide:#?}\n{told}");
            insta::assert_snapshot!(format!("plan_of_{columns}_columns"), told);
        }
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
            looked(&experiment, &made, &facts)
        };
        let (kernel, sqlite) = (of("kernel"), of("sqlite"));
        assert!(kernel.can_be_answered && kernel.text.contains("delayed in the database"));
        let refusals = sqlite
            .text
            .matches("cannot be used: sqlite does not delay its own I/O");
        assert_eq!(
            (refusals.count(), sqlite.can_be_answered),
            (2, false),
            "{}",
            sqlite.text
        );
    }
}
