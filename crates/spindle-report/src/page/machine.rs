//! The machine as people tell each other of one: a row for each part of it, a table of the places where data was, and
//! everything that was looked at folded up below.

use maud::{Markup, html};
use serde_json::Value;

use super::parts::{facts_table, scrolling};
use crate::facts::facts;
use crate::sentences::counted;
use spindle_result::RunResult;
use spindle_text::quantity::size;

pub(super) fn section(result: &RunResult) -> Markup {
    let machine = &result.machine;
    let parts = parts(machine);
    let places: Vec<[String; 5]> = items(&machine["data_paths"]).map(place).collect();
    html! {
        h3 id="machine" { "Machine" }
        @if !parts.is_empty() {
            (scrolling("Machine", html! {
                table.parts { tbody { @for (name, value) in &parts {
                    tr { th scope="row" { (name) } td.words { (value) } }
                } } }
            }))
        }
        @if !places.is_empty() {
            (scrolling("Where the data was", html! {
                table.places {
                    thead { tr { @for title in ["data in", "file system", "device", "queue", "write cache"] {
                        th scope="col" { (title) }
                    } } }
                    tbody { @for [path, cells @ ..] in &places { tr {
                        th scope="row" { (path) }
                        @for cell in cells { td.words { (cell) } }
                    } } }
                }
            }))
        }
        details.on-screen {
            summary { "Everything that is known of the machine" }
            (facts_table("Machine, every setting", facts(machine)))
        }
    }
}

/// What is known of the machine, each part in a few words.
fn parts(machine: &Value) -> Vec<(&'static str, String)> {
    let processor = &machine["processor"];
    let number = |value: &Value, what| Some(counted(value.as_u64()? as usize, what));
    let settings = &machine["settings"];
    let parts = [
        (
            "host",
            joined([text(&machine["host"]), text(&machine["distribution"])]),
        ),
        ("kernel", joined([text(&machine["kernel_release"])])),
        (
            "processor",
            joined([
                text(&processor["model"]),
                number(&processor["logical_processors"], "logical processor"),
                number(&processor["cores"], "core"),
                text(&processor["governor"]).map(|governor| format!("governor {governor}")),
            ]),
        ),
        (
            "memory",
            joined([
                bytes(&machine["memory_bytes"]),
                match machine["swap_bytes"].as_u64() {
                    Some(0) => Some("no swap".to_owned()),
                    _ => bytes(&machine["swap_bytes"]).map(|size| format!("swap {size}")),
                },
                text(&settings["transparent_huge_pages"])
                    .map(|pages| format!("transparent huge pages {pages}")),
            ]),
        ),
        ("limits of this program", limits(&machine["limits"])),
        (
            "virtual machine",
            virtualisation(&machine["virtualisation"]),
        ),
        ("page cache", write_back(settings)),
        (
            "load when the run began",
            load(&machine["load"]["averages"]),
        ),
        ("looked at", text(&machine["captured_at"])),
    ];
    let known = parts.into_iter();
    known
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn limits(limits: &Value) -> Option<String> {
    let processors = limits["cpu_processors"].as_f64();
    joined([
        bytes(&limits["memory_bytes"]).map(|size| format!("memory {size}")),
        processors.map(|processors| format!("{processors} processors")),
        text(&limits["cpuset"]).map(|set| format!("processors {set}")),
    ])
}

fn virtualisation(of: &Value) -> Option<String> {
    let is_virtual = of["hypervisor_flag"].as_bool()?;
    let product = text(&of["product"]).unwrap_or_else(|| "yes".to_owned());
    Some(if is_virtual { product } else { "no".to_owned() })
}

/// When the page cache is written back.
fn write_back(settings: &Value) -> Option<String> {
    let percent = |key: &str| Some(format!("{} %", settings[key].as_u64()?));
    joined([
        percent("vm_dirty_ratio_percent")
            .map(|share| format!("writers wait from {share} dirty on")),
        percent("vm_dirty_background_ratio_percent")
            .map(|share| format!("written back from {share} on")),
    ])
}

fn load(averages: &Value) -> Option<String> {
    let averages = items(averages).filter_map(Value::as_f64);
    let averages: Vec<String> = averages.map(|average| format!("{average:.1}")).collect();
    (!averages.is_empty()).then(|| averages.join(", "))
}

/// Path, file system, device, its queue, its write cache.
fn place(place: &Value) -> [String; 5] {
    let (files, device) = (&place["file_system"], &place["device"]);
    let kind = device["rotational"].as_bool().map(|turns| {
        let kind = if turns {
            "says it rotates"
        } else {
            "solid state"
        };
        kind.to_owned()
    });
    let read_ahead = device["read_ahead_kib"].as_u64();
    let cells = [
        text(&place["path"]),
        joined([
            text(&files["kind"]),
            text(&files["options"]),
            bytes(&files["free_bytes"]).map(|size| format!("{size} free")),
        ]),
        joined([
            text(&device["name"]),
            text(&device["model"]),
            bytes(&device["size_bytes"]),
            kind,
        ])
        .or_else(|| text(&place["device_unknown_because"])),
        joined([
            text(&device["scheduler"]),
            read_ahead.map(|kib| format!("read-ahead {kib} KiB")),
            device["nr_requests"]
                .as_u64()
                .map(|requests| format!("{requests} requests")),
        ]),
        text(&device["write_cache"]),
    ];
    cells.map(|cell| cell.unwrap_or_else(|| "unknown".to_owned()))
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// A text that says something.
fn text(value: &Value) -> Option<String> {
    let text = value.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

fn bytes(value: &Value) -> Option<String> {
    value.as_u64().map(size)
}

/// What is known, side by side; `None` when nothing is.
fn joined<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let known: Vec<String> = parts.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join(" · "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_machine_is_told_in_rows_and_what_is_unknown_has_none() {
        let machine = json!({
            "host": "db1", "distribution": "Debian 13", "processor": { "model": "EPYC", "cores": 1 },
            "memory_bytes": 25_276_510_208_u64, "swap_bytes": 0, "virtualisation": { "hypervisor_flag": false },
            "load": { "averages": [0.5, 1.25, 2.0] },
        });
        assert_eq!(
            parts(&machine),
            [
                ("host", "db1 · Debian 13".to_owned()),
                ("processor", "EPYC · 1 core".to_owned()),
                ("memory", "23.5 GiB · no swap".to_owned()),
                ("virtual machine", "no".to_owned()),
                ("load when the run began", "0.5, 1.2, 2.0".to_owned()),
            ]
        );
        assert_eq!(parts(&json!({})), []);
    }

    #[test]
    fn a_place_is_told_from_the_path_down_to_the_device() {
        let told = place(&json!({
            "path": "/srv", "file_system": { "kind": "xfs", "options": "rw" },
            "device": { "name": "nvme0n1", "rotational": false, "scheduler": "none", "read_ahead_kib": 128 },
        }));
        let wanted = [
            "/srv",
            "xfs · rw",
            "nvme0n1 · solid state",
            "none · read-ahead 128 KiB",
            "unknown",
        ];
        assert_eq!(told, wanted);
    }
}
