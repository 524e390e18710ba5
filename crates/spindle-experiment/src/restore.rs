//! How databases are put back before each trial: by copying changed blocks back, or, when a person asks for it, by
//! sharing blocks with an original, putting a volume back to a snapshot, or loading again on an existing server. One
//! way for all cases of an experiment; which layouts can have it shows here, as far as the experiment says what they
//! are.

use spindle_layout::file_system;
use spindle_layout::spec::LayoutKind;
use spindle_text::words;

use super::layout::{Layout, PlacedOn, SAY_WHAT_IS_MADE};
use super::reader::Reader;

words! {
    /// How databases are put back before each trial.
    pub enum RestoreBy {
        /// Changed blocks are copied back to where they lie; an existing server copies a loaded database, where it may.
        Copy = "copy",
        /// Files share the blocks of an original beside them; so they do in an existing server that can.
        Reflink = "reflink",
        /// Thin volumes are put back to a snapshot; on btrfs, files share the blocks of an original.
        Snapshot = "snapshot",
        /// The schema on an existing server is dropped, made and loaded again.
        Reload = "reload",
    }
}

/// What is done to put the database of one layout back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutBack {
    /// Changed blocks are copied.
    Copy,
    /// Its files share the blocks of originals again.
    Clones,
    /// The thin volumes beneath its files are put back.
    ThinVolumes,
}

/// What may be written where something else was asked for.
const ALLOWED: &str = "\"reflink\" takes filesystem = \"xfs\" or \"btrfs\"; \"snapshot\" takes volume = { thin = true } or \
                       filesystem = \"btrfs\"; \"reload\" takes url; \"copy\" puts back every layout";

impl RestoreBy {
    /// What a trial pays for not having copied before it; `None` when it pays nothing.
    pub fn price(self) -> Option<&'static str> {
        match self {
            RestoreBy::Copy | RestoreBy::Reload => None,
            RestoreBy::Reflink => Some(
                "restore = \"reflink\": blocks are shared with an original, so each first overwrite in a trial takes a new \
                 place on the device (copy on write). Trials pay for that; with restore = \"copy\" they do not",
            ),
            RestoreBy::Snapshot => Some(
                "restore = \"snapshot\": blocks are shared with a snapshot, so each first overwrite in a trial copies its \
                 chunk of the thin pool, or takes a new place on btrfs (copy on write). Trials pay for that; with \
                 restore = \"copy\" they do not",
            ),
        }
    }

    pub(super) fn of(self, layout: &Layout) -> PutBack {
        match self {
            RestoreBy::Copy | RestoreBy::Reload => PutBack::Copy,
            RestoreBy::Reflink => PutBack::Clones,
            RestoreBy::Snapshot if is_thin(layout) => PutBack::ThinVolumes,
            RestoreBy::Snapshot => PutBack::Clones,
        }
    }

    /// Why files on a directory of this type of file system cannot be put back so, if that is known.
    pub fn refusal_on(self, type_name: &str) -> Option<String> {
        match self {
            RestoreBy::Copy | RestoreBy::Reload => None,
            RestoreBy::Snapshot if !has_snapshots(type_name) => Some(format!(
                "{type_name} has no snapshots, and Spindle did not make the volume beneath it"
            )),
            RestoreBy::Reflink | RestoreBy::Snapshot => {
                let kind = file_system::kind(type_name);
                let cannot = kind.map_or(type_name == "tmpfs", |kind| !kind.shares_blocks);
                cannot.then(|| format!("files on {type_name} cannot share blocks"))
            }
        }
    }

    /// Refuses layouts that cannot be put back so, whatever the machine is.
    pub(super) fn check(self, plan: &Reader<'_>, readers: &[Reader<'_>], layouts: &[Layout]) {
        let candidates = readers.iter().zip(layouts);
        for (reader, layout) in candidates.filter(|(_, layout)| layout.candidate) {
            if let Some(reason) = self.refusal_of(layout, layouts) {
                let refused = plan.conflict(
                    &["restore"],
                    format!(
                        "layout {:?} cannot be restored by {self}: {reason}",
                        layout.name
                    ),
                    "one way for all cases of an experiment",
                    format!("{ALLOWED}; leave the layout out, or choose another restore"),
                );
                let of_database = reader.keys(["placement", "database.url"]);
                let given = reader.keys(SAY_WHAT_IS_MADE).into_iter().chain(of_database);
                plan.note(refused.given(given));
            }
        }
    }

    fn refusal_of(self, layout: &Layout, layouts: &[Layout]) -> Option<String> {
        match (self, layout.address().is_some()) {
            (RestoreBy::Copy, _) | (RestoreBy::Reflink | RestoreBy::Reload, true) => return None,
            (RestoreBy::Snapshot, true) => {
                return Some("the volumes of an existing server are not Spindle's".to_owned());
            }
            (RestoreBy::Reload, false) => {
                return Some("only the schema of an existing server is loaded again".to_owned());
            }
            (RestoreBy::Reflink | RestoreBy::Snapshot, false) => {}
        }
        let database_has_redo_path = layout.database.spec.redo_path().is_some();
        let put_back = self.of(layout);
        if put_back == PutBack::ThinVolumes
            && database_has_redo_path
            && layout.placement.redo.is_none()
        {
            return Some("its redo_path is a directory, and no volume of Spindle's".to_owned());
        }
        if put_back == PutBack::Clones && layout.io.method.identifies_files() {
            return Some("the first write would move files that ODM has preallocated".to_owned());
        }
        let placed = layout.placement.kinds().filter_map(|(_, on)| match on {
            PlacedOn::Layout(name) => layouts.iter().find(|other| other.name == *name),
            PlacedOn::Devices(_) => None,
        });
        std::iter::once(layout).chain(placed).find_map(|on| {
            let reason = self.refusal_beneath(on).or_else(|| {
                let is_mixed = self.of(on) != put_back;
                is_mixed
                    .then(|| "its files would lie partly on thin volumes, partly not".to_owned())
            })?;
            let is_itself = on.name == layout.name;
            Some(if is_itself {
                reason
            } else {
                format!("on {:?}: {reason}", on.name)
            })
        })
    }

    /// Why what lies on a layout that Spindle makes cannot be put back so.
    fn refusal_beneath(self, layout: &Layout) -> Option<String> {
        let spec = &layout.made.as_ref()?.spec;
        if self.of(layout) == PutBack::ThinVolumes {
            return None;
        }
        match &spec.kind {
            LayoutKind::Raw => Some("it is raw, and not on a thin volume".to_owned()),
            LayoutKind::DiskGroup => Some("a disk group shares no blocks".to_owned()),
            LayoutKind::FileSystem(of) => match self {
                RestoreBy::Snapshot if !has_snapshots(&of.type_name) => {
                    Some(format!("{} is not on a thin volume", of.type_name))
                }
                _ => self.refusal_on(&of.type_name),
            },
        }
    }
}

fn has_snapshots(type_name: &str) -> bool {
    file_system::kind(type_name).is_some_and(|kind| kind.has_snapshots)
}

fn is_thin(layout: &Layout) -> bool {
    let volume = layout
        .made
        .as_ref()
        .and_then(|made| made.spec.volume.as_ref());
    volume.is_some_and(|volume| volume.thin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Experiment;

    const FILE: &str = "devices = [{ file = \"a\", size = \"1GiB\" }]\n";

    fn parse(restore: &str, layouts: &[String]) -> Result<Experiment, String> {
        let named = (1..).zip(layouts).map(|(number, keys): (u32, &String)| {
            format!("[[layout]]\nname = \"{number}\"\n{keys}\n")
        });
        let text = format!(
            "[plan]\nrestore = \"{restore}\"\n{}",
            named.collect::<String>()
        );
        Experiment::parse("x.toml", &text, &[]).map_err(|error| error.to_string())
    }

    fn one(restore: &str, keys: &str) -> Result<PutBack, String> {
        parse(restore, &[keys.to_owned()]).map(|experiment| experiment.put_back(0))
    }

    #[test]
    fn what_can_be_put_back_so_is_and_the_rest_is_refused_with_what_is_allowed() {
        let made = |keys: &str| format!("{FILE}{keys}");
        let odm = "io = { method = \"odm\" }";
        for (restore, keys, expected) in [
            ("copy", made("raw = true"), Ok(PutBack::Copy)),
            ("reflink", String::new(), Ok(PutBack::Clones)),
            ("reflink", made("filesystem = \"xfs\""), Ok(PutBack::Clones)),
            (
                "reflink",
                made("filesystem = \"btrfs\""),
                Ok(PutBack::Clones),
            ),
            ("reflink", made("filesystem = \"ext4\""), Err("ext4")),
            ("reflink", made("raw = true"), Err("raw")),
            ("reflink", made("diskgroup = {}"), Err("disk group")),
            (
                "reflink",
                made(&format!("filesystem = \"xfs\"\n{odm}")),
                Err("ODM"),
            ),
            ("reflink", odm.to_owned(), Err("ODM")),
            ("reload", String::new(), Err("of an existing server")),
            (
                "snapshot",
                made("volume = { thin = true }\nraw = true"),
                Ok(PutBack::ThinVolumes),
            ),
            (
                "snapshot",
                made(&format!(
                    "volume = {{ thin = true }}\nfilesystem = \"ext4\"\n{odm}"
                )),
                Ok(PutBack::ThinVolumes),
            ),
            (
                "snapshot",
                made("filesystem = \"btrfs\""),
                Ok(PutBack::Clones),
            ),
            ("snapshot", made("filesystem = \"xfs\""), Err("thin volume")),
            (
                "snapshot",
                made("volume = {}\nfilesystem = \"xfs\""),
                Err("thin volume"),
            ),
            (
                "snapshot",
                made("volume = { thin = true }\nraw = true\ndatabase = { redo_path = \"/redo\" }"),
                Err("redo_path"),
            ),
        ] {
            match (one(restore, &keys), expected) {
                (Ok(put_back), Ok(expected)) => assert_eq!(put_back, expected, "{restore}: {keys}"),
                (Err(told), Err(word)) => assert!(told.contains(word), "{restore}: {keys}: {told}"),
                (found, _) => panic!("{restore}: {keys}: {found:?}"),
            }
        }
    }

    #[test]
    fn files_that_lie_elsewhere_count() {
        let raw = "devices = [{ file = \"b\", size = \"1GiB\" }]\nraw = true\ncandidate = false";
        let thin = "devices = [{ file = \"b\", size = \"1GiB\" }]\nvolume = { thin = true }\nraw = true\ncandidate = false";
        let on_second = |keys: &str| format!("{FILE}{keys}\nplacement = {{ redo = \"2\" }}");
        let told = |restore, first: &str, second: &str| {
            parse(restore, &[on_second(first), second.to_owned()]).unwrap_err()
        };
        assert!(told("reflink", "filesystem = \"xfs\"", raw).contains("on \"2\": it is raw"));
        let thin_first = "volume = { thin = true }\nfilesystem = \"xfs\"";
        assert!(told("snapshot", thin_first, raw).contains("on \"2\""));
        assert!(told("snapshot", "filesystem = \"btrfs\"", thin).contains("partly"));
        assert!(parse("snapshot", &[on_second(thin_first), thin.to_owned()]).is_ok());
    }

    #[test]
    fn a_price_is_named_where_there_is_one() {
        assert_eq!(RestoreBy::Copy.price(), None);
        for by in [RestoreBy::Reflink, RestoreBy::Snapshot] {
            let price = by.price().unwrap();
            assert!(price.contains(&format!("\"{by}\"")) && price.contains("first overwrite"));
        }
        assert!(RestoreBy::Reflink.refusal_on("ext4").is_some());
        assert!(RestoreBy::Snapshot.refusal_on("xfs").is_some());
        assert_eq!(RestoreBy::Snapshot.refusal_on("btrfs"), None);
    }
}
