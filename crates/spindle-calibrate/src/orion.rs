//! ORION's run types: which loads of small and large reads are measured, by its own knobs and their defaults (Oracle
//! Database Performance Tuning Guide 11.2, 8.4 "I/O Calibration with the Oracle Orion Calibration Tool"). A load is a
//! number of small requests and a number of large ones, or of streams of these, under way together.

use std::time::Duration;

use spindle_text::words;

use crate::error::CalibrateError;

/// Small requests go up to this many for each disk, and large ones or streams up to this many.
const SMALL_PER_DISK: u32 = 5;
const LARGE_PER_DISK: u32 = 2;
/// Levels of each at most; between them is equal room.
const LEVELS_MAX: u32 = 12;

words! {
    /// A run type.
    pub enum Run {
        /// Small random reads alone and large random reads alone, at rising load.
        Simple = "simple",
        /// The same, and every combination of them.
        Normal = "normal",
        /// As the knobs say.
        Advanced = "advanced",
        /// Small random reads alone.
        Oltp = "oltp",
        /// Large random reads alone.
        Dss = "dss",
    }
}

words! {
    /// Which combinations of small and large load are measured.
    pub enum OrionMatrix {
        /// Each alone.
        Basic = "basic",
        /// Every combination.
        Detailed = "detailed",
        /// One: `num_small` with `num_large`.
        Point = "point",
        /// Rising large load beside `num_small`.
        Col = "col",
        /// Rising small load beside `num_large`.
        Row = "row",
        /// `num_small` alone, `num_large` alone, and both.
        Max = "max",
    }
}

words! {
    /// Where large requests lie.
    pub enum LargeType {
        /// Anywhere.
        Rand = "rand",
        /// One after the other, in streams.
        Seq = "seq",
    }
}

impl LargeType {
    /// Where the requests lie.
    pub fn in_words(self) -> &'static str {
        match self {
            LargeType::Rand => "at random",
            LargeType::Seq => "in streams",
        }
    }
}

/// What is asked for, with ORION's names.
#[derive(Debug, Clone, PartialEq)]
pub struct Orion {
    /// The run type.
    pub run: Run,
    /// Disks beneath, which decide how high the load rises.
    pub num_disks: u32,
    /// Length of small requests, bytes.
    pub size_small_bytes: u64,
    /// Length of large requests, bytes.
    pub size_large_bytes: u64,
    /// Where large requests lie.
    pub large_type: LargeType,
    /// Requests under way for each stream of large ones.
    pub num_stream_io: u32,
    /// Bytes that are read at random before each point, to replace what a cache of the storage holds.
    pub cache_size_bytes: u64,
    /// How long each point lasts.
    pub duration: Duration,
    /// Which combinations.
    pub matrix: OrionMatrix,
    /// Small requests, where the matrix has one number of them.
    pub num_small: Option<u32>,
    /// Large requests or streams, where the matrix has one number of them.
    pub num_large: Option<u32>,
}

impl Orion {
    /// The loads in the order in which they are measured: small requests and large ones or streams.
    ///
    /// # Errors
    /// [`CalibrateError::Settings`]: the matrix needs a number that is missing, or takes none.
    pub fn loads(&self) -> Result<Vec<(u32, u32)>, CalibrateError> {
        let matrix = match self.run {
            Run::Simple => OrionMatrix::Basic,
            Run::Normal => OrionMatrix::Detailed,
            Run::Oltp => OrionMatrix::Row,
            Run::Dss => OrionMatrix::Col,
            Run::Advanced => self.matrix,
        };
        let small = levels(self.num_disks * SMALL_PER_DISK);
        let large = levels(self.num_disks * LARGE_PER_DISK);
        let alone = |small: &[u32], large: &[u32]| -> Vec<(u32, u32)> {
            let smalls = small.iter().map(|small| (*small, 0));
            smalls
                .chain(large.iter().map(|large| (0, *large)))
                .collect()
        };
        let from_zero = |levels: &[u32]| [&[0], levels].concat();
        let (needs_small, needs_large) = match (self.run, matrix) {
            (Run::Advanced, OrionMatrix::Point | OrionMatrix::Max) => (true, true),
            (Run::Advanced, OrionMatrix::Col) => (true, false),
            (Run::Advanced, OrionMatrix::Row) => (false, true),
            _ => (false, false),
        };
        let num_small = number("--num-small", matrix, self.num_small, needs_small)?;
        let num_large = number("--num-large", matrix, self.num_large, needs_large)?;
        let loads = match matrix {
            OrionMatrix::Basic => alone(&small, &large),
            OrionMatrix::Detailed => {
                let rows = from_zero(&large).into_iter();
                let row = |large| {
                    from_zero(&small)
                        .into_iter()
                        .map(move |small| (small, large))
                };
                rows.flat_map(row).collect()
            }
            OrionMatrix::Point => vec![(num_small, num_large)],
            OrionMatrix::Col => from_zero(&large)
                .into_iter()
                .map(|large| (num_small, large))
                .collect(),
            OrionMatrix::Row => from_zero(&small)
                .into_iter()
                .map(|small| (small, num_large))
                .collect(),
            OrionMatrix::Max => vec![(num_small, 0), (0, num_large), (num_small, num_large)],
        };
        let loads: Vec<_> = loads.into_iter().filter(|load| *load != (0, 0)).collect();
        if loads.is_empty() {
            return Err(CalibrateError::Settings(
                "--num-small and --num-large are 0: there is nothing to measure".to_owned(),
            ));
        }
        Ok(loads)
    }
}

/// A number that the matrix needs, and only then.
fn number(
    name: &str,
    matrix: OrionMatrix,
    given: Option<u32>,
    is_needed: bool,
) -> Result<u32, CalibrateError> {
    match (given, is_needed) {
        (Some(number), true) => Ok(number),
        (None, false) => Ok(0),
        (None, true) => Err(CalibrateError::Settings(format!(
            "--matrix {matrix} needs {name}"
        ))),
        (Some(_), false) => Err(CalibrateError::Settings(format!(
            "{name} has no meaning here: --run advanced takes it with --matrix point, max and {}",
            if name == "--num-small" { "col" } else { "row" }
        ))),
    }
}

/// Rising load up to `most`.
fn levels(most: u32) -> Vec<u32> {
    let count = most.min(LEVELS_MAX);
    (1..=count).map(|level| level * most / count).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What ORION does when it is told nothing but the run type.
    pub(crate) fn of_run(run: Run) -> Orion {
        Orion {
            run,
            num_disks: 1,
            size_small_bytes: 8 << 10,
            size_large_bytes: 1 << 20,
            large_type: LargeType::Rand,
            num_stream_io: 4,
            cache_size_bytes: 0,
            duration: Duration::from_secs(60),
            matrix: OrionMatrix::Basic,
            num_small: None,
            num_large: None,
        }
    }

    #[test]
    fn run_types_are_shapes_of_the_matrix() {
        let loads = |run| of_run(run).loads().unwrap();
        let small = [(1, 0), (2, 0), (3, 0), (4, 0), (5, 0)];
        let large = [(0, 1), (0, 2)];
        assert_eq!(loads(Run::Simple), [&small[..], &large].concat());
        assert_eq!(loads(Run::Normal).len(), 6 * 3 - 1);
        assert_eq!(loads(Run::Oltp), small);
        assert_eq!(loads(Run::Dss), large);
    }

    #[test]
    fn many_disks_do_not_make_many_levels() {
        let mut orion = of_run(Run::Oltp);
        orion.num_disks = 24;
        let loads = orion.loads().unwrap();
        assert_eq!((loads.len(), loads[0], loads[11]), (12, (10, 0), (120, 0)));
    }

    #[test]
    fn the_knobs_of_advanced_are_needed_or_refused() {
        let asked = |matrix, num_small, num_large| {
            let orion = Orion {
                matrix,
                num_small,
                num_large,
                ..of_run(Run::Advanced)
            };
            orion.loads().ok()
        };
        assert_eq!(
            asked(OrionMatrix::Point, Some(3), Some(2)),
            Some(vec![(3, 2)])
        );
        assert_eq!(asked(OrionMatrix::Point, Some(3), None), None);
        assert_eq!(asked(OrionMatrix::Point, Some(0), Some(0)), None);
        assert_eq!(
            asked(OrionMatrix::Col, Some(3), None),
            Some(vec![(3, 0), (3, 1), (3, 2)])
        );
        assert_eq!(asked(OrionMatrix::Col, Some(3), Some(1)), None);
        assert_eq!(
            asked(OrionMatrix::Max, Some(4), Some(2)),
            Some(vec![(4, 0), (0, 2), (4, 2)])
        );
        assert_eq!(asked(OrionMatrix::Basic, Some(3), None), None);
    }
}
