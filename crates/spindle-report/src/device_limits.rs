//! How much of what its device can do the database reached, in words: beside the limits that `spindle calibrate` found
//! of the same device.

use std::path::Path;

use serde_json::Value;
use spindle_result::{Case, RunResult, SystemFigure};
use spindle_text::quantity::thousands;

use super::cost::fastest;

/// More than this of the limit was another kind of load: larger or smaller requests, or a cache.
const BEYOND: f64 = 1.05;

/// Of the fastest case; `None` where its device was not calibrated, or did not tell what it did.
pub fn reached(result: &RunResult) -> Option<String> {
    let (case, _) = fastest(result)?;
    let layout = result.layout_of(case)?;
    let place = place_of(result, &layout.path)?;
    let limits = &place["calibrated"];
    let limit = limits["iops"].as_f64().filter(|iops| *iops > 0.0)?;
    let day = limits["at"].as_str()?.get(..10)?;
    let device = place["device"]["name"].as_str().unwrap_or("its storage");
    let per_s = requests_per_s(case)?;
    let share = per_s / limit;
    let of = match limits["write_percent"].as_u64().unwrap_or(0) {
        0 => "reads of 8 KiB".to_owned(),
        percent => format!("requests of 8 KiB, {percent} % of them writes"),
    };
    let case = format!("{}, {} clients", case.id.layout, case.id.clients);
    let figures = format!(
        "{} requests per second, where spindle calibrate found {} {of} on {day}",
        thousands(per_s),
        thousands(limit)
    );
    Some(match share > BEYOND {
        false => format!(
            "The database reached {:.0} % of what {device} can do ({case}): {figures}",
            share * 100.0
        ),
        true => format!(
            "The device {device} did more than was calibrated ({case}): {figures}; a database has requests of other lengths"
        ),
    })
}

fn requests_per_s(case: &Case) -> Option<f64> {
    let mean = |figure: SystemFigure| {
        let mut means = case.system.iter();
        Some(means.find(|mean| mean.name == figure)?.mean)
    };
    Some(mean(SystemFigure::DeviceReadsPerS)? + mean(SystemFigure::DeviceWritesPerS)?)
}

/// What the machine's record says of the place of a layout: that of its path, or where it is written otherwise, the
/// only device of all.
fn place_of<'a>(result: &'a RunResult, path: &str) -> Option<&'a Value> {
    let places = result.machine["data_paths"].as_array()?;
    let holds_it = |place: &&Value| {
        let at = place["path"].as_str();
        at.is_some_and(|at| Path::new(path).starts_with(at))
    };
    let first = places.first()?;
    let is_same = |place: &Value| place["device"]["number"] == first["device"]["number"];
    let only = places.iter().all(is_same).then_some(first);
    places.iter().find(holds_it).or(only)
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use spindle_result::{SystemMean, build, sample};

    use super::*;

    fn result(reads_per_s: f64, device: Value) -> RunResult {
        let mut result = build(&sample::record(&[("direct", &[100.0, 100.0])])).unwrap();
        let path = result.layouts[0].path.clone();
        result.machine = json!({ "data_paths": [{
            "path": path, "device": { "name": "sda" }, "calibrated": device,
        }] });
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

    #[test]
    fn the_database_is_set_beside_its_device() {
        let limits =
            || json!({ "at": "2026-11-24T03:00:00Z", "iops": 10_000.0, "write_percent": 0 });
        let told = reached(&result(6_000.0, limits())).unwrap();
        assert_eq!(
            told,
            "The database reached 61 % of what sda can do (direct, 8 clients): 6,100 requests per second, where spindle \
             calibrate found 10,000 reads of 8 KiB on 2026-11-24"
        );
        let told = reached(&result(20_000.0, limits())).unwrap();
        assert!(told.contains("did more than was calibrated"), "{told}");
        assert_eq!(reached(&result(6_000.0, Value::Null)), None);
    }

    #[test]
    fn a_path_written_otherwise_is_on_the_only_device() {
        let limits = json!({ "at": "2026-11-24T03:00:00Z", "iops": 10_000.0 });
        let mut result = result(6_000.0, limits);
        result.machine["data_paths"][0]["path"] = "/elsewhere".into();
        assert!(reached(&result).is_some());
        let other = json!({ "path": "/b", "device": { "number": "8:16" } });
        let places = result.machine["data_paths"].as_array_mut().unwrap();
        places.push(other);
        assert_eq!(reached(&result), None);
    }
}
