//! The page as people meet it: its size and the time it takes, and, in headless Chromium, its layout on a screen and on
//! a phone, light and dark, with scripts and without.

use std::path::PathBuf;
use std::time::Instant;

use serde_json::Value;
use spindle::reports::write_reports;
use spindle_result::{Arrivals, build};
use spindle_run::directory;

use crate::report::browser::{Browser, View};
use crate::report::showcase::{self, Extent, USUAL};
use crate::report::stored;

const SCREEN: View = View {
    width: 1_280,
    dark: false,
    scripts: true,
};

const PHONE: View = View {
    width: 390,
    dark: true,
    scripts: true,
};

/// A phone of a person who likes light pages.
const LIGHT_PHONE: View = View {
    dark: false,
    ..PHONE
};

fn page() -> String {
    let record = showcase::record(USUAL);
    spindle_report::html(&showcase::result(&record), &record.series)
}

/// The same run with its load at a fixed rate, where two layouts are too close to call.
fn page_at_a_rate() -> String {
    let mut record = showcase::record(USUAL);
    for trial in record.cases.iter_mut().flat_map(|case| &mut case.trials) {
        trial.tpm = 12_000.0;
        trial.arrivals = Some(Arrivals {
            is_recorded: false,
            rate_per_s: 200.0,
            delay_us: trial.latency_us,
            backlog: 0,
            is_overloaded: false,
        });
    }
    spindle_report::html(
        &build(&record).expect("the showcase is consistent"),
        &record.series,
    )
}

fn texts(found: &Value) -> Vec<&str> {
    let found = found.as_array().expect("the probe finds a list").iter();
    found.filter_map(Value::as_str).collect()
}

#[test]
fn nothing_overlaps_or_leaves_the_page_on_a_screen_and_on_a_phone() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(browser) = Browser::find("report_page") else {
        return;
    };
    let (page, page_at_a_rate) = (page(), page_at_a_rate());
    for (page, view) in [
        (&page, SCREEN),
        (&page, PHONE),
        (&page, LIGHT_PHONE),
        (&page_at_a_rate, PHONE),
    ] {
        let probe = "(() => { page.querySelectorAll('details').forEach((details) => { details.open = true; }); \
                     return [page.documentElement.scrollWidth, overlaps(), beyond(), nameless()]; })()";
        let found = browser.probe(page, view, probe);
        assert_eq!(
            found[0], view.width,
            "the page scrolls sideways: {:#?}",
            found[2]
        );
        assert_eq!(texts(&found[1]), Vec::<&str>::new(), "at {}", view.width);
        assert_eq!(texts(&found[2]), Vec::<&str>::new(), "at {}", view.width);
        assert_eq!(texts(&found[3]), Vec::<&str>::new(), "at {}", view.width);
    }
}

#[test]
fn the_checks_of_layout_see_faults() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(browser) = Browser::find("report_page") else {
        return;
    };
    let page = page();
    let faults = [
        ("overlaps()", ".note { margin-top: -3rem; }"),
        ("overlaps()", ".plot text { font-size: 40px !important; }"),
        ("beyond()", ".plot { width: 1500px !important; }"),
        ("faint()", ".note { color: #bbb !important; }"),
        ("faint()", ".plot text { fill: #ccc !important; }"),
    ];
    let sees = |broken: &str, view: View, probe: &str, fault: &str| {
        assert_ne!(broken, page);
        let found = browser.probe(broken, view, probe);
        assert!(!texts(&found).is_empty(), "{probe} does not see {fault}");
    };
    for (probe, fault) in faults {
        let broken = page.replacen("</style>", &format!("{fault}</style>"), 1);
        sees(&broken, SCREEN, probe, fault);
    }
    let unfolded = "(() => { page.querySelectorAll('details').forEach((details) => { details.open = true; }); return nameless(); })()";
    let fault = "tbody th { position: static !important; }";
    let broken = page.replacen("</style>", &format!("{fault}</style>"), 1);
    sees(&broken, PHONE, unfolded, fault);
    // What is left are the names of kinds, each for many rows.
    let one_name_for_many = page.replace("<th scope=\"row\"", "<td");
    sees(&one_name_for_many, PHONE, unfolded, "rows without a name");
}

/// Pixels between the margins of an A4 page: 210 mm less 11 mm on each side, at 96 pixels an inch.
const PAPER: View = View {
    width: 711,
    dark: true,
    scripts: true,
};

/// The page as it is laid out for paper.
fn for_paper(page: &str) -> String {
    page.replacen("@media print", "@media all", 1)
}

/// What is found on the page as it is laid out for paper: its width, what overlaps, faint texts, controls that nobody
/// can use there, folded parts, the colour of the paper, and what leaves it.
fn printed(browser: &Browser, page: &str) -> Value {
    let page = for_paper(page);
    let probe = r#"[page.documentElement.scrollWidth, overlaps(), faint(),
      [...page.querySelectorAll(".tools, .tip")].filter(shown).map(name),
      [...page.querySelectorAll("details .scroll")].filter((part) => !part.closest("figure, .on-screen") && !part.checkVisibility()).map(name),
      paper(page.body),
      [...page.querySelectorAll("table, pre, svg")].filter((part) => part.getBoundingClientRect().right > view.innerWidth + 1).map(name)]"#;
    browser.probe(&page, PAPER, probe)
}

#[test]
fn it_fits_on_paper_and_is_white_there() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(browser) = Browser::find("report_page") else {
        return;
    };
    for page in [page(), page_at_a_rate()] {
        assert!(page.contains("@media print"));
        let found = printed(&browser, &page);
        for wrong in [1, 2, 3, 4, 6] {
            assert_eq!(texts(&found[wrong]), Vec::<&str>::new(), "{wrong}");
        }
        assert_eq!(found[0], PAPER.width, "wider than the paper");
        assert_eq!(found[5], "rgb(255, 255, 255)");
    }
    let large = "table { font-size: 20pt !important; }";
    let folded = "details::details-content { content-visibility: hidden !important; }";
    for (fault, seen_at) in [(large, 6), (folded, 4)] {
        let broken = page().replacen("</style>", &format!("{fault}</style>"), 1);
        let found = printed(&browser, &broken);
        assert!(!texts(&found[seen_at]).is_empty(), "{fault} is not seen");
    }
}

/// Sheets that a run of six cases may take.
const SHEETS_MAX: usize = 11;

#[test]
fn six_cases_take_few_sheets() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(browser) = Browser::find("report_page") else {
        return;
    };
    let record = showcase::record(Extent {
        clients: &[16],
        ..USUAL
    });
    let page = spindle_report::html(&showcase::result(&record), &record.series);
    let sheets = browser.sheets(&page, SCREEN);
    assert!((1..=SHEETS_MAX).contains(&sheets), "{sheets} sheets");
    let unfolded = page.replace(".on-screen", ".nowhere");
    assert!(browser.sheets(&unfolded, SCREEN) > sheets);
}

#[test]
fn texts_can_be_read_in_light_and_in_dark() {
    if !spindle_harness::is_long_or_skip() {
        return;
    }
    let Some(browser) = Browser::find("report_page") else {
        return;
    };
    let page = page();
    for width in [SCREEN.width, PHONE.width] {
        for (dark, paper) in [(false, "rgb(255, 255, 255)"), (true, "rgb(20, 23, 27)")] {
            let view = View {
                width,
                dark,
                scripts: true,
            };
            let found = browser.probe(&page, view, "[faint(), paper(page.body)]");
            assert_eq!(
                texts(&found[0]),
                Vec::<&str>::new(),
                "at {width}, dark: {dark}"
            );
            assert_eq!(found[1], paper);
        }
    }
}

#[test]
fn everything_is_there_without_scripts() {
    let Some(browser) = Browser::find("report_page") else {
        return;
    };
    let view = View {
        scripts: false,
        ..SCREEN
    };
    let probe = "[page.body.innerText, ['#throughput-0', '#scaling-0', '#system-0-0'].map((id) => page.querySelectorAll(`${id} .average`).length), \
                 [...page.querySelectorAll('.tools')].filter(shown).length, overlaps()]";
    let found = browser.probe(&page(), view, probe);
    let text = found[0].as_str().expect("the page has text");
    for part in [
        "Ranking",
        "is slower than raw, async by 9.8 ms",
        "double buffering",
        "Noise floor",
        "Drift",
        "Stopped when each ratio was known",
        "spindle run RUN-DIRECTORY",
        "AMD EPYC 9354P",
        "transactions per minute",
        "disk group <normal & mirrored>",
    ] {
        let is_there = text.to_lowercase().contains(&part.to_lowercase());
        assert!(is_there, "the page lacks {part:?}: {text}");
    }
    // A line of every layout, for the screen and for the phone; small drawings serve both.
    assert_eq!(found[1], serde_json::json!([12, 12, 6]));
    assert_eq!(found[2], 0, "buttons that do nothing are shown");
    assert_eq!(texts(&found[3]), Vec::<&str>::new());
}

/// The program and the script draw the same: at the same window and round no line moves.
#[test]
fn the_script_draws_what_the_program_drew() {
    let Some(browser) = Browser::find("report_page") else {
        return;
    };
    let probe = r#"(() => {
      const figure = page.getElementById("throughput-0");
      const lines = () => [...figure.querySelectorAll(".raw, .average, .checkpoint")]
        .map((line) => [line.getAttribute("class"), line.getAttribute("d").split(/[ML ]/).filter(Boolean).map(Number)]);
      const set = (which, value) => {
        const control = figure.querySelector(`[data-control=${which}]`);
        control.value = value;
        control.dispatchEvent(new view.Event("input"));
      };
      const before = lines();
      set("window", 10);
      const same = lines();
      const off = before.length !== same.length ? -1 : Math.max(...before.map(([kind, line], index) =>
        kind !== same[index][0] || line.length !== same[index][1].length ? 1e9
          : Math.max(...line.map((value, at) => Math.abs(value - same[index][1][at])))));
      set("window", 40);
      const wider = JSON.stringify(lines()) !== JSON.stringify(same);
      set("window", 10);
      const round = figure.querySelector("select").value === "1" ? 2 : 1;
      set("round", round);
      const other = JSON.stringify(lines()) !== JSON.stringify(same);
      return [before.length, off, wider, other];
    })()"#;
    let found = browser.probe(&page(), SCREEN, probe);
    assert!(found[0].as_u64() >= Some(24), "{found}");
    assert!(
        found[1]
            .as_f64()
            .is_some_and(|off| (0.0..=0.25).contains(&off)),
        "{found}"
    );
    assert_eq!(
        (&found[2], &found[3]),
        (&true.into(), &true.into()),
        "{found}"
    );
}

/// Values under the pointer, and files of a drawing and of its figures.
#[test]
fn drawings_tell_values_and_can_be_kept() {
    let Some(browser) = Browser::find("report_page") else {
        return;
    };
    let probe = r##"(() => {
      const blobs = [];
      view.URL.createObjectURL = (blob) => { blobs.push(blob); return "blob:kept"; };
      view.HTMLAnchorElement.prototype.click = function () { blobs[blobs.length - 1].file = this.download; };
      const RealBlob = view.Blob;
      const parts = [];
      view.Blob = function (texts, options) { parts.push(texts.join("")); return new RealBlob(texts, options); };
      const tip = page.querySelector(".tip");
      const point = (element, x, y) => element.dispatchEvent(new view.PointerEvent("pointermove", { clientX: x, clientY: y, bubbles: true }));
      const svg = page.querySelector("#throughput-0 .wide");
      const box = svg.getBoundingClientRect();
      point(svg, box.left + box.width / 2, box.top + 50);
      const series = tip.innerText;
      point(page.querySelector("#response-time-0 .wide .part"), 100, 100);
      const part = tip.innerText;
      for (const id of ["throughput-0", "response-time-0"])
        for (const kind of ["svg", "csv"]) page.querySelector(`#${id} [data-keep=${kind}]`).click();
      const drawing = new view.DOMParser().parseFromString(parts[0], "image/svg+xml");
      return [series, part, parts.map((part) => part.slice(0, 90)), blobs.map((blob) => blob.file),
        drawing.querySelector("parsererror")?.textContent ?? "", /--c1: #[0-9a-f]{6};/.test(parts[0])];
    })()"##;
    let found = browser.probe(&page(), SCREEN, probe);
    let text = |index: usize| found[index].as_str().expect("a text");
    assert!(
        text(0).contains(" s\n") && text(0).contains("6 raw, async"),
        "{found}"
    );
    assert!(
        text(1).contains("db file sequential read") && text(1).ends_with(" ms"),
        "{found}"
    );
    assert_eq!(
        texts(&found[3]),
        [
            "throughput-0.svg",
            "throughput-0.csv",
            "response-time-0.svg",
            "response-time-0.csv"
        ]
    );
    let kept = texts(&found[2]);
    assert!(
        kept[0].starts_with("<svg") && kept[2].starts_with("<svg"),
        "{kept:#?}"
    );
    assert!(
        kept[1].starts_with("layout,round,seconds,transactions_per_minute\n"),
        "{kept:#?}"
    );
    assert!(kept[3].starts_with("ms of one transaction,"), "{kept:#?}");
    assert_eq!(text(4), "");
    assert_eq!(found[5], true);
}

/// Pictures for the eye, where `SPINDLE_PICTURES` says.
#[test]
#[ignore = "writes pictures: make pictures"]
fn pictures() {
    let browser = Browser::find("report_page").expect("chromium");
    let directory =
        std::env::var_os("SPINDLE_PICTURES").expect("SPINDLE_PICTURES names a directory");
    let directory = PathBuf::from(directory);
    let page = page();
    for (name, page) in [("page", &page), ("page-at-a-rate", &page_at_a_rate())] {
        let file = directory.join(format!("{name}.html"));
        std::fs::write(file, page).expect("the page is written");
    }
    let on_paper = for_paper(&page);
    for (name, page, width, dark) in [
        ("screen", &page, SCREEN.width, false),
        ("dark", &page, SCREEN.width, true),
        ("phone", &page, PHONE.width, true),
        ("phone-light", &page, PHONE.width, false),
        ("print", &on_paper, SCREEN.width, false),
        ("print-a4", &on_paper, PAPER.width, false),
    ] {
        let view = View {
            width,
            dark,
            scripts: true,
        };
        let height = browser.probe(page, view, "page.documentElement.scrollHeight");
        let height = height.as_u64().expect("a height") as u32;
        for (part, top) in (0..height).step_by(1_350).enumerate() {
            let file = directory.join(format!("{name}-{part:02}.png"));
            browser.picture(page, view, top, &file);
        }
    }
}

const LARGE: Extent<'_> = Extent {
    clients: &[50],
    rounds: 30,
    samples: 1_800,
};

/// Bytes that a page may have.
const PAGE_BYTES_MAX: usize = 6_000_000;

#[test]
fn the_page_of_a_large_run_stays_small() {
    let record = showcase::record(LARGE);
    let page = spindle_report::html(&showcase::result(&record), &record.series);
    assert!(page.len() < PAGE_BYTES_MAX, "{} bytes", page.len());
    assert!(
        page.len() > 1_000_000,
        "the samples are not in it: {} bytes",
        page.len()
    );
}

/// The time that a large run takes from its directory to everything that is made of it. `make bench` prints it.
#[test]
#[ignore = "a timing: make bench"]
fn time_of_a_large_run() {
    let directory = tempfile::tempdir().expect("a directory for the run");
    let journal_bytes = stored::store(&showcase::record(LARGE), LARGE, directory.path());
    let seconds = |work: &dyn Fn()| {
        let start = Instant::now();
        work();
        start.elapsed().as_secs_f64()
    };
    let analysed = seconds(&|| {
        let run = directory::read(directory.path()).expect("the journal is whole");
        assert_eq!(run.result.cases.len(), 6);
    });
    let whole = seconds(&|| _ = write_reports(directory.path()).expect("the reports are written"));
    let bytes = |name: &str| {
        let file = std::fs::metadata(directory.path().join(name));
        file.expect("the report is there").len() as f64
    };
    println!(
        "6 cases x 30 trials x 1800 samples: from the run directory ({:.0} MB of journal) to result, page, text and series {:.0} ms \
         (goal: at most 2000), {:.0} ms of it for reading and analysis; page {:.1} MB (goal: at most 6), text {:.0} KB",
        journal_bytes as f64 / 1e6,
        1e3 * whole,
        1e3 * analysed,
        bytes("report.html") / 1e6,
        bytes("report.md") / 1e3
    );
}
