//! `report.html`: one page for people, answer first. All of it is shown without scripts; the script adds what a pointer
//! asks for: values under it, other rounds, other windows of the moving average, drawings and figures as files.
//!
//! [`calibration`] is the page of what storage can do by itself.
//!
//! Each section is a file: [`answer`] (ranking, comparison; in [`pairs`] every pair), [`why`], [`charts`], [`method`],
//! [`machine`]. [`parts`] has what sections share, [`document`] the frame of the page.

mod answer;
mod calibration;
mod charts;
mod document;
mod effects;
mod machine;
mod method;
mod pairs;
mod parts;
mod times;
mod why;

pub use calibration::html as calibration_html;
pub(super) use method::trials_in_order;
pub(super) use why::events_of;

use maud::{Markup, html};

use self::document::document;
use super::sentences::{NEXT, context};
use spindle_result::{RunResult, SampledTrial, next_steps};

/// Characters of a headline that stand in large letters and leave room for the ranking.
const SHORT_HEADLINE: usize = 200;

/// The whole page. `series` holds the throughput over time of the trials that were sampled.
pub fn html(result: &RunResult, series: &[SampledTrial]) -> String {
    let name = result.experiment.name();
    let header = html! {
        p.experiment { "Spindle · " (name) br; (context(result)) }
        h1.long[result.headline.chars().count() > SHORT_HEADLINE] { (result.headline) }
        (weakness(result))
        (next(result))
        (contents(result))
    };
    let main = html! {
        (answer::section(result))
        (effects::section(result))
        (why::section(result))
        (charts::section(result, series))
        (method::section(result))
    };
    document(&format!("{name}: {}", result.headline), &header, &main)
}

/// Links to what the page has.
fn contents(result: &RunResult) -> Markup {
    let sections = [
        ("ranking", "Ranking", true),
        ("comparison", "Comparison", true),
        ("effects", "Effects", !result.factor_answers.is_empty()),
        ("why", "Why", true),
        ("charts", "Charts", !result.rankings.is_empty()),
        ("method", "How it was measured", true),
        ("layouts", "Layouts", true),
        ("machine", "Machine", true),
        ("repeat", "To repeat it", true),
    ];
    html! {
        nav.contents aria-label="Contents" { ul {
            @for (id, title, _) in sections.iter().filter(|(_, _, is_there)| *is_there) {
                li { a href={ "#" (id) } { (title) } }
            }
        } }
    }
}

/// The gravest of what weakens the answer, beside the answer; all of it stands with the method.
fn weakness(result: &RunResult) -> Markup {
    html! {
        @if let Some(gravest) = result.warnings.first() {
            p.weakness {
                strong { "What weakens this answer: " }
                (why::with_names(&gravest.text)) " "
                @if result.warnings.len() > 1 {
                    a href="#warnings" { "All " (result.warnings.len()) " warnings" }
                }
            }
        }
    }
}

/// What to do where the answer is open or weak.
fn next(result: &RunResult) -> Markup {
    let steps = next_steps(result);
    html! {
        @if !steps.is_empty() {
            div.next {
                strong { (NEXT) }
                ul { @for step in &steps { li { (why::with_names(step)) } } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use spindle_result::{RunRecord, Trial, build, impossible_trial, sample};

    use super::html;
    use crate::markdown;
    use crate::table::{self, Style};

    /// A trial of which as much is known as can be.
    fn trial() -> Value {
        let mut trial = serde_json::to_value(sample::trial(2, 600.0)).unwrap();
        let latency = trial["latency_us"].clone();
        trial["response_time"] = json!({
            "mean_us": 900.0,
            "parts": [{ "part": "user CPU", "us": 600.0 }, { "part": "log file sync", "us": 300.0 }],
            "excess_us": 0.0,
        });
        trial["audit"]["clients"] = json!({
            "clients": 8, "in_transactions": 7.9, "thinking": 0.0, "idle": 0.1, "away": 0.0, "open_at_end": 8,
            "longest_open_s": 0.5, "got_a_turn": 8, "fewest": 9, "most": 11,
        });
        trial["audit"]["client_processors"] = json!({ "running": 0.5, "waiting": 0.1 });
        trial["memory"] =
            json!({ "buffer_cache_bytes": 1, "instance_bytes": 1, "session_bytes": 1 });
        trial["kinds"] =
            json!([{ "kind": "new_order", "transactions": 20, "latency_us": latency }]);
        trial["statements"] = json!([{ "statement": "commit", "count": 9, "mean_us": 3.0 }]);
        trial["waits"] =
            json!([{ "event": "log file sync", "count": 9, "total_us": 27.0, "mean_us": 3.0 }]);
        trial["cache"] = json!({ "wanted": 9, "missed": 1, "filled_at_end": 0.5 });
        trial["warm_up"] = json!({ "duration_s": 3.0, "is_settled": true });
        trial["io"] = json!({
            "reads": 1.0, "writes": 1.0, "read_bytes": 9.0, "written_bytes": 9.0, "device_read_bytes": 9.0,
            "device_written_bytes": 9.0, "write_amplification": 1.0,
        });
        trial
    }

    /// Where the numbers of a value stand, as JSON pointers.
    fn numbers(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::Number(_) => found.push(at.to_owned()),
            Value::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    numbers(value, &format!("{at}/{index}"), found);
                }
            }
            Value::Object(fields) => {
                for (key, value) in fields {
                    numbers(value, &format!("{at}/{key}"), found);
                }
            }
            _ => {}
        }
    }

    fn told(record: &RunRecord) -> String {
        let result = build(record).unwrap();
        let table = table::render(&result, Style::default());
        [html(&result, &[]), markdown(&result, &[]), table].concat()
    }

    fn is_absurd(text: &str) -> bool {
        let mut words = text.split(|byte: char| !byte.is_alphanumeric());
        words.any(|word| {
            let is_long = word.len() > 20 && word.bytes().all(|byte| byte.is_ascii_digit());
            is_long || word == "inf" || word == "NaN"
        })
    }

    #[test]
    fn an_open_answer_says_what_to_do_next_everywhere() {
        let record =
            sample::record(&[("a", &[100.0, 112.0, 106.0]), ("b", &[101.0, 103.0, 102.0])]);
        let result = build(&record).unwrap();
        let brief = crate::brief::render(&result, "report.html", Style::default());
        let shown = crate::show::render_result(&result, &record, Style::default());
        for text in [told(&record), brief, shown] {
            assert!(text.contains("plan.rounds = "), "{text}");
        }
        let settled = sample::record(&[("a", &[100.0; 3]), ("b", &[50.0; 3])]);
        assert!(!told(&settled).contains("plan.rounds = "));
    }

    #[test]
    fn a_number_that_no_trial_has_is_refused_or_harmless() {
        let good = trial();
        let mut record = sample::record(&[("a", &[600.0; 3]), ("b", &[500.0; 3])]);
        let mut places = Vec::new();
        numbers(&good, "", &mut places);
        assert!(places.len() > 70, "{places:?}");
        let mut refused = 0;
        for (place, number) in places
            .iter()
            .flat_map(|at| [1e300, -1e308, 1e16, 0.0_f64].map(|n| (at, n)))
        {
            let mut changed = good.clone();
            *changed.pointer_mut(place).unwrap() = json!(number);
            // What counts is no fraction: that alone is an error of its line.
            let Ok(trial) = serde_json::from_value::<Trial>(changed) else {
                continue;
            };
            if impossible_trial(&trial).is_some() {
                refused += 1;
                continue;
            }
            record.cases[0].trials[1] = trial;
            let told = told(&record);
            assert!(!is_absurd(&told), "{place} is {number}: {told}");
        }
        assert!(refused > 60, "{refused}");
    }
}
