//! What flushes came to, in words: a row for each way and number of writers, sentences about commits, and whether what
//! was flushed arrived.

use std::fmt::Write as _;

use spindle_text::quantity::{thousands, thousands_or_tenths, time};

use crate::commits::{Burst, Commits, Spread};
use crate::figures::{DurableBy, Flushed, Trust};
use crate::result::{Calibration, Honesty};

/// After a table with such rows.
pub(super) const UNSTEADY: &str = "~ not steady, or not known to within 2 %, in its time";

/// How a write became durable, in a few words.
pub fn durable_by(by: DurableBy) -> &'static str {
    match by {
        DurableBy::Fdatasync => "fdatasync, page cache",
        DurableBy::DirectFdatasync => "fdatasync, direct",
        DurableBy::DirectDsync => "durable write, direct",
    }
}

pub(super) fn flushes(text: &mut String, found: &Calibration) {
    for commits in &found.commits {
        let of = match found.commits.len() {
            1 => String::new(),
            _ => format!(", {}", commits.target),
        };
        let _ = writeln!(
            text,
            "{:<28}{:>10}{:>8}{:>10}{:>10}{:>12}",
            format!("8K made durable{of}"),
            "writers",
            "",
            "p50",
            "p99",
            "per second"
        );
        let own = found.flushes.iter();
        let own = own.filter(|flushed| flushed.target == commits.target);
        for flushed in own.clone() {
            flush_row(text, flushed);
        }
        let mut honesty = found.honesty.iter();
        let honesty = honesty.find(|honesty| honesty.target == commits.target);
        let control = honesty.and_then(|honesty| honesty.control.as_ref());
        let of_control = control.map_or(&[][..], |control| &control.flushes);
        if let Some(control) = control {
            let _ = writeln!(text, "of the control, {}", control.path);
        }
        for flushed in of_control {
            flush_row(text, flushed);
        }
        if own.chain(of_control).any(|flushed| !flushed.is_steady) {
            let _ = writeln!(text, "{UNSTEADY}");
        }
        for says in commit_lines(commits, found) {
            let _ = writeln!(text, "{says}.");
        }
    }
}

fn flush_row(text: &mut String, flushed: &Flushed) {
    let _ = writeln!(
        text,
        "{:<28}{:>10}{:>8}{:>10}{:>10}{:>12}{}",
        durable_by(flushed.by),
        flushed.writers,
        "",
        time(flushed.p50_us),
        time(flushed.p99_us),
        thousands(flushed.flushes_per_s),
        if flushed.is_steady { "" } else { " ~" },
    );
}

/// What commits meet, a sentence each, without their points.
pub fn commit_lines(commits: &Commits, found: &Calibration) -> Vec<String> {
    let mut lines: Vec<String> = commits.fua.iter().map(fua_line).collect();
    if let Some(gain) = commits.buffered_gain {
        let unsteady = match is_gain_steady(&commits.target, found) {
            true => "",
            false => " (~ not steady)",
        };
        lines.push(format!(
            "1 writer: {gain:.2} times as many durable writes per second through the page cache as direct{unsteady}"
        ));
    }
    if let Some(ratio) = &commits.first_write_ratio {
        let Spread {
            middle,
            least,
            most,
        } = ratio;
        lines.push(format!(
            "A flush after the first write to allocated space takes {middle:.2} times as long as after an overwrite \
             ({least:.2} to {most:.2} from turn to turn)"
        ));
    }
    if let Some(most) = commits.ceiling(found.max_latency_us) {
        lines.push(format!(
            "Group commit: {} commits of 1 KiB per second at most, {} in each flush (p99 {})",
            thousands(most.commits_per_s),
            most.commits_per_flush,
            time(most.p99_us)
        ));
    }
    if let Some(burst) = &commits.burst {
        lines.push(burst_line(burst));
    }
    lines
}

/// Whether both figures that the gain of buffered writes is made of were steady.
fn is_gain_steady(target: &str, found: &Calibration) -> bool {
    let mut flushes = found.flushes.iter();
    flushes.all(|flushed| {
        let is_part = flushed.target == target
            && flushed.writers == 1
            && matches!(
                flushed.by,
                DurableBy::Fdatasync | DurableBy::DirectFdatasync
            );
        flushed.is_steady || !is_part
    })
}

fn fua_line((disk, fua): &(String, Option<bool>)) -> String {
    match fua {
        Some(true) => format!("{disk} has FUA: a durable direct write needs no flush of its cache"),
        Some(false) => {
            format!(
                "{disk} has no FUA: where it has a cache, a durable write is a write and a flush"
            )
        }
        None => format!("{disk} does not say whether it has FUA"),
    }
}

fn burst_line(burst: &Burst) -> String {
    let (first, after) = (time(burst.first_flush_us), time(burst.p50_after_us));
    let went = match &burst.fell {
        Some(fell) => format!(
            "{} MB/s fell to {} MB/s after {:.1} s, as where a write-back cache fills",
            thousands_or_tenths(fell.before),
            thousands_or_tenths(fell.after),
            fell.after_s
        ),
        None => format!(
            "{} MB/s for {:.1} s, without a fall",
            thousands_or_tenths(burst.mb_per_s),
            burst.lasted_s
        ),
    };
    format!("Burst of direct writes: {went}; the flush after it took {first}, the next {after}")
}

/// What flushes are worth, in a word or two.
pub fn trust_word(trust: Trust) -> &'static str {
    match trust {
        Trust::Arrives => "flushes arrive",
        Trust::Ignored => "FLUSHES IGNORED",
        Trust::Memory => "MEMORY",
        Trust::Unknown => "flushes unknown",
    }
}

/// What the flushes of a target are worth, and what they were compared with.
pub(super) fn trust(text: &mut String, honesty: &Honesty, names_target: bool) {
    let word = trust_word(honesty.trust);
    let of = match names_target {
        true => format!(", {}", honesty.target),
        false => String::new(),
    };
    let _ = writeln!(text, "{word}{of}: {}.", honesty.because);
    for says in witness_lines(honesty) {
        let _ = writeln!(text, "  {says}");
    }
}

/// What lies beneath a target, and what its flushes were compared with.
pub fn witness_lines(honesty: &Honesty) -> Vec<String> {
    let because = &honesty.control_because;
    let control = match &honesty.control {
        Some(control) => format!(
            "control: {} ({because}); the target {}",
            control.path, control.says
        ),
        None => format!("control: none; {because}"),
    };
    let layers = &honesty.beneath;
    let beneath = (!layers.is_empty()).then(|| format!("beneath: {}", layers.join(" > ")));
    beneath.into_iter().chain([control]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commits::tests::commits;

    #[test]
    fn a_gain_of_unsteady_figures_says_so() {
        let told = |by, is_steady| {
            let mut found = crate::need::tests::found(1.0);
            found.flushes[0] = Flushed {
                by,
                is_steady,
                ..found.flushes[0].clone()
            };
            let mut commits = commits(&[]);
            commits.buffered_gain = Some(1.5);
            let lines = commit_lines(&commits, &found);
            found.commits.push(commits);
            let mut text = String::new();
            flushes(&mut text, &found);
            (lines[0].contains("(~ not steady)"), text.contains(UNSTEADY))
        };
        assert_eq!(told(DurableBy::Fdatasync, true), (false, false));
        assert_eq!(told(DurableBy::Fdatasync, false), (true, true));
        assert_eq!(told(DurableBy::DirectDsync, false), (false, true));
    }
}
