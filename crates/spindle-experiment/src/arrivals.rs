//! How transactions come in time: when clients are free, at a rate, at each of several rates, or at the highest that
//! keeps a promise.

use serde::{Deserialize, Serialize};
use spindle_text::rate::{AskedRate, Rate};
use spindle_text::section::Section;
use spindle_workload::ArrivalSettings;
use spindle_workload::TrialPace;
pub use spindle_workload::{Arrivals, Spacing};

use super::reader::{Reader, keys_in};

/// What is read in the place of a promise that is missing or wrong, which is refused.
const P99_MS: u64 = 20;

/// What is promised to those who send load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Promised {
    /// 99 of 100 transactions take no longer from their intended begin, 1 ms to 1 h.
    pub p99_ms: u64,
    /// The times between arrivals.
    pub spacing: Spacing,
}

/// Rates that are each a load level.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RateLevels {
    /// Each once, one or more. Either all are parts of what the slowest layout does, or none is.
    pub rates: Vec<Rate>,
    /// The times between arrivals.
    pub spacing: Spacing,
}

/// At most one of them is set; without any, a client begins a transaction when it has ended the last.
#[derive(Default)]
pub(super) struct AskedArrivals {
    pub arrivals: Option<Arrivals>,
    pub levels: Option<RateLevels>,
    pub promised: Option<Promised>,
}

/// Reads `rate`, `arrivals` and `p99`, which mean nothing where transactions have their own pace.
pub(super) fn read(reader: &mut Reader<'_>, pace: TrialPace) -> AskedArrivals {
    if matches!(pace, TrialPace::Streams | TrialPace::Recorded) {
        reader.know(&keys_in::<ArrivalSettings>());
        return AskedArrivals::default();
    }
    let ArrivalSettings {
        rate,
        p99_ms,
        spacing,
    } = Section::read(reader);
    let has_promise = reader.has("p99");
    let p99_ms = p99_ms.unwrap_or(P99_MS);
    let is_searched = matches!(rate, Some(AskedRate::Auto));
    if is_searched != has_promise {
        let refused = match is_searched {
            true => reader.conflict(
                &["rate"],
                "rate is \"auto\" and p99 is not set",
                "rate = \"auto\" needs a latency to keep",
                "set p99 = \"20ms\" beside it: 99 of 100 transactions are to take no longer",
            ),
            false => reader.conflict(
                &["p99"],
                "p99 is set and rate is not \"auto\"",
                "it is the latency that rate = \"auto\" must keep",
                "write rate = \"auto\", or leave p99 out",
            ),
        };
        reader.note(refused.given(reader.keys(["rate", "p99"])));
    }
    if reader.has("rate") && reader.has("think_time") {
        reader.refuse(
            &["rate", "think_time"],
            "rate and think_time are both set",
            "one of the two says when a client begins its next transaction",
            "leave one out: with a rate, transactions begin when they are due and a client is free",
        );
    }
    let Some(rate) = rate else {
        if reader.has("arrivals") {
            let refused = reader.conflict(
                &["arrivals"],
                "arrivals is set and rate is not",
                "without a rate each client begins a transaction when it has ended the last",
                "set rate = \"500/s\" beside it, or leave arrivals out",
            );
            reader.note(refused.given(reader.keys(["rate"])));
        }
        return AskedArrivals::default();
    };
    let spacing = spacing.unwrap_or(Spacing::Poisson);
    let mut asked = AskedArrivals::default();
    match rate {
        AskedRate::Auto => asked.promised = Some(Promised { p99_ms, spacing }),
        AskedRate::One(rate_per_s) => {
            asked.arrivals = Some(Arrivals {
                rate_per_s,
                spacing,
            });
        }
        AskedRate::Each(rates) => asked.levels = Some(RateLevels { rates, spacing }),
    }
    asked
}

#[cfg(test)]
mod tests {
    use crate::{Experiment, ExperimentError, WorkloadChoice};

    fn read(lines: &str) -> Result<WorkloadChoice, ExperimentError> {
        let text = format!("[workload]\n{lines}\n[[layout]]\nname = \"a\"\n");
        Experiment::parse("e.toml", &text, &[]).map(|experiment| experiment.workload)
    }

    #[test]
    fn a_rate_is_searched_for_a_promise_and_not_without_one() {
        let workload = read("rate = \"auto\"\np99 = \"20ms\"").unwrap();
        assert_eq!(workload.promised.unwrap().p99_ms, 20);
        assert_eq!(workload.arrivals, None);
        assert!(workload.is_open());
        for (lines, said) in [
            ("rate = \"auto\"", "p99 is not set"),
            ("rate = \"5/s\"\np99 = \"20ms\"", "rate is not \"auto\""),
            ("p99 = \"20ms\"", "rate is not \"auto\""),
            (
                "rate = \"auto\"\np99 = \"20ms\"\nthink_time = \"1s\"",
                "think_time",
            ),
            ("kind = \"junk\"\nrate = \"auto\"\np99 = \"20ms\"", "rate"),
            ("kind = \"junk\"\nrate = [\"50%\"]", "rate"),
        ] {
            let told = read(lines).expect_err(lines).to_string();
            assert!(told.contains(said), "{lines}: {told}");
        }
    }

    /// Load levels as results spell them.
    fn loads(lines: &str) -> Vec<String> {
        let loads = read(lines).unwrap().loads();
        let spelled = loads.iter().map(|(clients, rate)| match rate {
            None => clients.to_string(),
            Some(rate) => format!("{clients} {rate}"),
        });
        spelled.collect()
    }

    #[test]
    fn each_rate_of_a_list_is_a_load_level() {
        assert_eq!(loads("clients = [8, 16]"), ["8", "16"]);
        assert_eq!(loads("clients = 8\nrate = \"200/s\""), ["8"]);
        assert_eq!(
            loads("clients = [8, 16]\nrate = [\"200/s\", \"24000/m\"]"),
            ["8 200/s", "8 400/s", "16 200/s", "16 400/s"]
        );
        // Parts have the closed loop before them that they are parts of.
        assert_eq!(
            loads("clients = 8\nrate = [\"30%\", \"60 %\"]"),
            ["8", "8 30%", "8 60%"]
        );
        assert_eq!(loads("clients = 8\nrate = \"90%\""), ["8", "8 90%"]);
        let workload = read("rate = [\"200/s\", \"400/s\"]\narrivals = \"even\"").unwrap();
        assert!(workload.is_open() && !workload.has_rates_of_slowest());
        let kept = serde_json::to_string(&workload).unwrap();
        assert_eq!(
            serde_json::from_str::<WorkloadChoice>(&kept).unwrap(),
            workload
        );
    }

    #[test]
    fn a_load_level_has_its_rate_once_the_slowest_is_known() {
        let workload = read("rate = [\"30%\"]").unwrap();
        let (_, rate) = workload.loads()[1];
        let of = |rate, slowest_per_s| {
            let at = workload.at(rate, slowest_per_s);
            at.arrivals.map(|arrivals| arrivals.rate_per_s)
        };
        assert_eq!(of(None, Some(500.0)), None);
        assert_eq!(of(rate, Some(500.0)), Some(150.0));
        assert_eq!(of(rate, None), None);
        let single = read("rate = \"200/s\"").unwrap();
        assert_eq!(single.at(None, None), single);
    }

    #[test]
    fn a_wrong_list_is_told_with_its_line_and_what_is_allowed() {
        for wrong in [
            "[200, 400]",
            "[]",
            "[\"200/s\", \"200/s\"]",
            "[\"200/s\", \"30%\"]",
            "[\"0%\"]",
            "[\"300%\"]",
            "[\"fast\"]",
            "\"200\"",
            "[\"auto\"]",
        ] {
            let error = read(&format!("rate = {wrong}")).expect_err(wrong);
            let told = format!("{:?}", miette::Report::new(error));
            assert!(told.contains("e.toml:2:"), "{wrong}: {told}");
            assert!(told.contains("such as [\"30%\","), "{wrong}: {told}");
        }
    }
}
