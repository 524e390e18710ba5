//! Draws a run: what is done now and how long it will take, throughput for each case, what the trial under way waits
//! for, and what happened.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use indicatif::HumanDuration;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Cell, Paragraph, Row, Table, Wrap};

use super::{CaseView, RunView, UnderWay};
use spindle_report::show::sparkline;
use spindle_result::Wait;
use spindle_text::quantity::thousands;

/// Lines of notes, and of waits, at most.
const NOTES: u16 = 4;
const WAITS: u16 = 7;
/// Cells of the longest bar of a wait.
const WAIT_BAR_CELLS: usize = 30;

/// Draws the whole terminal.
pub(super) fn draw(frame: &mut Frame<'_>, run: &RunView, now: Instant) {
    let waits = (run.waits().len() as u16).clamp(1, WAITS) + 1;
    let notes = (run.notes.len() as u16).clamp(1, NOTES) + 1;
    let [top, cases, waited, said, keys] = Layout::vertical([
        Constraint::Length(3),
        Constraint::Min(3),
        Constraint::Length(waits),
        Constraint::Length(notes),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    frame.render_widget(summary(run, now), top);
    draw_cases(frame, run, cases);
    draw_waits(frame, run, waited);
    draw_notes(frame, run, said);
    frame.render_widget(Line::from(keys_text(run)).dim(), keys);
}

fn titled(title: &str) -> Block<'_> {
    Block::new().title(Line::from(title).cyan())
}

fn keys_text(run: &RunView) -> &'static str {
    match run.interrupted.load(Ordering::Relaxed) {
        true => "Stopping; finished trials are kept. Ctrl-C again: stop at once",
        false => "Ctrl-C: stop; finished trials are kept, and spindle resume goes on",
    }
}

/// What is done, and how long it will take.
fn summary(run: &RunView, now: Instant) -> Paragraph<'_> {
    let left = match run.ends {
        Some(ends) => {
            let left = ends.saturating_duration_since(now);
            format!("about {} left", HumanDuration(whole_seconds(left)))
        }
        None => String::new(),
    };
    let spent = HumanDuration(whole_seconds(run.spent(now)));
    let progress = format!(
        "{}: {} of {} trials in {spent}, {left}",
        run.experiment, run.trials_done, run.trials
    );
    Paragraph::new(vec![
        Line::from(progress).bold(),
        Line::from(under_way(run, now)),
    ])
}

fn whole_seconds(duration: Duration) -> Duration {
    Duration::from_secs(duration.as_secs())
}

fn under_way(run: &RunView, now: Instant) -> String {
    let UnderWay::Trial {
        case,
        round,
        began,
        heard,
    } = &run.under_way
    else {
        return "getting ready".to_owned();
    };
    let CaseView { layout, load, .. } = &run.cases[*case];
    let seconds = now.saturating_duration_since(*began).as_secs();
    let doing = match heard {
        None => "restoring".to_owned(),
        Some(heard) => {
            let phase = match heard.measuring {
                true => "measuring",
                false => "warming up",
            };
            format!("{phase}, {} tpm so far", thousands(heard.tpm))
        }
    };
    format!("round {round}: {layout}, {load}, for {seconds} s: {doing}")
}

/// A row for each case, as many as there is room for, that of the trial under way among them.
fn draw_cases(frame: &mut Frame<'_>, run: &RunView, area: Rect) {
    let current = match run.under_way {
        UnderWay::Trial { case, .. } => Some(case),
        UnderWay::Preparing => None,
    };
    let full = run
        .cases
        .iter()
        .flat_map(|case| case.samples_tpm.iter().copied())
        .fold(0.0, f64::max);
    let widths = [
        Constraint::Length(1),
        Constraint::Max(longest_name(run)),
        Constraint::Length(7),
        Constraint::Length(6),
        Constraint::Length(9),
        Constraint::Fill(1),
    ];
    let others: u16 = longest_name(run) + 1 + 7 + 6 + 9 + 5;
    let cells = usize::from(area.width.saturating_sub(others));
    let rows = run.cases.iter().enumerate();
    let rows: Vec<Row<'_>> = rows
        .map(|(index, case)| row(case, run.rounds, full, cells, current == Some(index)))
        .collect();
    // Two lines are the title and the header.
    let room = usize::from(area.height.saturating_sub(2)).max(1);
    let first = current.map_or(0, |current| (current + 1).saturating_sub(room));
    let rows = rows.into_iter().skip(first).take(room);
    let header = [
        "",
        "layout",
        "clients",
        "rounds",
        "tpm",
        "over the last trial",
    ];
    let table = Table::new(rows, widths)
        .header(Row::new(header).dim())
        .block(titled("Throughput"));
    frame.render_widget(table, area);
}

fn longest_name(run: &RunView) -> u16 {
    let names = run.cases.iter().map(|case| case.layout.chars().count());
    names.max().unwrap_or(0).clamp(6, 40) as u16
}

fn row(case: &CaseView, rounds: u32, full: f64, cells: usize, is_current: bool) -> Row<'_> {
    let mean = match case.finished_tpm.as_slice() {
        [] => String::new(),
        tpm => thousands(tpm.iter().sum::<f64>() / tpm.len() as f64),
    };
    let done = match case.has_failed {
        true => "failed".to_owned(),
        false => format!("{}/{rounds}", case.finished_tpm.len()),
    };
    let row = Row::new([
        Cell::from(if is_current { ">" } else { "" }),
        Cell::from(case.layout.as_str()),
        Cell::from(format!("{:>7}", case.load.in_column())),
        Cell::from(format!("{done:>6}")),
        Cell::from(format!("{mean:>9}")),
        Cell::from(sparkline(&case.samples_tpm, full, cells)).green(),
    ]);
    match (case.has_failed, is_current) {
        (true, _) => row.style(Style::new().red()),
        (_, true) => row.style(Style::new().bold()),
        _ => row,
    }
}

/// Waits of all processes together in the phase under way; they overlap, so their sum says nothing.
fn draw_waits(frame: &mut Frame<'_>, run: &RunView, area: Rect) {
    let waits = run.waits();
    let longest_us = waits.first().map_or(0.0, |wait| wait.total_us);
    let rows: Vec<Row<'_>> = waits
        .iter()
        .take(WAITS.into())
        .map(|wait| wait_row(wait, longest_us))
        .collect();
    let block = titled("Waits so far: total, count, mean");
    if rows.is_empty() {
        frame.render_widget(Paragraph::new("  none yet").dim().block(block), area);
        return;
    }
    let widths = [
        Constraint::Length(42),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Length(10),
        Constraint::Fill(1),
    ];
    frame.render_widget(Table::new(rows, widths).block(block), area);
}

fn wait_row(wait: &Wait, longest_us: f64) -> Row<'_> {
    let share = wait.total_us / longest_us.max(1.0);
    let bar = "█".repeat((share * WAIT_BAR_CELLS as f64).round() as usize);
    Row::new([
        Cell::from(format!("  {}", wait.event.own_name())),
        Cell::from(format!("{:>8.1} s", wait.total_us / 1e6)),
        Cell::from(format!("{:>10}", wait.count)),
        Cell::from(format!("{:>7.2} ms", wait.mean_us / 1e3)),
        Cell::from(bar).yellow(),
    ])
}

fn draw_notes(frame: &mut Frame<'_>, run: &RunView, area: Rect) {
    let latest = run.notes.len().saturating_sub(NOTES.into());
    let lines: Vec<Line<'_>> = run.notes[latest..]
        .iter()
        .map(|note| Line::from(format!("  {note}")))
        .collect();
    let notes = Paragraph::new(lines).wrap(Wrap { trim: false });
    frame.render_widget(notes.block(titled("What happened")), area);
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use spindle_result::LoadLevel;
    use spindle_run::trial::protocol::TrialProgress;

    fn run(now: Instant) -> RunView {
        let case = |layout: &str, finished_tpm: &[f64]| CaseView {
            layout: layout.to_owned(),
            load: LoadLevel::of(8),
            finished_tpm: finished_tpm.to_vec(),
            samples_tpm: finished_tpm
                .iter()
                .flat_map(|tpm| [tpm * 0.5, *tpm])
                .collect(),
            has_failed: false,
        };
        RunView {
            experiment: "quickstart".to_owned(),
            began: now,
            trials_done: 4,
            trials: 9,
            ends: Some(now + Duration::from_secs(185)),
            rounds: 3,
            cases: vec![
                case("buffered, sync", &[31_000.0, 33_000.0]),
                case("direct, async", &[62_000.0]),
                CaseView {
                    has_failed: true,
                    ..case("odm", &[60_000.0])
                },
            ],
            under_way: UnderWay::Preparing,
            notes: vec!["trial 4/9, round 2: odm, 8 clients: failed: the disk is full".to_owned()],
            interrupted: Arc::new(AtomicBool::new(false)),
        }
    }

    fn wait(event: &str, count: u64, total_us: f64) -> Wait {
        Wait {
            event: event.into(),
            count,
            total_us,
            mean_us: total_us / count as f64,
            sampled: false,
        }
    }

    fn measuring(now: Instant) -> RunView {
        let mut run = run(now);
        run.trial_begins("direct, async", LoadLevel::of(8), 2);
        for tpm_now in [40_000.0, 55_000.0, 61_000.0] {
            run.trial_goes_on(&TrialProgress {
                all_at_work: true,
                measuring: true,
                tpm: 52_000.0,
                tpm_now,
                waits: vec![
                    wait("log file sync", 20_000, 9e6),
                    wait("db file sequential read", 100_000, 22e6),
                ],
            });
        }
        run
    }

    fn picture(run: &RunView, now: Instant, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, run, now)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn a_trial_being_measured() {
        let now = Instant::now();
        let run = measuring(now);
        insta::assert_snapshot!(picture(&run, now, 100, 20));
    }

    #[test]
    fn getting_ready_and_being_stopped() {
        let now = Instant::now();
        let run = run(now);
        run.interrupted.store(true, Ordering::Relaxed);
        insta::assert_snapshot!(picture(&run, now + Duration::from_secs(65), 80, 14));
    }

    #[test]
    fn the_case_under_way_is_seen_among_many_on_any_terminal() {
        let now = Instant::now();
        let mut run = measuring(now);
        run.cases = (0..40)
            .map(|number| CaseView {
                layout: format!("layout {number}"),
                load: LoadLevel::of(8),
                ..CaseView::default()
            })
            .collect();
        run.trial_begins("layout 33", LoadLevel::of(8), 1);
        for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            let picture = picture(&run, now, width, height);
            assert!(height < 20 || picture.contains("> layout 33"), "{picture}");
        }
    }
}
