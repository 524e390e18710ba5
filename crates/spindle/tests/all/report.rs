//! What people see of a finished run: table, headline and Markdown as snapshots, the page and `result.json` by their
//! rules.

mod brief;
pub(crate) mod browser;
pub(crate) mod fixture;
mod matrix;
pub(crate) mod showcase;
pub(crate) mod stored;
mod vocabulary;

use serde_json::Value;
use spindle_report::table::{self, Style};
use spindle_result::{Arrivals, RunRecord, RunResult, build};

fn result() -> RunResult {
    build(&fixture::record()).expect("the fixture is consistent")
}

fn page(record: &RunRecord) -> String {
    spindle_report::html(
        &build(record).expect("the record is consistent"),
        &record.series,
    )
}

fn table_of(width: u16) -> String {
    table::render(
        &result(),
        Style {
            width,
            colour: false,
        },
    )
}

#[test]
fn headline() {
    insta::assert_snapshot!(result().headline);
}

#[test]
fn table_of_120_columns() {
    insta::assert_snapshot!(table_of(120));
}

#[test]
fn table_of_100_columns() {
    insta::assert_snapshot!(table_of(100));
}

#[test]
fn table_of_80_columns() {
    insta::assert_snapshot!(table_of(80));
}

#[test]
fn tables_stay_within_their_width() {
    for width in [80, 100, 120, 160] {
        let table = table_of(width);
        let mut rows = table.lines().filter(|line| line.starts_with(['#', '-']));
        assert!(
            rows.all(|row| row.chars().count() <= width.into()),
            "{table}"
        );
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    let coloured = table::render(
        &result(),
        Style {
            width: 120,
            colour: true,
        },
    );
    assert_ne!(coloured, table_of(120));
    let mut plain = coloured;
    for code in ["0", "1", "31", "32", "33", "36"] {
        plain = plain.replace(&format!("\x1b[{code}m"), "");
    }
    assert_eq!(plain, table_of(120));
}

#[test]
fn markdown() {
    let record = fixture::record();
    insta::assert_snapshot!(spindle_report::markdown(&result(), &record.series));
}

/// The fixture's run at a fixed rate, which every layout kept; the later layouts take longer.
fn at_a_fixed_rate() -> RunResult {
    let mut record = fixture::record();
    for (index, case) in record.cases.iter_mut().enumerate() {
        for trial in &mut case.trials {
            trial.tpm = 30_000.0;
            trial.latency_us.p99 = 1_000.0 * (1.0 + index as f64 + 0.01 * f64::from(trial.round));
            trial.arrivals = Some(Arrivals {
                is_recorded: false,
                rate_per_s: 500.0,
                delay_us: trial.latency_us,
                backlog: 0,
                is_overloaded: false,
            });
        }
    }
    build(&record).expect("the fixture is consistent")
}

#[test]
fn at_a_fixed_rate_people_read_of_times() {
    let result = at_a_fixed_rate();
    let page = spindle_report::html(&result, &[]);
    for told in [
        "&quot;buffered, sync&quot; responds fastest at 500 transactions a second",
        "p99 1.02 ms",
        "1.98 x (",
        "soonest",
        "p99, b / a",
        "above 1 means a faster response",
    ] {
        assert!(page.contains(told), "the page lacks {told:?}");
    }
    for wrong in [
        "throughput relative",
        "30,000 tpm",
        "tpm, a / b",
        "is fastest",
    ] {
        assert!(!page.contains(wrong), "the page says {wrong:?}");
    }
    let text = spindle_report::markdown(&result, &[]);
    assert!(text.contains("| p99, b / a |") && text.contains("above 1 means a faster response"));
    let table = table::render(&result, Style::default());
    assert!(
        table.contains("ratio of p99, theirs over its own"),
        "{table}"
    );
    assert_eq!(schema_errors(&as_json(&result)), Vec::<String>::new());
}

#[test]
fn an_undecided_pair_tells_how_many_rounds_it_takes_wherever_it_is_shown() {
    let mut record = fixture::record();
    for (case, tpm) in record.cases.iter_mut().zip([
        [100.0, 120.0, 109.0],
        [105.0, 101.0, 104.0],
        [10.0, 10.1, 9.9],
    ]) {
        for (trial, tpm) in case.trials.iter_mut().zip(tpm) {
            trial.tpm = tpm;
        }
    }
    record.cases.truncate(3);
    let result = build(&record).expect("the record is consistent");
    let open = &result.verdicts[0];
    let needed = open.rounds_needed.unwrap();
    assert!(needed > 3, "{open:?}");
    for text in [
        table::render(&result, Style::default()),
        spindle_report::html(&result, &[]),
        spindle_report::markdown(&result, &[]),
    ] {
        let told = format!("undecided, a verdict needs about {needed} rounds in all");
        assert!(text.contains(&told), "{told:?} is not in {text}");
    }
    assert_eq!(schema_errors(&as_json(&result)), Vec::<String>::new());
}

// The result format.

fn schema_errors(result: &Value) -> Vec<String> {
    let schema: Value = serde_json::from_str(include_str!("../../../../docs/result.schema.json"))
        .expect("the schema is JSON");
    assert!(
        jsonschema::meta::is_valid(&schema),
        "the schema is itself valid"
    );
    let validator = jsonschema::validator_for(&schema).expect("the schema is usable");
    validator
        .iter_errors(result)
        .map(|error| error.instance_path().to_string())
        .collect()
}

fn as_json(result: &RunResult) -> Value {
    serde_json::from_str(&result.to_json()).expect("a result is JSON")
}

#[test]
fn results_follow_the_documented_schema() {
    assert_eq!(schema_errors(&as_json(&result())), Vec::<String>::new());
    let mut record = fixture::record();
    for case in &mut record.cases {
        case.trials.truncate(1);
        for trial in &mut case.trials {
            trial.audit.device = None;
            trial.audit.read_ratio = None;
            trial.cpu_us_per_transaction = None;
            trial.memory = None;
        }
    }
    record.own_cost = None;
    let single_round = build(&record).expect("one round is enough for a result");
    assert_eq!(schema_errors(&as_json(&single_round)), Vec::<String>::new());
}

#[test]
fn the_schema_rejects_wrong_results() {
    type Fault = fn(&mut Value);
    let faults: [(&str, Fault); 13] = [
        ("", |result| {
            drop(
                result
                    .as_object_mut()
                    .map(|fields| fields.remove("verdicts")),
            )
        }),
        ("", |result| result["mood"] = "good".into()),
        ("/verdicts/0/verdict", |result| {
            result["verdicts"][0]["verdict"] = "won".into()
        }),
        ("/verdicts/0/ci95", |result| {
            result["verdicts"][0]["ci95"] = vec![1.0].into()
        }),
        ("/cases/0/trials/0/tpm", |result| {
            result["cases"][0]["trials"][0]["tpm"] = Value::Null
        }),
        ("/cases/0/trials/0/cpu/user", |result| {
            result["cases"][0]["trials"][0]["cpu"]["user"] = 140.into()
        }),
        ("/cases/0/trials/0/audit/page_cache_share", |result| {
            result["cases"][0]["trials"][0]["audit"]["page_cache_share"] = 1.5.into();
        }),
        ("/cases/0/trials/0/audit/cached_pages_at_end", |result| {
            result["cases"][0]["trials"][0]["audit"]["cached_pages_at_end"] = "none".into();
        }),
        ("/own_cost", |result| {
            result["own_cost"]["transactions"] = "many".into()
        }),
        ("/cases/0/trials/0/memory", |result| {
            result["cases"][0]["trials"][0]["memory"]["session_bytes"] = (-1).into();
        }),
        ("/memory_budget_bytes", |result| {
            result["memory_budget_bytes"] = 0.into()
        }),
        ("/cases/0/trials", |result| {
            result["cases"][0]["trials"] = Value::Array(Vec::new())
        }),
        ("/cases/4", |result| {
            drop(
                result["cases"][fixture::SKIPPED]
                    .as_object_mut()
                    .map(|case| case.remove("reason")),
            );
        }),
    ];
    for (place, plant) in faults {
        let mut wrong = as_json(&result());
        plant(&mut wrong);
        let errors = schema_errors(&wrong);
        assert!(
            errors.iter().any(|error| error == place),
            "fault at {place:?}: {errors:?}"
        );
    }
}

// The page.

/// Elements that HTML never closes (WHATWG HTML, section 13.1.2, "Void elements").
const VOID_ELEMENTS: [&str; 5] = ["meta", "br", "hr", "link", "input"];

/// The page without what stands in its scripts, which are not markup.
fn without_scripts(page: &str) -> String {
    let mut pieces = page.split("<script");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (tag, rest) = piece.split_once('>').expect("the tag of a script ends");
        let (_, after) = rest.split_once("</script>").expect("a script ends");
        text += &format!("<script{tag}></script>{after}");
    }
    text
}

/// What is wrong with the nesting of a page's elements: `None` when each is closed in its turn.
fn nesting_error(page: &str) -> Option<String> {
    let page = without_scripts(page);
    let mut open: Vec<&str> = Vec::new();
    for tag in page.split('<').skip(1) {
        let Some((tag, text)) = tag.split_once('>') else {
            return Some(format!("unfinished tag: {tag}"));
        };
        if text.contains('>') && open.last() != Some(&"style") && !tag.starts_with("style") {
            return Some(format!("unescaped > in {text:?}"));
        }
        if tag.matches('"').count() % 2 == 1 {
            return Some(format!("unfinished attribute: {tag}"));
        }
        let name = tag
            .split([' ', '/'])
            .find(|name| !name.is_empty())
            .unwrap_or("");
        if tag.starts_with('/') {
            if open.pop() != Some(name) {
                return Some(format!("</{name}> closes nothing"));
            }
        } else if !tag.starts_with('!') && !VOID_ELEMENTS.contains(&name) {
            open.push(name);
        }
    }
    open.pop().map(|name| format!("<{name}> stays open"))
}

#[test]
fn the_page_is_well_formed() {
    assert_eq!(nesting_error(&page(&fixture::record())), None);
}

#[test]
fn the_check_of_nesting_sees_faults() {
    let page = page(&fixture::record());
    for (right, wrong) in [
        ("</table>", ""),
        ("</li>", "</lo>"),
        ("&lt;", "<"),
        ("<main>", "<main"),
        ("</html>", ""),
    ] {
        let broken = page.replacen(right, wrong, 1);
        assert_ne!(broken, page, "{right} occurs");
        assert!(nesting_error(&broken).is_some(), "{right} -> {wrong}");
    }
}

/// Names of namespaces look like addresses and are not.
const NAMESPACE: &str = "http://www.w3.org/2000/svg";

#[test]
fn the_page_opens_offline() {
    let page = page(&fixture::record()).replace(NAMESPACE, "");
    for fetched in [
        "http:",
        "https:",
        "url(",
        "@import",
        " src=",
        "<link",
        "<iframe",
        "javascript:",
        "fetch(",
        "XMLHttpRequest",
        "import(",
    ] {
        assert!(!page.contains(fetched), "the page contains {fetched}");
    }
    let links = page.matches(" href=").count();
    assert_eq!(
        page.matches(" href=\"#").count(),
        links,
        "a link leaves the page"
    );
    assert!(
        page.contains("default-src 'none'"),
        "browsers are not held to it"
    );
}

#[test]
fn the_page_tells_the_whole_story() {
    let record = fixture::record();
    let page = page(&record);
    let result = result();
    let escaped = |text: &str| {
        text.replace('&', "&amp;")
            .replace('<', "&lt;")
            .replace('>', "&gt;")
            .replace('"', "&quot;")
    };
    let mut expected = vec![escaped(&result.headline)];
    expected.extend(result.layouts.iter().map(|layout| escaped(&layout.name)));
    expected.extend(result.warnings.iter().map(|warning| escaped(&warning.text)));
    expected.push("io_uring is disabled on this machine".to_owned());
    expected.push("log file parallel write".to_owned());
    expected.push("transparent huge pages madvise".to_owned());
    for text in expected {
        assert!(page.contains(&text), "the page lacks {text:?}");
    }
    // One round is drawn, for a screen and for a phone.
    let layouts = record
        .series
        .iter()
        .filter(|trial| trial.round == 1)
        .count();
    assert_eq!(page.matches("<path class=\"average").count(), 2 * layouts);
    assert_eq!(page.matches("<path class=\"raw").count(), 2 * layouts);
    assert!(
        page.find("<h1>") < page.find("<h2"),
        "the headline stands first"
    );
}

#[test]
fn both_reports_say_whether_memory_was_held() {
    let mut record = fixture::record();
    let texts = |record: &RunRecord| {
        let result = build(record).expect("the record is consistent");
        [
            spindle_report::html(&result, &[]),
            spindle_report::markdown(&result, &[]),
        ]
    };
    for text in texts(&record) {
        assert!(text.contains("Memory had no budget"), "{text}");
    }
    record.memory_budget_bytes = Some(64 << 20);
    for text in texts(&record) {
        assert!(text.contains("held to 64 MiB in every case"), "{text}");
        assert!(!text.contains("not held"), "{text}");
    }
}

#[test]
fn the_instrument_says_what_it_costs_wherever_a_result_is_shown() {
    let mut record = fixture::record();
    let texts = |record: &RunRecord| {
        let result = build(record).expect("the record is consistent");
        let table = table::render(&result, Style::default());
        [
            table,
            spindle_report::html(&result, &[]),
            spindle_report::markdown(&result, &[]),
        ]
    };
    for text in texts(&record) {
        assert!(
            text.contains("own cost: 34 us of CPU a transaction"),
            "{text}"
        );
        assert!(
            text.contains("3,272 KiB for the rest of the instance"),
            "{text}"
        );
    }
    record.own_cost = None;
    for trial in record.cases.iter_mut().flat_map(|case| &mut case.trials) {
        trial.memory = None;
    }
    for text in texts(&record) {
        assert!(
            !text.contains("own cost") && !text.contains("Its memory"),
            "{text}"
        );
    }
}

#[test]
fn both_reports_check_every_trial() {
    let mut record = fixture::record();
    let trial = &mut record.cases[0].trials[0];
    trial.retries = 31_337;
    trial.audit.dirty_buffer_bytes_at_end = Some(27_182 * 1024);
    let result = build(&record).expect("the record is consistent");
    let page = spindle_report::html(&result, &[]);
    for cell in [
        ">transactions tried again</th>",
        ">31,337</td>",
        ">dirty in the database's cache at the end</th>",
        ">26.5 MiB</td>",
    ] {
        assert!(page.contains(cell), "the page lacks {cell}");
    }
    let text = spindle_report::markdown(&result, &[]);
    for cell in [
        "| transactions tried again |",
        "| 31,337 |",
        "| dirty in the database's cache at the end |",
        "| 26.5 MiB |",
    ] {
        assert!(text.contains(cell), "the text lacks {cell}");
    }
}

#[test]
fn names_cannot_become_markup() {
    let mut record = fixture::record();
    record.layouts[0].name = "<script>alert(\"1\")</script>".to_owned();
    record.layouts[0].not_direct = Some("<img src=x>".to_owned());
    let page = page(&record);
    assert_eq!(nesting_error(&page), None);
    assert!(page.contains("&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;"));
    assert!(!page.contains("<script>alert") && !page.contains("<img"));
    let markdown =
        spindle_report::markdown(&build(&record).expect("names are free"), &record.series);
    assert!(markdown.contains("&lt;script&gt;"));
    assert!(!markdown.contains("<script") && !markdown.contains("<img"));
}
