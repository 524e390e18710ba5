//! What a person demands of storage, such as `fdatasync p99 < 10ms`, and whether a calibration meets it. A figure that
//! was not measured, or that memory answered, meets nothing and misses nothing; nor does one of flushes that are
//! ignored.

use std::fmt;
use std::str::FromStr;

use crate::figures::{Cached, CutShort, DurableBy, Extreme, Trust, What};
use crate::result::{Calibration, DemandAnswer, Honesty, Judged, NotJudged};

/// What is allowed, for messages about anything else.
const ALLOWED: &str = "allowed: FIGURE < VALUE or FIGURE > VALUE, where FIGURE is iops, mbps, or fdatasync, dsync or read with \
                       mean, p50, p99 or max, and a time has a unit: 'fdatasync p99 < 10ms', 'iops > 5000', 'read p99 < 500us'";

/// A demand.
#[derive(Debug, Clone, PartialEq)]
pub struct Need {
    text: String,
    figure: Figure,
    is_less: bool,
    /// Per second, millions of bytes per second, or microseconds.
    value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Figure {
    Iops,
    MbPerS,
    Flush(DurableBy, Statistic),
    Read(Statistic),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Statistic {
    Mean,
    P50,
    P99,
    Max,
}

/// What a calibration will have measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToBeMeasured {
    pub(crate) only_flushes: bool,
    pub(crate) write_percent: u32,
    /// A file is made, or a device claimed, that is flushed.
    pub(crate) has_flushes: bool,
    pub(crate) has_small: bool,
    pub(crate) has_large: bool,
}

/// Why a text is no demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{ALLOWED}")]
pub struct NoNeed;

impl FromStr for Need {
    type Err = NoNeed;

    fn from_str(text: &str) -> Result<Need, NoNeed> {
        let at = text.find(['<', '>']).ok_or(NoNeed)?;
        let words: Vec<&str> = text[..at].split_whitespace().collect();
        let value = text[at + 1..].trim();
        let statistic = |word: &str| match word {
            "mean" => Ok(Statistic::Mean),
            "p50" => Ok(Statistic::P50),
            "p99" => Ok(Statistic::P99),
            "max" => Ok(Statistic::Max),
            _ => Err(NoNeed),
        };
        let (figure, value) = match words.as_slice() {
            ["iops"] => (Figure::Iops, number(value)?),
            ["mbps"] => (Figure::MbPerS, number(value)?),
            ["fdatasync", word] => (
                Figure::Flush(DurableBy::Fdatasync, statistic(word)?),
                latency_us(value)?,
            ),
            ["dsync", word] => (
                Figure::Flush(DurableBy::DirectDsync, statistic(word)?),
                latency_us(value)?,
            ),
            ["read", word] => (Figure::Read(statistic(word)?), latency_us(value)?),
            _ => return Err(NoNeed),
        };
        Ok(Need {
            text: text.trim().to_owned(),
            figure,
            is_less: text[at..].starts_with('<'),
            value,
        })
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

fn number(text: &str) -> Result<f64, NoNeed> {
    let is_plain = |text: &str| {
        text.bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    };
    let value = text.parse().ok().filter(|_| is_plain(text));
    value.filter(|value| *value > 0.0).ok_or(NoNeed)
}

/// A latency such as `500us`, `20ms` or `1s`, microseconds.
///
/// # Errors
/// It is none, or 0.
pub fn latency_us(text: &str) -> Result<f64, NoNeed> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let found = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (digits, factor) = found.ok_or(NoNeed)?;
    Ok(number(digits.trim_end())? * factor)
}

impl Need {
    /// Why nothing that is measured can answer it, and what to do: told before anything is measured.
    pub(crate) fn is_in_vain(&self, measured: &ToBeMeasured) -> Option<String> {
        let why = match self.figure {
            Figure::Flush(..) if !measured.has_flushes => {
                "the targets are only read, and flushes need a file that is made; name a directory"
            }
            Figure::Flush(..) => return None,
            _ if measured.only_flushes => {
                "--flushes measures flushes only; leave it out, or need fdatasync or dsync"
            }
            Figure::Read(_) if measured.write_percent > 0 => {
                "with --write-percent the times of reads and writes are told together; leave it out"
            }
            Figure::Iops | Figure::Read(_) if !measured.has_small => {
                "this run has no small requests; choose another --run, or leave it out"
            }
            Figure::MbPerS if !measured.has_large => {
                "this run has no large requests; choose another --run, or leave it out"
            }
            _ => return None,
        };
        Some(format!("--need '{}' cannot be judged: {why}", self.text))
    }

    /// Whether it is met.
    pub fn judge(&self, found: &Calibration) -> Judged {
        let figure = self.figure_of(found);
        let answer = match figure {
            Err(_) => DemandAnswer::Unknown,
            Ok(figure) if (figure < self.value) == self.is_less => DemandAnswer::Met,
            Ok(_) => DemandAnswer::Missed,
        };
        // A longer search finds more, and never less.
        let may_be_met =
            answer == DemandAnswer::Missed && !self.is_less && self.is_out_of_time(found);
        let (answer, figure) = match may_be_met {
            true => (DemandAnswer::Unknown, Err(NotJudged::OutOfTime)),
            false => (answer, figure),
        };
        Judged {
            need: self.text.clone(),
            answer,
            found: figure.ok(),
            is_time: matches!(self.figure, Figure::Flush(..) | Figure::Read(_)),
            unknown_because: figure.err(),
        }
    }

    /// Whether the time ended the search for the most.
    fn is_out_of_time(&self, found: &Calibration) -> bool {
        match self.figure {
            Figure::Iops => found.is_cut_short(What::SmallRandom, CutShort::Time),
            Figure::MbPerS => found.is_cut_short(What::LargeSequential, CutShort::Time),
            Figure::Flush(..) | Figure::Read(_) => false,
        }
    }

    /// Or why there is none that is the device's.
    fn figure_of(&self, found: &Calibration) -> Result<f64, NotJudged> {
        let of = |extreme: &Option<Extreme>| match (extreme, found.cache.cached) {
            (None, _) => Err(NotJudged::NotMeasured),
            (Some(_), Cached::Yes) => Err(NotJudged::Cached),
            (Some(_), Cached::Zeros) => Err(NotJudged::Zeros),
            (Some(extreme), _) => Ok(extreme.point.clone()),
        };
        match self.figure {
            Figure::Iops => Ok(of(&found.maximum_iops)?.iops),
            Figure::MbPerS => Ok(of(&found.maximum_mb_per_s)?.mb_per_s),
            Figure::Read(_) if found.write_percent > 0 => Err(NotJudged::WithWrites),
            Figure::Read(statistic) => {
                let point = of(&found.minimum_latency)?;
                Ok(statistic.of(point.mean_us, point.p50_us, point.p99_us, point.max_us))
            }
            Figure::Flush(by, statistic) => {
                let is_trusted = |of: &Honesty| !matches!(of.trust, Trust::Ignored | Trust::Memory);
                let of_each = found
                    .flushes
                    .iter()
                    .filter(|flushed| flushed.by == by && flushed.writers == 1)
                    .map(|one| statistic.of(one.mean_us, one.p50_us, one.p99_us, one.max_us));
                // The slowest target counts.
                let slowest = of_each.max_by(f64::total_cmp);
                let slowest = slowest.ok_or(NotJudged::NotMeasured)?;
                match found.honesty.iter().all(is_trusted) {
                    true => Ok(slowest),
                    false => Err(NotJudged::FlushesIgnored),
                }
            }
        }
    }
}

impl Statistic {
    fn of(self, mean: f64, p50: f64, p99: f64, max: f64) -> f64 {
        match self {
            Statistic::Mean => mean,
            Statistic::P50 => p50,
            Statistic::P99 => p99,
            Statistic::Max => max,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::cloud::Bought;
    use crate::figures::Flushed;
    use crate::result::{CacheFinding, PathCurve};
    use spindle_io::real::{Caching, Method};

    /// A calibration of flushes alone.
    pub(crate) fn found(p99_us: f64) -> Calibration {
        Calibration {
            format: 1,
            targets: Vec::new(),
            write_percent: 0,
            took_s: 0.0,
            max_latency_us: 0.0,
            maximum_iops: None,
            maximum_mb_per_s: None,
            minimum_latency: None,
            held: None,
            commits: Vec::new(),
            flushes: vec![Flushed {
                target: String::new(),
                by: DurableBy::Fdatasync,
                writers: 1,
                flushes_per_s: 1.0,
                mean_us: 1.0,
                p50_us: 1.0,
                p99_us,
                max_us: 1.0,
                is_steady: true,
                flushes: 1,
            }],
            honesty: Vec::new(),
            needs: Vec::new(),
            cache: CacheFinding {
                cached: Cached::NotSeen,
                because: String::new(),
                device: None,
                repeat_ratio: None,
                zero_share: None,
                resident_share: None,
                coverage: None,
            },
            curves: Vec::new(),
            at_rates: Vec::new(),
            matrix: None,
            cloud: None,
            bought: Bought::default(),
            against: None,
            notes: Vec::new(),
        }
    }

    #[test]
    fn a_need_is_met_missed_or_not_known() {
        let need: Need = "fdatasync p99 < 10ms".parse().unwrap();
        assert_eq!(need.judge(&found(9_999.0)).answer, DemandAnswer::Met);
        assert_eq!(need.judge(&found(10_001.0)).answer, DemandAnswer::Missed);
        let mut ignored = found(9_999.0);
        ignored.honesty.push(Honesty {
            target: String::new(),
            trust: Trust::Ignored,
            because: String::new(),
            beneath: Vec::new(),
            flushes: 1,
            counted_by_disks: None,
            control: None,
            control_because: String::new(),
        });
        let judged = need.judge(&ignored);
        assert_eq!(judged.answer, DemandAnswer::Unknown);
        assert_eq!(judged.unknown_because, Some(NotJudged::FlushesIgnored));
        let iops: Need = "iops > 5000".parse().unwrap();
        let judged = iops.judge(&found(1.0));
        assert_eq!(judged.answer, DemandAnswer::Unknown);
        assert_eq!(judged.unknown_because, Some(NotJudged::NotMeasured));
    }

    #[test]
    fn a_search_that_time_ended_misses_nothing_that_it_might_have_found() {
        let mut of_search = found(1.0);
        of_search.maximum_iops = Some(Extreme {
            method: Method::Sync,
            caching: Caching::Direct,
            point: crate::figures::Point {
                depth: 1,
                iops: 4_000.0,
                mb_per_s: 32.0,
                mean_us: 250.0,
                p50_us: 250.0,
                p99_us: 300.0,
                max_us: 400.0,
                is_steady: true,
                measured_s: 1.0,
                requests: 4_000,
                writes: None,
                histogram: Vec::new(),
            },
            beside: 0,
            is_confirmed: true,
        });
        let curve = |cut_short| PathCurve {
            method: Method::Sync,
            caching: Caching::Direct,
            what: What::SmallRandom,
            points: Vec::new(),
            note: None,
            cut_short,
        };
        let need = |text: &str| text.parse::<Need>().unwrap();
        of_search.curves = vec![curve(None)];
        assert_eq!(
            need("iops > 5000").judge(&of_search).answer,
            DemandAnswer::Missed
        );
        of_search.curves = vec![curve(Some(CutShort::Time))];
        let judged = need("iops > 5000").judge(&of_search);
        assert_eq!(judged.answer, DemandAnswer::Unknown);
        assert_eq!(judged.unknown_because, Some(NotJudged::OutOfTime));
        assert_eq!(
            need("iops > 3000").judge(&of_search).answer,
            DemandAnswer::Met
        );
        assert_eq!(
            need("iops < 3000").judge(&of_search).answer,
            DemandAnswer::Missed
        );
    }

    #[test]
    fn a_need_that_nothing_measured_can_answer_is_known_before() {
        let all = ToBeMeasured {
            only_flushes: false,
            write_percent: 0,
            has_flushes: true,
            has_small: true,
            has_large: true,
        };
        let in_vain = |measured: ToBeMeasured| {
            let needs = [
                "iops > 1",
                "mbps > 1",
                "read p99 < 1ms",
                "fdatasync p99 < 1ms",
            ];
            needs.map(|text| {
                let need: Need = text.parse().unwrap();
                need.is_in_vain(&measured).is_some()
            })
        };
        let with = |change: fn(&mut ToBeMeasured)| {
            let mut measured = all;
            change(&mut measured);
            in_vain(measured)
        };
        assert_eq!(in_vain(all), [false; 4]);
        assert_eq!(
            with(|all| all.only_flushes = true),
            [true, true, true, false]
        );
        assert_eq!(
            with(|all| all.write_percent = 50),
            [false, false, true, false]
        );
        assert_eq!(
            with(|all| all.has_flushes = false),
            [false, false, false, true]
        );
        assert_eq!(
            with(|all| all.has_small = false),
            [true, false, true, false]
        );
        assert_eq!(
            with(|all| all.has_large = false),
            [false, true, false, false]
        );
    }

    #[test]
    fn what_is_no_need_is_refused() {
        for text in [
            "",
            "fdatasync",
            "fdatasync < 10ms",
            "fdatasync p98 < 1ms",
            "iops > 5ms",
            "iops = 5",
            "read p99 < 10",
            "mbps > -1",
            "iops > inf",
            "write p99 < 1ms",
        ] {
            assert_eq!(text.parse::<Need>(), Err(NoNeed), "{text}");
        }
        assert_eq!("read mean<0.5 ms".parse::<Need>().unwrap().value, 500.0);
    }
}
