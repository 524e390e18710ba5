//! The `placement` table of a layout: which kinds of files lie elsewhere than on the layout itself. On another layout,
//! by its name; or on some of its own devices, where it is raw.

use serde::{Deserialize, Serialize};
use spindle_layout::spec::LayoutKind;
use spindle_text::file_kind::FileKind;
use spindle_text::section::{Key, Keys};
use spindle_text::word::Word;

use super::Layout;
use super::made::SAY_WHAT_IS_MADE;
use crate::reader::{Item, Reader};

const ALLOWED: &str =
    "the name of another layout, or a list of devices of this one, as they are written in devices";

/// Where files of one kind lie instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacedOn {
    /// On the layout of this name.
    Layout(String),
    /// On these devices of this layout, as they are written in `devices`.
    Devices(Vec<String>),
}

/// Which kinds of files lie elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlacementSpec {
    /// The control file.
    pub control: Option<PlacedOn>,
    /// Redo log files.
    pub redo: Option<PlacedOn>,
    /// The undo datafile.
    pub undo: Option<PlacedOn>,
    /// Datafiles of tables.
    pub data: Option<PlacedOn>,
    /// Datafiles of indexes. Those of the embedded database lie with its tables.
    pub index: Option<PlacedOn>,
    /// Temporary files.
    pub temp: Option<PlacedOn>,
}

/// The kinds of files that may lie elsewhere, for the reference.
pub(crate) fn note_kinds<K: Keys>(keys: &mut K) {
    const ELSEWHERE: &str = "the name of another layout, or a list of this layout's devices, as they are written in `devices`";
    for (kind, default, says) in [
        (
            FileKind::Control,
            "the layout itself",
            "where the control file lies; with MariaDB on raw devices, all but datafiles and redo; with SQLite there or in \
             a disk group, all but the database file",
        ),
        (
            FileKind::Redo,
            "the layout itself, or `redo_path`",
            "where the redo log files lie",
        ),
        (
            FileKind::Undo,
            "the layout itself",
            "where the undo datafile lies",
        ),
        (
            FileKind::Data,
            "the layout itself",
            "where the datafiles of tables lie",
        ),
        (
            FileKind::Index,
            "none",
            "where the indexes of other databases lie; those of the embedded one lie with its tables",
        ),
        (
            FileKind::Temp,
            "where `data` lies",
            "where temporary files lie; the embedded database has some for `dss`, `tpch` and `tpcd`",
        ),
    ] {
        let name = kind.as_str();
        keys.noted(Key { name, says }, default, ELSEWHERE);
    }
}

impl PlacementSpec {
    pub(super) fn read(reader: &mut Reader<'_>) -> PlacementSpec {
        let mut table = reader.section("placement");
        let placement = PlacementSpec::read_table(&mut table);
        table.finish();
        placement
    }

    pub(super) fn read_table(table: &mut Reader<'_>) -> PlacementSpec {
        note_kinds(table);
        PlacementSpec {
            control: placed_on(table, FileKind::Control),
            redo: placed_on(table, FileKind::Redo),
            undo: placed_on(table, FileKind::Undo),
            data: placed_on(table, FileKind::Data),
            index: placed_on(table, FileKind::Index),
            temp: placed_on(table, FileKind::Temp),
        }
    }

    /// Where files of a kind lie, if that is elsewhere.
    pub fn of(&self, kind: FileKind) -> Option<&PlacedOn> {
        let on = match kind {
            FileKind::Control => &self.control,
            FileKind::Redo => &self.redo,
            FileKind::Undo => &self.undo,
            FileKind::Data => &self.data,
            FileKind::Index => &self.index,
            FileKind::Temp => &self.temp,
        };
        on.as_ref()
    }

    /// Each kind that lies elsewhere.
    pub fn kinds(&self) -> impl Iterator<Item = (FileKind, &PlacedOn)> {
        let kinds = FileKind::ALLOWED.iter();
        kinds.filter_map(|(_, kind)| Some((*kind, self.of(*kind)?)))
    }

    /// Names of the layouts that files lie on.
    pub fn layouts(&self) -> impl Iterator<Item = &str> {
        self.kinds().filter_map(|(_, on)| match on {
            PlacedOn::Layout(name) => Some(name.as_str()),
            PlacedOn::Devices(_) => None,
        })
    }

    /// Devices of the layout itself that are set aside for some kind.
    pub fn devices(&self) -> impl Iterator<Item = &str> {
        self.kinds().flat_map(|(_, on)| match on {
            PlacedOn::Layout(_) => [].iter().map(String::as_str),
            PlacedOn::Devices(devices) => devices.iter().map(String::as_str),
        })
    }
}

impl Layout {
    /// Looks whether files can lie where they are placed, among all `layouts`, which `readers` have read; this is the
    /// one at `index`.
    pub(crate) fn check_placement(index: usize, readers: &[Reader<'_>], layouts: &[Layout]) {
        let (layout, reader) = (&layouts[index], &readers[index]);
        let of_all = |key: &'static str| readers.iter().flat_map(move |other| other.keys([key]));
        for name in layout.placement.layouts() {
            if name == layout.name || !layouts.iter().any(|other| other.name == name) {
                let refused = reader.conflict(
                    &["placement"],
                    format!("files are placed on {name:?}, which is no other layout"),
                    "no other layout has this name",
                    "add a [[layout]] of that name; with candidate = false it holds files and is not measured",
                );
                reader.note(refused.given(of_all("name")));
            }
        }
        layout.check_delays(reader, of_all("delay").chain(of_all("name")), layouts);
        layout.check_devices(reader);
        let mut placements = layouts.iter().map(|other| &other.placement);
        let holds_files = placements.any(|other| other.layouts().any(|name| name == layout.name));
        if !layout.candidate && !holds_files {
            let refused = reader.conflict(
                &["candidate"],
                format!(
                    "layout {:?} is not measured, and holds no files",
                    layout.name
                ),
                "no placement names it",
                "name it in the placement of another layout, or leave candidate out",
            );
            reader.note(refused.given(of_all("placement").chain(reader.keys(["name"]))));
        }
    }

    fn check_delays(
        &self,
        reader: &Reader<'_>,
        given: impl Iterator<Item = String>,
        layouts: &[Layout],
    ) {
        // The embedded database delays them by the access path of the datafiles; and all disks of disk groups alike.
        let lies_on = |on: &Option<PlacedOn>| match on {
            Some(PlacedOn::Layout(name)) => layouts.iter().find(|other| other.name == *name),
            _ => Some(self),
        };
        let delay_on = |on| lies_on(on).and_then(|layout| layout.delay);
        let is_in_group = |on| {
            let made = lies_on(on).and_then(|layout| layout.made.as_ref());
            made.is_some_and(|made| made.disk_group.is_some())
        };
        // Where files lie on no layout, that is what is wrong.
        let is_known = |on| lies_on(on).is_some();
        let placement = &self.placement;
        let temp = placement.temp.clone().or_else(|| placement.data.clone());
        let refused = [
            (FileKind::Undo, &placement.undo, true),
            (FileKind::Control, &placement.control, true),
            (FileKind::Temp, &temp, true),
            (
                FileKind::Redo,
                &placement.redo,
                is_in_group(&placement.redo),
            ),
        ]
        .into_iter()
        .filter(|(_, on, with_data)| *with_data && is_known(on) && is_known(&placement.data))
        .find(|(_, on, _)| delay_on(on) != delay_on(&placement.data));
        if let Some((kind, _, _)) = refused {
            let refused = reader.conflict(
                &["placement"],
                format!("{kind} lies where the delay is not that of the datafiles"),
                "it is delayed as the datafiles are",
                "place it with the datafiles, or give both layouts the same delay",
            );
            reader.note(refused.given(given));
        }
    }

    fn check_devices(&self, reader: &Reader<'_>) {
        let refuse = |title: String, label: &str, help: &str| {
            let refused = reader.conflict(&["placement"], title, label, help);
            reader.note(refused.given(reader.keys(SAY_WHAT_IS_MADE)));
        };
        let made = self.made.as_ref();
        let is_own = |name: &str| {
            let devices = made.into_iter().flat_map(|made| &made.spec.devices);
            devices
                .into_iter()
                .any(|device| device.path().to_str() == Some(name))
        };
        let is_plain_raw = made
            .is_some_and(|made| made.spec.kind == LayoutKind::Raw && made.spec.volume.is_none());
        for name in self.placement.devices() {
            if !is_plain_raw {
                refuse(
                    format!("files are placed on the device {name:?} of a layout that is not raw"),
                    "only the devices of a raw layout can be told apart",
                    "place them on another layout, by its name",
                );
            } else if !is_own(name) {
                refuse(
                    format!("files are placed on {name:?}, which is not one of `devices`"),
                    "none of this layout's devices",
                    "write the device as it is written in devices",
                );
            }
        }
    }
}

fn placed_on(table: &mut Reader<'_>, kind: FileKind) -> Option<PlacedOn> {
    let kind = kind.as_str();
    if !table.is_list(kind) {
        let name = table.text(kind, ALLOWED);
        return name.map(|name| PlacedOn::Layout(name.to_owned()));
    }
    let mut devices = Vec::new();
    for item in table.items(kind, ALLOWED) {
        match item {
            Item::Text(device) => devices.push(device.to_owned()),
            Item::Table(_) => table.refuse_meaning(
                kind,
                format!("placement.{kind} says no place"),
                format!("allowed: {ALLOWED}"),
                format!("write {kind} = \"NAME OF A LAYOUT\""),
            ),
        }
    }
    Some(PlacedOn::Devices(devices))
}
