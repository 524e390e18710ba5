//! What the benches found: the table that people read, and the file of the same content.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde_json::{Value, json};

/// What must hold.
#[derive(Clone, Copy)]
pub enum Goal {
    /// The ratio, or the figure itself where there is no peer, is at least this.
    AtLeast(f64),
    /// It is at most this.
    AtMost(f64),
}

/// One line of the table.
pub struct Figure {
    /// What was measured, and its unit.
    pub what: String,
    /// Ours, median; `None` when it could not be measured.
    pub ours: Option<f64>,
    /// What the peer is.
    pub peer_name: String,
    /// The peer's figure, median.
    pub peer: Option<f64>,
    /// Median of the pairs' ratios; smallest and largest of them.
    pub ratio: Option<(f64, f64, f64)>,
    /// What must hold; `None` for a figure that only explains others.
    pub goal: Option<Goal>,
}

impl Figure {
    /// Pairs of ours and the peer's, measured in turn.
    pub fn of_pairs(
        what: String,
        peer_name: &str,
        pairs: &[(f64, f64)],
        goal: impl Into<Option<Goal>>,
    ) -> Figure {
        let ratios: Vec<f64> = pairs.iter().map(|(ours, peer)| ours / peer).collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        Figure {
            what,
            ours: median(pairs.iter().map(|(ours, _)| *ours)),
            peer_name: peer_name.to_owned(),
            peer: median(pairs.iter().map(|(_, peer)| *peer)),
            ratio: median(ratios.into_iter()).map(|ratio| (ratio, least, most)),
            goal: goal.into(),
        }
    }

    /// A figure without a peer.
    pub fn alone(what: String, values: impl Iterator<Item = f64>, goal: Option<Goal>) -> Figure {
        Figure {
            what,
            ours: median(values),
            peer_name: String::new(),
            peer: None,
            ratio: None,
            goal,
        }
    }

    fn is_met(&self) -> Option<bool> {
        let value = self.ratio.map(|(ratio, _, _)| ratio).or(self.ours);
        Some(match (self.goal?, value) {
            (_, None) => false,
            (Goal::AtLeast(goal), Some(value)) => value >= goal,
            (Goal::AtMost(goal), Some(value)) => value <= goal,
        })
    }

    fn verdict(&self) -> &'static str {
        match (self.ours.is_some(), self.is_met()) {
            (_, None) => "",
            (false, _) => "not measured",
            (_, Some(true)) => "met",
            (_, Some(false)) => "NOT MET",
        }
    }
}

/// The middle value; the mean of the two in the middle.
pub fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let count = values.len();
    (count > 0).then(|| (values[(count - 1) / 2] + values[count / 2]) / 2.0)
}

/// All of them.
#[derive(Default)]
pub struct Figures(Vec<Figure>);

impl Figures {
    pub fn add(&mut self, figure: Figure) {
        eprintln!("  {}: {}", figure.what, figure.verdict());
        self.0.push(figure);
    }

    pub fn all_met(&self) -> bool {
        self.0.iter().all(|figure| figure.is_met() != Some(false))
    }

    pub fn table(&self) -> String {
        let mut text = format!(
            "\n{:<46} {:>10}  {:<24} {:>10}  {:<18} {:<8} {}\n",
            "figure", "ours", "peer", "peer's", "ratio (pairs)", "goal", ""
        );
        for figure in &self.0 {
            let ratio = figure
                .ratio
                .map_or_else(String::new, |(ratio, least, most)| {
                    format!("{ratio:.2} ({least:.2}-{most:.2})")
                });
            let goal = match figure.goal {
                Some(Goal::AtLeast(goal)) => format!(">= {goal}"),
                Some(Goal::AtMost(goal)) => format!("<= {goal}"),
                None => String::new(),
            };
            let line = format!(
                "{:<46} {:>10}  {:<24} {:>10}  {ratio:<18} {goal:<8} {}",
                figure.what,
                number(figure.ours),
                figure.peer_name,
                number(figure.peer),
                figure.verdict()
            );
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }

    /// Writes `speed-MACHINE-TIME.json` and says where it is.
    pub fn save(&self, directory: &Path) -> PathBuf {
        let system = |file: &str| {
            let text = std::fs::read_to_string(Path::new("/proc/sys/kernel").join(file));
            text.unwrap_or_default().trim().to_owned()
        };
        let since_1970 = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        let machine = system("hostname");
        let figures: Vec<Value> = self.0.iter().map(Figure::to_json).collect();
        let document = json!({
            "machine": machine,
            "kernel": system("osrelease"),
            "processors": std::thread::available_parallelism().map_or(0, usize::from),
            "at_s": since_1970.as_secs(),
            "figures": figures,
        });
        std::fs::create_dir_all(directory).expect("target/bench can be made");
        let directory = directory.canonicalize().expect("it was just made");
        let path = directory.join(format!("speed-{machine}-{}.json", since_1970.as_secs()));
        std::fs::write(&path, format!("{document:#}\n")).expect("the results can be written");
        path
    }
}

impl Figure {
    fn to_json(&self) -> Value {
        let (kind, goal) = match self.goal {
            Some(Goal::AtLeast(goal)) => (json!("at_least"), json!(goal)),
            Some(Goal::AtMost(goal)) => (json!("at_most"), json!(goal)),
            None => (Value::Null, Value::Null),
        };
        json!({
            "figure": self.what,
            "ours": self.ours,
            "peer": self.peer_name,
            "peers": self.peer,
            "ratio": self.ratio.map(|(ratio, _, _)| ratio),
            "ratio_of_pairs": self.ratio.map(|(_, least, most)| [least, most]),
            "goal": goal,
            "goal_is": kind,
            "met": self.is_met(),
        })
    }
}

/// A figure in about four digits.
fn number(value: Option<f64>) -> String {
    match value {
        None => "-".to_owned(),
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.2}"),
    }
}
