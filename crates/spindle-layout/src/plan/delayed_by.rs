//! What makes a layout slower when that was asked for: dm-delay beneath it where that can be, else the database itself.

use std::fmt;

use super::Facts;
use super::facts::DELAYING_TOOL;
use crate::spec::LayoutSpec;
use spindle_system::DeviceMapper;

/// What delays a layout's I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DelayedBy {
    /// dm-delay, beneath everything: file systems and their journals are slower, too.
    DeviceMapper,
    /// The embedded database, which delays its own I/O.
    Database {
        /// Why nothing beneath it can.
        why: &'static str,
    },
}

impl DelayedBy {
    pub(super) fn of(spec: &LayoutSpec, facts: &Facts) -> Option<DelayedBy> {
        let delay = spec.delay?;
        let hindrances = [
            (!facts.is_root, "dm-delay takes root"),
            (
                facts.device_mapper == DeviceMapper::Missing,
                "this kernel has no device-mapper",
            ),
            (
                !facts.has_dm_delay,
                "this kernel's device-mapper has no dm-delay (CONFIG_DM_DELAY)",
            ),
            (
                !facts.tools.contains(DELAYING_TOOL),
                "dmsetup is not installed",
            ),
            (
                !delay.is_in_milliseconds(),
                "dm-delay knows whole milliseconds only",
            ),
        ];
        let hindrance = hindrances.into_iter().find(|(is_so, _)| *is_so);
        Some(match hindrance {
            Some((_, why)) => DelayedBy::Database { why },
            None => DelayedBy::DeviceMapper,
        })
    }
}

impl fmt::Display for DelayedBy {
    /// `beneath the layout, by dm-delay`, in a sentence that begins with "delayed".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DelayedBy::DeviceMapper => f.write_str("beneath the layout, by dm-delay"),
            DelayedBy::Database { why } => write!(
                f,
                "in the database, its own I/O only and not the file system's: {why}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Delay, LayoutKind, Preparation};

    #[test]
    fn device_mapper_delays_where_it_can_else_the_database() {
        let mut spec = LayoutSpec {
            name: "slow".to_owned(),
            devices: Vec::new(),
            volume: None,
            kind: LayoutKind::Raw,
            share: None,
            erase: Vec::new(),
            preparation: Preparation::default(),
            delay: None,
        };
        let able = Facts {
            is_root: true,
            device_mapper: DeviceMapper::Loadable,
            has_dm_delay: true,
            tools: [DELAYING_TOOL.to_owned()].into(),
            ..Facts::default()
        };
        assert_eq!(DelayedBy::of(&spec, &able), None);
        let mut delay = Delay {
            read_us: 2000,
            write_us: 0,
            flush_us: 1000,
        };
        spec.delay = Some(delay);
        assert_eq!(DelayedBy::of(&spec, &able), Some(DelayedBy::DeviceMapper));
        let why = |spec: &LayoutSpec, facts: &Facts| match DelayedBy::of(spec, facts) {
            Some(DelayedBy::Database { why }) => why,
            other => panic!("{other:?}"),
        };
        let without = |change: fn(&mut Facts)| {
            let mut facts = able.clone();
            change(&mut facts);
            why(&spec, &facts)
        };
        assert!(without(|facts| facts.is_root = false).contains("root"));
        assert!(without(|facts| facts.device_mapper = DeviceMapper::Missing).contains("kernel"));
        assert!(without(|facts| facts.has_dm_delay = false).contains("CONFIG_DM_DELAY"));
        assert!(without(|facts| facts.tools.clear()).contains("dmsetup"));
        delay.read_us = 2500;
        spec.delay = Some(delay);
        assert!(why(&spec, &able).contains("milliseconds"));
    }
}
