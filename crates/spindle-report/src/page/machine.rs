//! The machine as people tell each other of one: a row for each part of it, a table of the places where data was, and
//! everything that was looked at folded up below.

use maud::{Markup, html};

use super::parts::{facts_table, scrolling};
use crate::facts::facts_of_machine;
use crate::sentences::{counted, kind_of_device};
use spindle_result::RunResult;
use spindle_result::machine::{
    Busy, ControlGroupLimits, DataPath, Machine, MachineSettings, Virtualisation,
};
use spindle_text::quantity::size;

pub(super) fn section(result: &RunResult) -> Markup {
    let machine = result.machine.as_ref();
    let parts = machine.map_or_else(Vec::new, parts);
    let places = machine.iter().flat_map(|machine| &machine.data_paths);
    let places: Vec<[String; 5]> = places.map(place).collect();
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
            (facts_table("Machine, every setting", facts_of_machine(machine)))
        }
    }
}

/// What is known of the machine, each part in a few words.
fn parts(machine: &Machine) -> Vec<(&'static str, String)> {
    let processor = &machine.processor;
    let number = |number: Option<u32>, what| Some(counted(number? as usize, what));
    let settings = &machine.settings;
    let parts = [
        (
            "host",
            joined([text(&machine.host), text(&machine.distribution)]),
        ),
        ("Linux kernel", text(&machine.kernel_release)),
        (
            "processor",
            joined([
                text(&processor.model),
                number(processor.logical_processors, "logical processor"),
                number(processor.cores, "core"),
                told(&processor.governor).map(|governor| format!("governor {governor}")),
            ]),
        ),
        (
            "memory",
            joined([
                machine.memory_bytes.map(size),
                machine.swap_bytes.map(swap),
                told(&settings.transparent_huge_pages)
                    .map(|pages| format!("transparent huge pages {pages}")),
            ]),
        ),
        ("limits of this program", limits(&machine.limits)),
        ("virtual machine", virtualisation(&machine.virtualisation)),
        ("page cache", write_back(settings)),
        ("load when the run began", load(&machine.load)),
        ("looked at", text(&machine.captured_at)),
    ];
    let known = parts.into_iter();
    known
        .filter_map(|(name, value)| Some((name, value?)))
        .collect()
}

fn swap(bytes: u64) -> String {
    match bytes {
        0 => "no swap".to_owned(),
        bytes => format!("swap {}", size(bytes)),
    }
}

fn limits(limits: &ControlGroupLimits) -> Option<String> {
    let bytes = limits.memory_bytes.map(size);
    joined([
        bytes.map(|size| format!("memory {size}")),
        limits
            .cpu_processors
            .map(|processors| format!("{processors} processors")),
        told(&limits.cpuset).map(|set| format!("processors {set}")),
    ])
}

fn virtualisation(of: &Virtualisation) -> Option<String> {
    let is_virtual = of.hypervisor_flag?;
    let product = told(&of.product).unwrap_or_else(|| "yes".to_owned());
    Some(if is_virtual { product } else { "no".to_owned() })
}

/// When the page cache is written back.
fn write_back(settings: &MachineSettings) -> Option<String> {
    let wait = settings.vm_dirty_ratio_percent;
    let background = settings.vm_dirty_background_ratio_percent;
    joined([
        wait.map(|share| format!("writers wait from {share} % dirty on")),
        background.map(|share| format!("written back from {share} % on")),
    ])
}

fn load(load: &Busy) -> Option<String> {
    let averages = load.averages?.map(|average| format!("{average:.1}"));
    Some(averages.join(", "))
}

/// Path, file system, device, its queue, its write cache.
fn place(place: &DataPath) -> [String; 5] {
    let file_system = place.file_system.as_ref().and_then(|files| {
        let free = files.free_bytes.map(size);
        joined([
            text(&files.kind),
            text(&files.options),
            free.map(|size| format!("{size} free")),
        ])
    });
    let of_device = place.device.as_ref().map(|device| {
        let read_ahead = device.read_ahead_kib;
        let requests = device.nr_requests;
        let what = joined([
            text(&device.name),
            told(&device.model),
            device.size_bytes.map(size),
            device.rotational.map(kind_of_device),
        ]);
        let queue = joined([
            told(&device.scheduler),
            read_ahead.map(|kib| format!("read-ahead {kib} KiB")),
            requests.map(|requests| format!("{requests} requests")),
        ]);
        [what, queue, told(&device.write_cache)]
    });
    let [device, queue, write_cache] = of_device.unwrap_or_default();
    let cells = [
        text(&place.path),
        file_system,
        device.or_else(|| told(&place.device_unknown_because)),
        queue,
        write_cache,
    ];
    cells.map(|cell| cell.unwrap_or_else(|| "unknown".to_owned()))
}

/// A text that says something.
fn text(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// One that the system may not have told.
fn told(told: &Option<String>) -> Option<String> {
    text(told.as_ref()?)
}

/// What is known, side by side; `None` when nothing is.
fn joined<const N: usize>(parts: [Option<String>; N]) -> Option<String> {
    let known: Vec<String> = parts.into_iter().flatten().collect();
    (!known.is_empty()).then(|| known.join(" · "))
}

#[cfg(test)]
mod tests {
    use spindle_result::machine::{DiskFacts, FileSystem, Processor};

    use super::*;

    #[test]
    fn a_machine_is_told_in_rows_and_what_is_unknown_has_none() {
        let machine = Machine {
            host: "db1".to_owned(),
            distribution: "Debian 13".to_owned(),
            processor: Processor {
                model: "EPYC".to_owned(),
                cores: Some(1),
                ..Processor::default()
            },
            memory_bytes: Some(25_276_510_208),
            swap_bytes: Some(0),
            virtualisation: Virtualisation {
                hypervisor_flag: Some(false),
                product: None,
            },
            load: Busy {
                averages: Some([0.5, 1.25, 2.0]),
                ..Busy::default()
            },
            ..Machine::default()
        };
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
        assert_eq!(parts(&Machine::default()), []);
    }

    #[test]
    fn a_place_is_told_from_the_path_down_to_the_device() {
        let told = place(&DataPath {
            path: "/srv".to_owned(),
            file_system: Some(FileSystem {
                kind: "xfs".to_owned(),
                options: "rw".to_owned(),
                ..FileSystem::default()
            }),
            device: Some(DiskFacts {
                name: "nvme0n1".to_owned(),
                rotational: Some(false),
                scheduler: Some("none".to_owned()),
                read_ahead_kib: Some(128),
                ..DiskFacts::default()
            }),
            ..DataPath::default()
        });
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
