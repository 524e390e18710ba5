//! An existing server: what it is, what it keeps, how much is in it, what a run may do there, how far away it is.

use spindle_engines::promise::Keeps;
use spindle_engines::sql::survey::{Clock, Limit, Right, RoundTripTimes, ServerSurvey, Volume};
use spindle_text::quantity::{size, time};

use super::finding::Finding;

/// A clock that is off by more is worth a word, microseconds.
const CLOCK_OFF_US: i64 = 1_000_000;

/// What was found, by headings.
pub(super) fn find(survey: &ServerSurvey) -> Vec<(&'static str, Vec<Finding>)> {
    vec![
        ("The server", identity(survey)),
        ("What it keeps when the power goes", promise(survey)),
        (
            "Its settings that matter to storage",
            listed(&survey.settings),
        ),
        ("How much is in it", sizes(survey)),
        ("What a run may do there", standing(survey)),
        (
            "The way to it",
            way(&survey.round_trip, survey.clock.as_ref()),
        ),
    ]
}

fn listed(lines: &[String]) -> Vec<Finding> {
    match lines.is_empty() {
        true => vec![Finding::warn(
            "it does not tell them",
            "results cannot say what was measured",
        )],
        false => lines.iter().map(Finding::ok).collect(),
    }
}

fn identity(survey: &ServerSurvey) -> Vec<Finding> {
    let mut found = vec![Finding::ok(&survey.version)];
    found.push(match &survey.encryption {
        Some(encryption) => Finding::ok(encryption),
        None => Finding::ok("the connection is not encrypted"),
    });
    if !survey.extensions.is_empty() {
        found.push(Finding::ok(format!(
            "with {}",
            survey.extensions.join(", ")
        )));
    }
    found
}

fn promise(survey: &ServerSurvey) -> Vec<Finding> {
    let reasons = survey.promise.reasons.iter();
    reasons
        .map(|reason| match reason.keeps {
            Keeps::EveryCommit => Finding::ok(&reason.what),
            _ => Finding::warn(&reason.what, &reason.effect),
        })
        .collect()
}

fn sizes(survey: &ServerSurvey) -> Vec<Finding> {
    let cache = match survey.cache_bytes {
        Some(bytes) => format!("its buffer cache: {}", size(bytes)),
        None => "its buffer cache: not told".to_owned(),
    };
    let mut found = vec![Finding::ok(cache)];
    let databases = survey.databases.iter().map(|volume| ("database", volume));
    let tables = survey.tables.iter().map(|volume| ("table", volume));
    let line = |(kind, volume): (&str, &Volume)| {
        let told = match (volume.bytes, survey.cache_bytes) {
            (Some(bytes), Some(cache)) if cache > 0 => {
                let share = bytes as f64 / cache as f64;
                format!("{}, {share:.2} times the cache", size(bytes))
            }
            (Some(bytes), _) => size(bytes),
            (None, _) => "of a size that this user may not know".to_owned(),
        };
        Finding::ok(format!("{kind} {}: {told}", volume.name))
    };
    found.extend(databases.chain(tables).map(line));
    found
}

fn right(right: &Right) -> Finding {
    match &right.missing {
        None if right.is_told => Finding::ok(right.what),
        None => Finding::warn(
            format!("{}: it does not tell", right.what),
            format!("if not, {}", right.without),
        ),
        Some(remedy) => Finding::missing(right.what, format!("{}: {remedy}", right.without)),
    }
}

/// What a run may do, and what ends it.
fn standing(survey: &ServerSurvey) -> Vec<Finding> {
    let limit = |limit: &Limit| Finding::warn(&limit.setting, limit.effect());
    let rights = survey.rights.iter().map(right);
    rights.chain(survey.limits.iter().map(limit)).collect()
}

fn way(round_trip: &RoundTripTimes, clock: Option<&Clock>) -> Vec<Finding> {
    let [p50, p99] = [round_trip.p50_us, round_trip.p99_us].map(|us| time(us as f64));
    let trip = format!("a trivial statement takes {p50} (p50), {p99} (p99)");
    let clock = match clock {
        None => Finding::warn(
            "it does not tell its time",
            "its log cannot be put beside a run",
        ),
        Some(clock) => {
            let side = if clock.ahead_us < 0 {
                "behind"
            } else {
                "ahead of"
            };
            let off_ms = clock.ahead_us.unsigned_abs() as f64 / 1000.0;
            let uncertain_ms = clock.uncertain_us as f64 / 1000.0;
            let what = format!(
                "its clock is {off_ms:.2} ms {side} this one, give or take {uncertain_ms:.2} ms"
            );
            match clock.ahead_us.abs() > CLOCK_OFF_US {
                true => Finding::warn(what, "set both by NTP, to put its log beside a run"),
                false => Finding::ok(what),
            }
        }
    };
    vec![Finding::ok(trip), clock]
}

#[cfg(test)]
mod tests {
    use spindle_engines::promise::Promise;

    use super::*;

    #[test]
    fn what_is_missing_is_told_with_its_remedy() {
        let survey = ServerSurvey {
            version: "PostgreSQL 15".to_owned(),
            encryption: None,
            settings: vec!["fsync = on".to_owned()],
            promise: Promise::of(Vec::new()),
            extensions: vec!["plpgsql 1.0".to_owned()],
            cache_bytes: Some(1 << 20),
            databases: vec![Volume {
                name: "lab".to_owned(),
                bytes: Some(3 << 20),
            }],
            tables: vec![Volume {
                name: "theirs".to_owned(),
                bytes: None,
            }],
            rights: vec![
                Right {
                    what: "may make a schema",
                    without: "no run is possible",
                    missing: Some("grant create".to_owned()),
                    is_told: true,
                },
                Right {
                    what: "may make databases",
                    without: "data is loaded again",
                    missing: None,
                    is_told: false,
                },
            ],
            limits: vec![Limit {
                setting: "statement_timeout = 5s".to_owned(),
                ends: "a statement that takes longer",
            }],
            round_trip: RoundTripTimes {
                p50_us: 70,
                p99_us: 120,
            },
            clock: Some(Clock {
                ahead_us: -2_500_000,
                uncertain_us: 40,
            }),
        };
        let text = super::super::show(&find(&survey));
        for said in [
            "  ok       PostgreSQL 15\n",
            "  ok       database lab: 3 MiB, 3.00 times the cache\n",
            "  ok       table theirs: of a size that this user may not know\n",
            "  missing  may make a schema\n           no run is possible: grant create\n",
            "  warn     may make databases: it does not tell\n           if not, data is loaded again\n",
            "  warn     statement_timeout = 5s\n           it ends a statement that takes longer, in the clients' sessions",
            "takes 70 us (p50), 120 us (p99)\n",
            "  warn     its clock is 2500.00 ms behind this one, give or take 0.04 ms\n",
        ] {
            assert!(text.contains(said), "{said}: {text}");
        }
    }
}
