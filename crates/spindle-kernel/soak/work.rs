//! What the soak does: items, each some hundred crashes of one scenario.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::Instant;

use spindle_io::sim::PowerCut;
use spindle_kernel::PlantedFault;

use crate::simulated::crashes::{
    self, Crash, CrashPoint, Loss, Sweep, counted_points, crash_at, crash_recovery, points_of,
};
use crate::simulated::drawn::Trace;
use crate::simulated::reached::{Reached, Work};
use crate::simulated::{Images, Scenario, loaded};

/// I/Os of an item of the fixed scenario.
const WINDOW_IOS: u64 = 200;
/// I/Os of a drawn scenario that are crashed at.
const CRASHED_IOS: u64 = 160;
/// Torn blocks are looked for at every n-th of the I/Os crashed at.
const LOOK_EVERY: usize = 8;
/// Points of a drawn scenario whose recoveries are crashed.
const RECOVERIES_CRASHED: usize = 4;

/// A bug that the soak shall find, to prove that it can.
pub static PLANTED: OnceLock<PlantedFault> = OnceLock::new();

/// A piece of the soak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// One window in this many of the scenario of much redo: every I/O of it.
    FastRedo(u64),
    /// The scenario drawn from a seed.
    Drawn(u64),
}

impl fmt::Display for Item {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::FastRedo(window) => write!(formatter, "fast-redo:{window}"),
            Item::Drawn(seed) => write!(formatter, "{seed}"),
        }
    }
}

impl FromStr for Item {
    type Err = String;
    fn from_str(text: &str) -> Result<Item, String> {
        let wrong = |_| format!("`{text}` is no seed: a number, or fast-redo");
        match text.strip_prefix("fast-redo") {
            Some("") => Ok(Item::FastRedo(0)),
            Some(window) => {
                let number = window.trim_start_matches(':').parse().map_err(wrong)?;
                Ok(Item::FastRedo(number))
            }
            None => Ok(Item::Drawn(text.parse().map_err(wrong)?)),
        }
    }
}

impl Item {
    /// Its scenario.
    pub fn scenario(self) -> Scenario {
        let scenario = match self {
            Item::FastRedo(_) => Scenario::fast_redo(1),
            Item::Drawn(seed) => Scenario::drawn(seed),
        };
        Scenario {
            planted: PLANTED.get().copied(),
            ..scenario
        }
    }

    /// What becomes of the disks at an I/O, one way after the other.
    fn cuts(self, io: u64) -> Vec<PowerCut> {
        let whole = [PowerCut::LoseAll, PowerCut::KeepAll][(io % 2) as usize];
        let damage = (0..4).map(|seed| PowerCut::Damage(io << 8 | seed));
        std::iter::once(whole).chain(damage).collect()
    }
}

/// An item without a loss.
#[derive(Debug, Clone)]
pub struct Done {
    pub item: Item,
    pub recoveries: u64,
    pub trace: Trace,
    pub wall_ms: u64,
    pub work: Work,
    pub reached: Reached,
}

/// The items in their order: windows of the fixed scenario, as many as it has, among drawn ones without end.
pub struct Plan {
    windows: u64,
}

impl Plan {
    /// Every n-th item is of the fixed scenario, while there are any.
    const EVERY: u64 = 4;

    /// The item of a number.
    pub fn item(&self, number: u64) -> Item {
        let (turn, place) = (number / Plan::EVERY, number % Plan::EVERY);
        if place == 0 && turn < self.windows {
            Item::FastRedo(turn)
        } else {
            Item::Drawn(number - (turn + 1).min(self.windows))
        }
    }
}

/// Finds out how long the fixed scenario is.
pub fn plan() -> Plan {
    let scenario = Item::FastRedo(0).scenario();
    let (_, trace) = points_of(scenario, &loaded(scenario), |_| false)
        .unwrap_or_else(|words| panic!("the scenario of much redo does not run: {words}"));
    Plan {
        windows: trace.ios.div_ceil(WINDOW_IOS),
    }
}

/// Carries an item out.
pub fn carry_out(item: Item) -> Result<Done, Loss> {
    let (began, scenario) = (Instant::now(), item.scenario());
    let (work, reached) = (Work::on_this_thread(), Reached::on_this_thread());
    let before_any = |words| Loss {
        seed: scenario.seed,
        crashes: Vec::new(),
        words,
    };
    let images = crashes::quietly(|| loaded(scenario)).map_err(before_any)?;
    let (points, trace) = points(item, scenario, &images).map_err(before_any)?;
    let mut total = Sweep::default();
    for (index, point) in points.iter().enumerate() {
        let look = index.is_multiple_of(LOOK_EVERY);
        total.add(crash_at(scenario, point, &item.cuts(point.io), look));
        if let Some(loss) = total.loss {
            return Err(loss);
        }
    }
    if let Item::Drawn(_) = item {
        for point in points
            .iter()
            .step_by(points.len().div_ceil(RECOVERIES_CRASHED))
        {
            crash_recovery(scenario, point, 16, &mut total);
            if let Some(loss) = total.loss {
                return Err(loss);
            }
        }
    }
    Ok(Done {
        item,
        recoveries: total.recoveries as u64,
        trace,
        wall_ms: began.elapsed().as_millis() as u64,
        work: Work::on_this_thread().since(work),
        reached: Reached::on_this_thread().since(&reached),
    })
}

fn points(
    item: Item,
    scenario: Scenario,
    images: &Images,
) -> Result<(Vec<CrashPoint>, Trace), String> {
    match item {
        Item::Drawn(_) => counted_points(scenario, images, CRASHED_IOS),
        Item::FastRedo(window) => points_of(scenario, images, move |io| {
            (window * WINDOW_IOS..(window + 1) * WINDOW_IOS).contains(&(io - 1))
        }),
    }
}

/// Does an item again, or one crash of it.
pub fn repeat(item: Item, crashes: &[Crash]) -> Result<(), String> {
    let lost = if crashes.is_empty() {
        carry_out(item).err()
    } else {
        let scenario = item.scenario();
        crashes::repeat(scenario, crashes).err().map(|words| Loss {
            seed: scenario.seed,
            crashes: crashes.to_vec(),
            words,
        })
    };
    lost.map_or(Ok(()), |loss| Err(tell(item, &loss)))
}

/// A loss for people: what, in which scenario, and how to see it again.
pub fn tell(item: Item, loss: &Loss) -> String {
    let scenario = item.scenario();
    format!(
        "LOST: {loss}\n{scenario:?}\nswitches on: {:?}\nTo repeat exactly this:\n  make soak ARGS='{}'",
        scenario.switches.list(),
        arguments(item, &loss.crashes)
    )
}

/// The options that repeat crashes of an item.
fn arguments(item: Item, crashes: &[Crash]) -> String {
    let mut arguments = format!("--seed {item}");
    if let Some(planted) = PLANTED.get() {
        arguments += &format!(" --planted {planted:?}");
    }
    for crash in crashes {
        arguments += &format!(" --crash {crash}");
    }
    arguments
}
