//! What a soak found, in words: a few lines on the terminal, and `docs/soak.md`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::process::Command;

use crate::simulated::reached::Reached;
use crate::simulated::{Method, Scenario};
use crate::state::State;
use crate::work::{Done, Item};

const DOCUMENT: &str = "docs/soak.md";
/// Where the part begins that `scripts/soak-layouts` writes.
const LAYOUTS: &str = "\n## Layouts and disk groups\n";

/// Sums over all items.
struct Sums {
    recoveries: u64,
    drawn: usize,
    wall_s: f64,
    virtual_s: f64,
    ios: f64,
    reached: Reached,
}

impl Sums {
    fn of(state: &State) -> Sums {
        let mut sums = Sums {
            recoveries: state.recoveries(),
            drawn: 0,
            wall_s: 0.0,
            virtual_s: 0.0,
            ios: 0.0,
            reached: Reached::default(),
        };
        for done in state.done.values() {
            sums.drawn += usize::from(matches!(done.item, Item::Drawn(_)));
            sums.wall_s += done.wall_ms as f64 / 1e3;
            sums.virtual_s += done.work.virtual_ns as f64 / 1e9;
            sums.ios += done.work.ios as f64;
            sums.reached.add(&done.reached);
        }
        sums
    }
}

/// The terminal's lines.
pub fn summary(state: &State) -> String {
    let sums = Sums::of(state);
    let missing = match sums.reached.missing() {
        missing if missing.is_empty() => "every probe reached".to_string(),
        missing => format!("not reached: {}", missing.join(", ")),
    };
    format!(
        "{} recoveries of {} items, nothing lost; {} seeds run twice, each one history; {missing}\n\
         on one thread {:.1} virtual seconds and {:.0} I/Os a second",
        sums.recoveries,
        state.done.len(),
        sums.drawn,
        sums.virtual_s / sums.wall_s,
        sums.ios / sums.wall_s
    )
}

/// Writes the document.
pub fn write(state: &State) -> Result<(), String> {
    if state.done.is_empty() {
        return Err(format!("nothing to write into {DOCUMENT}: no item is done"));
    }
    let missing = Sums::of(state).reached.missing();
    let mut text = document(state).map_err(|error| error.to_string())?;
    let before = std::fs::read_to_string(DOCUMENT).unwrap_or_default();
    text += before.find(LAYOUTS).map_or("", |at| &before[at..]);
    std::fs::write(DOCUMENT, text).map_err(|error| format!("{DOCUMENT}: {error}"))?;
    println!("written: {DOCUMENT}");
    match missing {
        missing if missing.is_empty() => Ok(()),
        missing => Err(format!("not reached: {}", missing.join(", "))),
    }
}

fn document(state: &State) -> Result<String, std::fmt::Error> {
    let sums = Sums::of(state);
    let mut text = String::new();
    writeln!(text, "# The last soak\n")?;
    writeln!(
        text,
        "Written by `make soak` (`make soak ARGS=--record` while it is unfinished). Each recovery is a simulated power cut \
         at some I/O, the start of the database on what the disks then held, a comparison of every row with what had been \
         acknowledged, and a clean shutdown.\n"
    )?;
    let mut recoveries = thousands(sums.recoveries);
    if sums.recoveries < crate::POINTS {
        recoveries += &format!(
            " (unfinished: a whole soak has {})",
            thousands(crate::POINTS)
        );
    }
    let rows = [
        ("recoveries", recoveries),
        ("lost", "nothing".to_string()),
        ("code (git tree of `crates/`)", format!("`{}`", state.code)),
        ("date", today()),
        (
            "seeds run twice, each one history",
            thousands(sums.drawn as u64),
        ),
        (
            "I/Os crashed at in the scenario of much redo",
            fast_redo(state),
        ),
        (
            "speed, one thread",
            format!(
                "{:.1} virtual seconds and {} I/Os per wall second",
                sums.virtual_s / sums.wall_s,
                thousands((sums.ios / sums.wall_s) as u64)
            ),
        ),
        (
            "wall time, all threads added",
            format!("{:.1} hours", sums.wall_s / 3600.0),
        ),
    ];
    writeln!(text, "| | |\n| --- | --- |")?;
    for (what, value) in rows {
        writeln!(text, "| {what} | {value} |")?;
    }
    writeln!(text, "\n## Recoveries by what was drawn\n")?;
    writeln!(text, "| | |\n| --- | --- |")?;
    for (name, of) in AXES {
        writeln!(text, "| {name} | {} |", shares(state, *of))?;
    }
    writeln!(text, "\n## Rare paths and rare behaviour\n")?;
    writeln!(text, "| probe or switch | times |\n| --- | --- |")?;
    for (name, count) in Reached::names().iter().zip(sums.reached.counts()) {
        writeln!(text, "| {name} | {} |", thousands(*count))?;
    }
    Ok(text)
}

/// A word for a drawn value, and a number to order the words by.
type Axis = fn(&Scenario) -> (u64, String);

/// What scenarios are told apart by.
const AXES: &[(&str, Axis)] = &[
    ("block size, KiB", |it| plain(it.block_bytes as u64 >> 10)),
    ("writers", |it| plain(it.writers as u64)),
    ("access path", |it| match it.method {
        Method::Sync => (0, "sync".to_string()),
        Method::Slaves(slaves) => (slaves as u64, format!("{slaves} slaves")),
        Method::Async => (9, "async".to_string()),
    }),
    ("buffer cache, blocks", |it| plain(it.cache_blocks)),
    ("`write_sync`", |it| {
        (0, format!("{:?}", it.write_sync).to_lowercase())
    }),
    ("torn blocks", |it| {
        (0, format!("{:?}", it.torn_blocks).to_lowercase())
    }),
    ("sessions", |it| plain(it.sessions as u64)),
    ("datafiles", |it| plain(it.datafiles as u64)),
    ("log buffer, KiB", |it| {
        plain(it.log_buffer_bytes as u64 >> 10)
    }),
    ("checkpoint interval, ms", |it| {
        let interval_ns = it.checkpoint_interval_ns;
        (interval_ns, (interval_ns as f64 / 1e6).to_string())
    }),
    ("rows put into indexes by a transaction", |it| {
        plain(it.words as u64)
    }),
    ("switches on", |it| plain(it.switches.list().len() as u64)),
];

fn plain(value: u64) -> (u64, String) {
    (value, value.to_string())
}

/// Recoveries of drawn scenarios by the value of an axis.
fn shares(state: &State, of: Axis) -> String {
    let mut by_value: BTreeMap<(u64, String), u64> = BTreeMap::new();
    for done in state.done.values() {
        *by_value.entry(of(&done.item.scenario())).or_default() += done.recoveries;
    }
    let share =
        |((_, word), count): (&(u64, String), &u64)| format!("{word}: {}", thousands(*count));
    by_value.iter().map(share).collect::<Vec<_>>().join("; ")
}

fn fast_redo(state: &State) -> String {
    let windows = |done: &&Done| matches!(done.item, Item::FastRedo(_));
    let mut windows = state.done.values().filter(windows).peekable();
    let Some(first) = windows.peek() else {
        return "none yet".to_string();
    };
    let all = first.trace.ios;
    let recoveries: u64 = windows.map(|done| done.recoveries).sum();
    // Five kinds of damage at each.
    format!("{} of {}", thousands(recoveries / 5), thousands(all))
}

fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn today() -> String {
    let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output();
    let date = date.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_string());
    date.unwrap_or_else(|_| "unknown".to_string())
}
