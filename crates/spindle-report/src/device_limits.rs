//! How much of what its device can do the database reached, in words: beside the limits that `spindle calibrate` found
//! of the same device.

use spindle_result::machine::{CalibratedLimits, DataPath};
use spindle_result::{Case, RunResult, SystemFigure};
use spindle_text::quantity::thousands;

use super::cost::fastest;

/// More than this of the limit was another kind of load: larger or smaller requests, or a cache.
const BEYOND: f64 = 1.05;

/// Bytes of the figures' MiB.
const MIB: f64 = 1_048_576.0;

/// What a device did beside what it can do.
struct Share {
    did: f64,
    limit: f64,
    did_words: String,
    limit_words: String,
}

impl Share {
    fn part(&self) -> f64 {
        self.did / self.limit
    }

    fn figures(&self) -> String {
        format!("{} of {}", self.did_words, self.limit_words)
    }

    fn beyond(&self) -> String {
        format!("{} (limit: {})", self.did_words, self.limit_words)
    }
}

/// Of the fastest case; `None` where its device was not calibrated, or did not tell what it did.
pub fn reached(result: &RunResult) -> Option<String> {
    let (case, _) = fastest(result)?;
    let layout = result.layout_of(case)?;
    let place = result.place_of(layout).or_else(|| only_device(result))?;
    let limits = place.calibrated.as_ref()?;
    let day = limits.at.get(..10)?;
    let device = place.device.as_ref();
    let device = device.map_or("its storage", |device| &device.name);
    let requests = of_requests(case, limits)?;
    let bytes = of_bytes(case, limits);
    let case = format!("{}, {}", case.id.layout, case.id.load);
    // The nearer limit is the one that holds it back.
    let shares = match bytes {
        Some(bytes) if bytes.part() > requests.part() => vec![bytes, requests],
        Some(bytes) => vec![requests, bytes],
        None => vec![requests],
    };
    let nearest = shares[0].part();
    let is_beyond = nearest > BEYOND;
    let said = match is_beyond {
        false => Share::figures,
        true => Share::beyond,
    };
    let figures: Vec<String> = shares.iter().map(said).collect();
    let figures = figures.join(", and ");
    Some(match is_beyond {
        false => format!(
            "The database reached {:.0} % of what {device} can do ({case}): {figures} that spindle calibrate found on {day}",
            nearest * 100.0
        ),
        true => format!(
            "The device {device} did more than the limit that spindle calibrate found on {day} ({case}): {figures}. Other programs \
             used it too, requests had other lengths, or it was held back when it was calibrated"
        ),
    })
}

fn of_requests(case: &Case, limits: &CalibratedLimits) -> Option<Share> {
    let limit = Some(limits.iops).filter(|iops| *iops > 0.0)?;
    let did = case.mean_of(&SystemFigure::DeviceReadsPerS)?
        + case.mean_of(&SystemFigure::DeviceWritesPerS)?;
    let kind = match limits.write_percent {
        0 => "reads of 8 KiB".to_owned(),
        percent => format!("requests of 8 KiB, {percent} % of them writes,"),
    };
    Some(Share {
        did,
        limit,
        did_words: format!("{} requests per second", thousands(did)),
        limit_words: format!("{} {kind}", thousands(limit)),
    })
}

fn of_bytes(case: &Case, limits: &CalibratedLimits) -> Option<Share> {
    let limit = limits.mb_per_s.filter(|mb| *mb > 0.0)?;
    let mib = case.mean_of(&SystemFigure::DeviceReadMibPerS)?
        + case.mean_of(&SystemFigure::DeviceWrittenMibPerS)?;
    let did = mib * MIB / 1e6;
    Some(Share {
        did,
        limit,
        did_words: format!("{} MB/s", thousands(did)),
        limit_words: format!("{} MB/s", thousands(limit)),
    })
}

/// Where all places of a run are on one device, any of them tells of it.
fn only_device(result: &RunResult) -> Option<&DataPath> {
    let places = &result.machine.as_ref()?.data_paths;
    let first = places.first()?;
    let number = |place: &DataPath| Some(place.device.as_ref()?.number.clone());
    let is_same = |place: &DataPath| number(place) == number(first);
    places.iter().all(is_same).then_some(first)
}

#[cfg(test)]
mod tests {
    use spindle_result::machine::{DiskFacts, Machine};
    use spindle_result::{SystemMean, build, sample};

    use super::*;

    fn limits(mb_per_s: Option<f64>) -> CalibratedLimits {
        CalibratedLimits {
            at: "2026-11-24T03:00:00Z".to_owned(),
            iops: 10_000.0,
            mb_per_s,
            ..CalibratedLimits::default()
        }
    }

    fn place(path: &str, number: &str, calibrated: Option<CalibratedLimits>) -> DataPath {
        DataPath {
            path: path.to_owned(),
            device: Some(DiskFacts {
                number: number.to_owned(),
                name: "sda".to_owned(),
                ..DiskFacts::default()
            }),
            calibrated,
            ..DataPath::default()
        }
    }

    fn result(reads_per_s: f64, calibrated: Option<CalibratedLimits>) -> RunResult {
        let mut result = build(&sample::record(&[("direct", &[100.0, 100.0])])).unwrap();
        let path = result.layouts[0].path.clone();
        on_places(&mut result, vec![place(&path, "8:0", calibrated)]);
        let mean = |name, mean| SystemMean {
            name,
            mean,
            max: mean,
        };
        result.cases[0].system = vec![
            mean(SystemFigure::DeviceReadsPerS, reads_per_s),
            mean(SystemFigure::DeviceWritesPerS, 100.0),
        ];
        result
    }

    fn on_places(result: &mut RunResult, data_paths: Vec<DataPath>) {
        result.machine = Some(Machine {
            data_paths,
            ..Machine::default()
        });
    }

    #[test]
    fn the_database_is_set_beside_its_device() {
        let told = reached(&result(6_000.0, Some(limits(None)))).unwrap();
        assert_eq!(
            told,
            "The database reached 61 % of what sda can do (direct, 8 clients): 6,100 requests per second of 10,000 reads of \
             8 KiB that spindle calibrate found on 2026-11-24"
        );
        let told = reached(&result(20_000.0, Some(limits(None)))).unwrap();
        assert!(told.contains("did more than the limit"), "{told}");
        assert_eq!(reached(&result(6_000.0, None)), None);
    }

    #[test]
    fn the_nearer_limit_is_told_first() {
        let with_bytes = |mb_per_s: f64| {
            let mut result = result(1_900.0, Some(limits(Some(mb_per_s))));
            let mean = |name| SystemMean {
                name,
                mean: 40.0,
                max: 40.0,
            };
            let figures = [
                SystemFigure::DeviceReadMibPerS,
                SystemFigure::DeviceWrittenMibPerS,
            ];
            result.cases[0].system.extend(figures.map(mean));
            reached(&result).unwrap()
        };
        assert_eq!(
            with_bytes(100.0),
            "The database reached 84 % of what sda can do (direct, 8 clients): 84 MB/s of 100 MB/s, and 2,000 requests per \
             second of 10,000 reads of 8 KiB that spindle calibrate found on 2026-11-24"
        );
        let told = with_bytes(1_000.0);
        assert!(
            told.contains("reached 20 %") && told.contains("84 MB/s of 1,000"),
            "{told}"
        );
    }

    #[test]
    fn a_path_written_otherwise_is_on_the_only_device() {
        let mut result = result(6_000.0, None);
        let elsewhere = place("/elsewhere", "8:0", Some(limits(None)));
        on_places(&mut result, vec![elsewhere.clone()]);
        assert!(reached(&result).is_some());
        on_places(&mut result, vec![elsewhere, place("/b", "8:16", None)]);
        assert_eq!(reached(&result), None);
    }
}
