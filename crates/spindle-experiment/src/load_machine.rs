//! A `[[load]]` section: a machine on which some of the clients run. Without any, all of them run on this one.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use spindle_engines::sql::address::{Reach, is_this_machine};
use spindle_engines::sql::ssh_host::HERE;
use spindle_engines::sql::{MachineAccess, SshHost};
use spindle_text::section::Section;
use spindle_text::settings;
use spindle_workload::TrialPace;

use super::doubts::anywhere;
use super::layout::Layout;
use super::plan::Plan;
use super::reader::Reader;
use super::workload::WorkloadChoice;

/// More machines than this are a slip of whatever wrote the file.
const MACHINES_MAX: usize = 100;
const ALLOWED: &str =
    "\"ssh://user@host:port\", user and port may be left out; or \"local\", for this machine";

settings! {
    /// What is said of a load machine.
    pub(crate) struct LoadSettings {
        /// The machine.
        host: Option<String> = text("host", "none: required", ALLOWED),
        /// Its share of the clients beside those of the others; each machine runs one client at least.
        weight: u32 = number("weight", 1, 1..=1000),
        /// The private key to log in with, where `ssh` would not find it by itself; a relative path starts where
        /// `spindle` is started.
        identity_file: Option<String> = text("identity_file", "none", "the file of a private key"),
    }
}

/// A machine on which clients run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadMachine {
    /// The way to it.
    pub way: MachineAccess,
    /// Its share of the clients, beside those of the others: 1 to 1000.
    pub weight: u32,
}

impl LoadMachine {
    /// Reads one; `None` where its host is not known.
    pub(super) fn read(reader: &mut Reader<'_>) -> Option<LoadMachine> {
        let LoadSettings {
            host,
            weight,
            identity_file,
        } = Section::read(reader);
        reader.finish();
        let allowed = || format!("allowed: {ALLOWED}");
        let Some(host) = host else {
            let title = "a load machine has no host";
            reader.refuse(&["host"], title, "host is missing", allowed());
            return None;
        };
        if host == HERE {
            if reader.has("identity_file") {
                reader.refuse(
                    &["identity_file"],
                    "identity_file does not apply to this machine",
                    "there is no login",
                    "leave it out",
                );
            }
            let way = MachineAccess::Here;
            return Some(LoadMachine { way, weight });
        }
        let refused = |reason: String| {
            reader.refuse_meaning("host", "host cannot be used", reason, allowed());
        };
        let host = SshHost::parse(&host).map_err(|error| refused(error.to_string()));
        let way = MachineAccess::Ssh {
            host: host.ok()?,
            identity_file: identity_file.map(PathBuf::from),
        };
        Some(LoadMachine { way, weight })
    }
}

/// How many of these clients run on each machine: in proportion to the weights, and at least one on each. What rounding
/// leaves over goes to the largest remainders (the method of largest remainders).
pub fn deal(clients: u32, machines: &[LoadMachine]) -> Vec<u32> {
    let weights: u64 = machines.iter().map(|it| u64::from(it.weight)).sum();
    let quota = |machine: &LoadMachine| u64::from(clients) * u64::from(machine.weight);
    let mut dealt: Vec<u32> = machines
        .iter()
        .map(|machine| (quota(machine) / weights.max(1)).max(1) as u32)
        .collect();
    let owed = |at: usize, dealt: &[u32]| {
        quota(&machines[at]) as i128 - i128::from(dealt[at]) * i128::from(weights)
    };
    while dealt.iter().sum::<u32>() < clients {
        let most = (0..machines.len()).max_by_key(|&at| (owed(at, &dealt), usize::MAX - at));
        let Some(most) = most else {
            break;
        };
        dealt[most] += 1;
    }
    // Those with one at least may have taken it from others.
    while dealt.iter().sum::<u32>() > clients {
        let with_some = (0..machines.len()).filter(|&at| dealt[at] > 1);
        let Some(least) = with_some.min_by_key(|&at| (owed(at, &dealt), at)) else {
            break;
        };
        dealt[least] -= 1;
    }
    dealt
}

/// What a load over several machines is checked against.
pub(super) type Beside<'a> = (&'a WorkloadChoice, &'a Plan, &'a [Layout]);

/// Reads the machines, and refuses what they cannot have.
pub(super) fn read(
    root: &Reader<'_>,
    mut readers: Vec<Reader<'_>>,
    beside: Beside<'_>,
) -> Vec<LoadMachine> {
    if readers.len() > MACHINES_MAX {
        let title = format!("there are {} load machines", readers.len());
        let help = "give each more of the clients";
        root.refuse(&["load"], title, "allowed: up to 100", help);
    }
    let mut machines: Vec<LoadMachine> = Vec::new();
    for reader in &mut readers {
        let Some(machine) = LoadMachine::read(reader) else {
            continue;
        };
        // Whatever key opens it.
        let name = machine.way.to_string();
        if machines.iter().any(|other| other.way.to_string() == name) {
            reader.refuse(
                &["host"],
                format!("the load machine {name} is named twice"),
                "each is one machine",
                "set its weight higher, and leave the other out",
            );
            continue;
        }
        machines.push(machine);
    }
    if !readers.is_empty() {
        for of in unfit(&machines, readers.len(), beside) {
            let refused = root.conflict(&["load"], of.title, of.label, of.help);
            root.note(refused.given(of.given));
        }
    }
    machines
}

/// Why a load cannot be spread.
struct Unfit {
    title: String,
    label: String,
    help: &'static str,
    /// Keys that say so.
    given: Vec<String>,
}

/// Why these machines, out of `named` in all, cannot have the load.
fn unfit(
    machines: &[LoadMachine],
    named: usize,
    (workload, plan, layouts): Beside<'_>,
) -> Vec<Unfit> {
    let mut all = Vec::new();
    let mut unfit = |title: String, label: &str, help, given: &str| {
        all.push(Unfit {
            title,
            label: label.to_owned(),
            help,
            given: vec![given.to_owned()],
        });
    };
    if let Some(own) = layouts.iter().find(|layout| layout.address().is_none()) {
        unfit(
            format!("load machines do not apply to layout {:?}", own.name),
            "its database is on this machine, and no other machine can reach it",
            "give every layout the url of a server that runs already, or leave [[load]] out",
            &anywhere("url"),
        );
    }
    let kind = workload.kind();
    if workload.transactions.settings().pace() != TrialPace::Timed {
        unfit(
            format!("kind = \"{kind}\" cannot be spread over load machines"),
            "its clients share what there is to do",
            "choose a workload that goes on as long as it is measured, or leave [[load]] out",
            "workload.kind",
        );
    }
    if workload.promised.is_some() {
        unfit(
            "rate = \"auto\" cannot be searched from several load machines".to_owned(),
            "the search sets one rate after the other on one machine",
            "set rates, as rate = [\"500/s\", \"1000/s\"], or leave [[load]] out",
            "workload.rate",
        );
    }
    if plan.interleave_ms.is_some() {
        unfit(
            "plan.interleave does not work with [[load]]".to_owned(),
            "paused clients would have to stop on every machine",
            "leave interleave or [[load]] out",
            "plan.interleave",
        );
    }
    let least = workload.clients.iter().copied().min().unwrap_or(1);
    if (least as usize) < named {
        unfit(
            format!("{named} load machines are too many for clients = {least}"),
            "each runs one client at least",
            "set workload.clients higher, or name fewer machines",
            "workload.clients",
        );
    }
    let unreached = machines
        .iter()
        .find_map(|machine| unreached(machine, layouts));
    all.into_iter().chain(unreached).collect()
}

/// A server that is named as this machine names it, and another machine would not find.
fn unreached(machine: &LoadMachine, layouts: &[Layout]) -> Option<Unfit> {
    let MachineAccess::Ssh { host, .. } = &machine.way else {
        return None;
    };
    layouts.iter().find_map(|layout| {
        let label = match &layout.address()?.reach {
            Reach::Socket(_) => "it is a socket of this machine",
            Reach::Host { host: of, .. } if is_this_machine(of) && !is_this_machine(&host.host) => {
                "it means this machine here, and the load machine there"
            }
            Reach::Host { .. } => return None,
        };
        Some(Unfit {
            title: format!(
                "the load machine {} cannot reach the url of layout {:?}",
                machine.way, layout.name
            ),
            label: label.to_owned(),
            help: "name the server by a host and a port that every load machine reaches",
            given: vec![anywhere("url")],
        })
    })
}

#[cfg(test)]
mod tests {
    use super::super::Experiment;
    use super::*;

    fn machines(weights: &[u32]) -> Vec<LoadMachine> {
        let machine = |weight: &u32| LoadMachine {
            way: MachineAccess::Here,
            weight: *weight,
        };
        weights.iter().map(machine).collect()
    }

    #[test]
    fn clients_are_dealt_by_weight_and_every_machine_has_one() {
        for (clients, weights, expected) in [
            (8, &[1, 1][..], &[4, 4][..]),
            (7, &[1, 1], &[4, 3]),
            (10, &[3, 1], &[8, 2]),
            (3, &[1000, 1, 1], &[1, 1, 1]),
            (100, &[1000, 1, 1], &[98, 1, 1]),
            (5, &[1], &[5]),
            (5, &[], &[]),
        ] {
            assert_eq!(deal(clients, &machines(weights)), expected, "{weights:?}");
        }
        for clients in 3..200 {
            let dealt = deal(clients, &machines(&[7, 2, 5]));
            assert_eq!(dealt.iter().sum::<u32>(), clients);
            assert!(dealt.iter().all(|share| *share > 0));
        }
    }

    /// An experiment on an existing server with these load machines; `more` comes first.
    fn text(more: &str, url: &str, load: &str) -> String {
        format!(
            "{more}\n[database]\nengine = \"postgres\"\n[[layout]]\nname = \"there\"\ndatabase = {{ url = \"{url}\" }}\n{load}"
        )
    }

    const URL: &str = "postgres://a:b@db/d";
    const TWO: &str = "[[load]]\nhost = \"ssh://one\"\n[[load]]\nhost = \"ssh://ann@two:2222\"\nweight = 3\nidentity_file = \"/k\"\n";

    #[test]
    fn machines_are_read() {
        let load = format!("{TWO}[[load]]\nhost = \"local\"\n");
        let read = Experiment::parse("x.toml", &text("", URL, &load), &[]).unwrap();
        let shown: Vec<(String, u32)> = read
            .load
            .iter()
            .map(|machine| (machine.way.to_string(), machine.weight))
            .collect();
        let named = |name: &str, weight| (name.to_owned(), weight);
        assert_eq!(
            shown,
            [
                named("ssh://one", 1),
                named("ssh://ann@two:2222", 3),
                named("local", 1)
            ]
        );
        let kept = serde_json::to_string(&read).unwrap();
        let back: Experiment = serde_json::from_str(&kept).unwrap();
        assert_eq!(back.load, read.load);
        let none = Experiment::parse("x.toml", &text("", URL, ""), &[]).unwrap();
        assert!(none.load.is_empty());
    }

    #[test]
    fn what_a_spread_load_cannot_have_is_refused() {
        let kernel = format!("[[layout]]\nname = \"here\"\n{TWO}");
        let local = "postgres://a:b@127.0.0.1/d";
        let socket = "postgres://a:b@localhost/d?host=/run/postgresql";
        for (text, said) in [
            (kernel, "load machines do not apply to layout \"here\""),
            (
                text("[workload]\nkind = \"tpch\"", URL, TWO),
                "kind = \"tpch\" cannot be spread",
            ),
            (
                text("[workload]\nrate = \"auto\"\np99 = \"20ms\"", URL, TWO),
                "rate = \"auto\" cannot be searched from several",
            ),
            (
                text("[workload]\nclients = [8, 1]", URL, TWO),
                "2 load machines are too many for clients = 1",
            ),
            (
                text("[plan]\ninterleave = \"200ms\"", URL, TWO),
                "interleave",
            ),
            (text("", local, TWO), "ssh://one cannot reach the url"),
            (text("", socket, TWO), "ssh://one cannot reach the url"),
            (text("", URL, "[[load]]\n"), "a load machine has no host"),
            (
                text("", URL, "[[load]]\nhost = \"far\"\n"),
                "host cannot be used",
            ),
            (
                text(
                    "",
                    URL,
                    "[[load]]\nhost = \"local\"\nidentity_file = \"k\"\n",
                ),
                "identity_file does not apply",
            ),
            (
                text(
                    "",
                    URL,
                    "[[load]]\nhost = \"ssh://a\"\n[[load]]\nhost = \"ssh://a\"\nidentity_file = \"k\"\n",
                ),
                "ssh://a is named twice",
            ),
            (
                text("", URL, "[[load]]\nhost = \"ssh://a\"\nclients = 3\n"),
                "clients",
            ),
        ] {
            let error = Experiment::parse("x.toml", &text, &[]).expect_err(said);
            assert!(error.to_string().contains(said), "{error}: not {said}");
        }
        let near = "[[load]]\nhost = \"ssh://127.0.0.1:2222\"\n";
        assert!(Experiment::parse("x.toml", &text("", local, near), &[]).is_ok());
        let here = "[[load]]\nhost = \"local\"\n";
        assert!(Experiment::parse("x.toml", &text("", socket, here), &[]).is_ok());
    }
}
