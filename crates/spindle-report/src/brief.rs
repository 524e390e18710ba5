//! A result in a dozen lines: what was tested, a line for each candidate, one sentence why, the answer last. Of many
//! candidates the best, the worst and those that the answer names. For who asked on the command line; everything else
//! is in the report.

use std::fmt::Write as _;

use spindle_result::{
    CaseStatus, EACH_SETTING, RankedCase, Ranking, RatioEstimate, RunResult, format_interval,
    next_steps,
};
use spindle_text::paragraph;
use spindle_text::quantity::{size, thousands};

use super::comparison::{common_rounds, keeps, milliseconds, ratio, weakness_of_all};
use super::sentences::{self, data, engines, kind_of_device, load_name, rounds};
use super::table::{BOLD, Style, YELLOW, paint};

/// What stands before the gravest warning.
const MIND: &str = "Mind: ";
/// Sentences are no wider, whatever the terminal; the table may use more.
const WIDTH: usize = 80;
/// The table is no wider than this.
const TABLE_WIDTH: usize = 120;
/// Candidates have this much room for their names at least, and at most in [`WIDTH`].
const NAME_WIDTHS: (usize, usize) = (12, 26);
/// More candidates than this are told by the best and the worst of them.
const ALL_MAX: usize = 7;
/// This many of the best then, and of the worst.
const BEST_AND_WORST: (usize, usize) = (3, 2);
/// Cases that were not measured are named up to this many.
const MISSING_MAX: usize = 3;

/// The text, with a line feed at its end; `report` is where the rest is.
pub fn render(result: &RunResult, report: &str, style: Style) -> String {
    let numbers = Numbers::of(result);
    let mut text = wrapped(&tested(result), "");
    places(result)
        .iter()
        .for_each(|place| text += &wrapped(place, ""));
    text.push('\n');
    for ranking in &result.rankings {
        if result.rankings.len() > 1 {
            let _ = writeln!(text, "At {}:", ranking.load);
        }
        text += &candidates(result, ranking, &numbers, style);
    }
    text += &missing(result);
    text.push('\n');
    let noise = result.noise.iter();
    if let Some(noise) = noise.max_by(|a, b| a.floor.total_cmp(&b.floor)) {
        text += &wrapped(&numbers.instead(&sentences::noise(noise)), "");
    }
    // Where candidates keep unlike promises, the answer says so.
    if let Some(weakness) = weakness_of_all(result) {
        text += &wrapped(&weakness, "");
    }
    if let Some(why) = result.attributions.first() {
        text += &wrapped(&format!("Why: {}", numbers.instead(&why.sentence)), "");
    }
    // What the answer opens with is not said twice.
    let is_said = |text: &str| {
        let mut sentences = text.split_inclusive(". ");
        sentences
            .next()
            .is_some_and(|first| result.headline.contains(first.trim_end()))
    };
    let mut warnings = result.warnings.iter();
    if let Some(gravest) = warnings.find(|warning| !is_said(&warning.text)) {
        let more = match result.warnings.len() - 1 {
            0 => String::new(),
            more => format!(" ({more} more in the report)"),
        };
        let note = numbers.instead(&gravest.text);
        let note = wrapped(&format!("{MIND}{note}{more}"), "");
        text += &paint(MIND.trim_end(), YELLOW, style);
        text += &note[MIND.trim_end().len()..];
    }
    if let Some(step) = next_steps(result).first() {
        text += &wrapped(&format!("Next: {}", numbers.instead(step)), "");
    }
    text += &format!("Report: {report}\n");
    for line in answer(result, &numbers).lines() {
        let _ = writeln!(text, "{}", paint(line, BOLD, style));
    }
    text
}

/// The headline; what each setting does has its own line.
fn answer(result: &RunResult, numbers: &Numbers<'_>) -> String {
    let (before, settings) = match &result.headline_without_settings {
        Some(without) => (without.as_str(), result.factor_answers.as_slice()),
        None => (result.headline.as_str(), &[][..]),
    };
    let mut text = wrapped(&numbers.instead(before), "");
    if !settings.is_empty() {
        let _ = writeln!(text, "{EACH_SETTING}");
    }
    let is_large = result
        .rankings
        .iter()
        .any(|ranking| ranking.places.len() > ALL_MAX);
    for setting in settings {
        text += &match is_large {
            true => wrapped(&setting.sentence, "  "),
            false => wrapped(&setting.told(), "  "),
        };
    }
    text
}

/// What could not be measured, and why.
fn missing(result: &RunResult) -> String {
    let missing: Vec<_> = result
        .cases
        .iter()
        .filter(|case| case.outcome != CaseStatus::Measured)
        .collect();
    let mut text = String::new();
    for case in missing.iter().take(MISSING_MAX) {
        let reason = case.outcome.reason().unwrap_or_default();
        let told = format!("{}: {}: {reason}", case.id.layout, case.outcome.status());
        text += &wrapped(&told, "  ");
    }
    if missing.len() > MISSING_MAX {
        let more = missing.len() - MISSING_MAX;
        let _ = writeln!(text, "  {more} more not measured: the report says why");
    }
    text
}

/// Engines, data, workload, rounds.
fn tested(result: &RunResult) -> String {
    let load = result
        .cases
        .first()
        .map(|case| load_name(result, case.id.load));
    let parts = [
        Some(engines(result).join(" and ")),
        Some(data(result)),
        load,
        rounds(result),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

/// A line for each place of data: directory, file system, device.
fn places(result: &RunResult) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let machine = result.machine.iter();
    for place in machine.flat_map(|machine| &machine.data_paths) {
        let mut line = place.path.clone();
        if let Some(file_system) = &place.file_system {
            let _ = write!(line, ": {}", file_system.kind);
        }
        if let Some(device) = &place.device {
            let _ = write!(line, " on {}", device.name);
            let model = device.model.as_deref().map(str::trim);
            let model = model.filter(|model| !model.is_empty());
            let facts = [
                model.map(str::to_owned),
                device.size_bytes.map(size),
                device.rotational.map(kind_of_device),
            ];
            let facts: Vec<String> = facts.into_iter().flatten().collect();
            if !facts.is_empty() {
                let _ = write!(line, " ({})", facts.join(", "));
            }
        }
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Ranks that sentences have in place of long names, where candidates are many. None where there are few, or several
/// load levels.
struct Numbers<'a> {
    /// The longest first: a name may begin as another does.
    names: Vec<(&'a str, String)>,
}

impl<'a> Numbers<'a> {
    fn of(result: &'a RunResult) -> Numbers<'a> {
        let mut names = Vec::new();
        if let [ranking] = result.rankings.as_slice()
            && ranking.places.len() > ALL_MAX
            && ranking
                .places
                .iter()
                .any(|place| length(place) > NAME_WIDTHS.1)
        {
            let places = ranking.places.iter().enumerate();
            // A short name might be a word of the sentence.
            let long = places.filter(|(_, place)| length(place) >= NAME_WIDTHS.0);
            names.extend(
                long.map(|(index, place)| (place.layout.as_str(), format!("#{}", index + 1))),
            );
        }
        names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
        Numbers { names }
    }

    /// A name as the table has it.
    fn title(&self, place: &RankedCase) -> String {
        let mut names = self.names.iter();
        match names.find(|(name, _)| *name == place.layout) {
            Some((name, number)) => format!("{number} {name}"),
            None => place.layout.clone(),
        }
    }

    /// A sentence with ranks in place of names.
    fn instead(&self, sentence: &str) -> String {
        let names = self.names.iter();
        names.fold(sentence.to_owned(), |text, (name, number)| {
            text.replace(&format!("\"{name}\""), number)
                .replace(name, number)
        })
    }
}

fn length(place: &RankedCase) -> usize {
    place.layout.chars().count()
}

/// Room for names where a line is as wide as `style` says.
fn width_max(style: Style) -> usize {
    usize::from(style.width).clamp(WIDTH, TABLE_WIDTH) - WIDTH + NAME_WIDTHS.1
}

/// Which candidates have a line, by their ranks from 0: the best, the worst, and those that the answer names.
fn shown(result: &RunResult, ranking: &Ranking) -> Vec<usize> {
    let all = ranking.places.len();
    let (best, worst) = match all > ALL_MAX {
        true => BEST_AND_WORST,
        false => (all, 0),
    };
    let mut of_promise = ranking.places.iter();
    let slowest = of_promise.rposition(|place| place.keeps == ranking.keeps);
    let is_tied =
        |place: &RankedCase| ranking.winner.is_none() && ranking.tied.contains(&place.layout);
    // A short name might be a word of the sentence.
    let is_named = |place: &RankedCase| {
        length(place) >= NAME_WIDTHS.0 && result.headline.contains(&place.layout)
    };
    let is_shown = |(index, place): &(usize, &RankedCase)| {
        let is_at_end = *index < best || *index >= all - worst;
        is_at_end || Some(*index) == slowest || is_tied(place) || is_named(place)
    };
    let places = ranking.places.iter().enumerate();
    places.filter(is_shown).map(|(index, _)| index).collect()
}

/// A line for each candidate, the best first; of many, the best and the worst.
fn candidates(
    result: &RunResult,
    ranking: &Ranking,
    numbers: &Numbers<'_>,
    style: Style,
) -> String {
    let shown = shown(result, ranking);
    let titles = shown
        .iter()
        .map(|index| numbers.title(&ranking.places[*index]));
    let lengths = titles.map(|title| title.chars().count());
    let most = lengths.filter(|length| *length <= width_max(style)).max();
    let width = most.unwrap_or(0).max(NAME_WIDTHS.0);
    let mut text = format!(
        "  {:width$} {:>10} {:>8}  {:22} {}\n",
        "", "tpm", "p99 ms", "of the best", "keeps"
    );
    let mut next = 0;
    for index in &shown {
        if *index > next {
            let more = index - next;
            let _ = writeln!(text, "  ... {more} more: --wide, or the report");
        }
        text += &row(result, ranking, &ranking.places[*index], (width, numbers));
        next = index + 1;
    }
    for index in &shown {
        let place = &ranking.places[*index];
        let case = result.case(&ranking.case_at(place));
        if let Some(common) = case.and_then(|case| common_rounds(result, case)) {
            let name = numbers.instead(&place.layout);
            text += &wrapped(&format!("{name}: {common}"), "  ");
        }
    }
    text + &new_orders(result, ranking, (&shown, numbers))
}

/// What TPC-C is compared by elsewhere, for each candidate of the table; nothing for other workloads.
fn new_orders(
    result: &RunResult,
    ranking: &Ranking,
    (shown, numbers): (&[usize], &Numbers<'_>),
) -> String {
    let of_candidates: Vec<String> = shown
        .iter()
        .filter_map(|index| {
            let place = &ranking.places[*index];
            let case = result.case(&ranking.case_at(place))?;
            Some(format!("{}: {}", place.layout, thousands(case.nopm?.mean)))
        })
        .collect();
    match of_candidates.is_empty() {
        true => String::new(),
        false => {
            let all = numbers.instead(&of_candidates.join("; "));
            wrapped(&format!("New orders per minute (NOPM): {all}"), "  ")
        }
    }
}

/// The line of a candidate. A name with no room there stands above it.
fn row(
    result: &RunResult,
    ranking: &Ranking,
    place: &RankedCase,
    (width, numbers): (usize, &Numbers<'_>),
) -> String {
    let case = result.case(&ranking.case_at(place));
    let Some((case, summary)) = case.and_then(|case| Some((case, case.summary()?))) else {
        return String::new();
    };
    let of_best = place.of_best.map_or_else(|| "best".to_owned(), share);
    let name = numbers.title(place);
    let (above, name) = match name.chars().count() > width {
        true => (wrapped(&name, "  "), String::new()),
        false => (String::new(), name),
    };
    format!(
        "{above}  {name:width$} {:>10} {:>8}  {of_best:22} {}\n",
        thousands(summary.tpm),
        milliseconds(summary.p99_ms),
        keeps(case)
    )
}

/// `0.56 x (0.53-0.59)`.
fn share(of_best: RatioEstimate) -> String {
    let interval = of_best.ci95.map_or_else(String::new, |interval| {
        format!(" ({})", format_interval(interval))
    });
    format!("{} x{interval}", ratio(of_best.ratio))
}

/// A paragraph in lines of [`WIDTH`], broken between words, each line behind `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let lines = paragraph::wrapped(text, WIDTH - indent.len());
    lines
        .into_iter()
        .map(|line| format!("{indent}{line}\n"))
        .collect()
}
