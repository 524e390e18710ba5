//! What the system did while a trial was measured, sampled at equal steps. In the journal beside the trial, and in the
//! run's series; `result.json` holds means only.

use serde::{Deserialize, Serialize};

use super::words::open_words;

open_words! {
    /// A figure of the system, its unit last: those by which something is decided or drawn otherwise.
    SystemFigure:
    /// Reads that the devices of a layout did.
    DeviceReadsPerS => "device_reads_per_s",
    /// Writes that they did.
    DeviceWritesPerS => "device_writes_per_s",
    /// Flushes that they did.
    DeviceFlushesPerS => "device_flushes_per_s",
    /// What they read.
    DeviceReadMibPerS => "device_read_mib_per_s",
    /// What was written to them.
    DeviceWrittenMibPerS => "device_written_mib_per_s",
    /// Requests under way, on average.
    DeviceQueueRequests => "device_queue_requests",
    /// Time of a read from its issue to its completion.
    DeviceReadTimeUs => "device_read_time_us",
    /// Share of the time in which the busiest device had a request.
    DeviceUtilisationPercent => "device_utilisation_percent",
    /// Space of all segments of the embedded database.
    SegmentsMib => "segments_mib",
    /// Page cache of the whole machine.
    PageCacheMib => "page_cache_mib",
    /// Share of the blocks looked for that the buffer cache held.
    BufferCacheHitPercent => "buffer_cache_hit_percent",
    /// What the processes of the database read from storage.
    FetchedMibPerS => "fetched_mib_per_s",
    /// Checkpoints that ended.
    Checkpoints => "checkpoints",
    /// Writing threads that wait for the lock of a file.
    WritersWaitingForFileLock => "writers_waiting_for_file_lock",
    /// Share of the processors that a hypervisor gave to other guests.
    CpuStealPercent => "cpu_steal_percent",
    /// Share of the processors that other programs had.
    OtherProgramsCpuPercent => "other_programs_cpu_percent",
    /// Share of the time in which a limit on processor time held the database back.
    CpuThrottledPercent => "cpu_throttled_percent",
    /// What all of this costs, of one processor.
    SamplerCpuPercent => "sampler_cpu_percent",
}

/// Figures of the system sampled together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SystemSeries {
    /// Time that one sample covers, in milliseconds.
    pub interval_ms: u64,
    /// One column for each figure.
    pub columns: Vec<SystemColumn>,
}

impl SystemSeries {
    /// The samples of one figure; `None` when it was not sampled.
    pub fn column(&self, figure: &SystemFigure) -> Option<&[Option<f32>]> {
        let mut columns = self.columns.iter();
        columns
            .find(|column| column.name == *figure)
            .map(|column| column.values.as_slice())
    }
}

/// One figure over the measured time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemColumn {
    /// What it is.
    pub name: SystemFigure,
    /// A value for each sample, of four figures; `None` where it was not known. Written as one text, numbers separated
    /// by spaces and `-` where there is none: a run may have millions of them.
    #[serde(with = "compact")]
    pub values: Vec<Option<f32>>,
}

/// Numbers as one text.
mod compact {
    use std::fmt::Write;

    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Significant figures that are kept.
    const FIGURES: i32 = 4;

    pub(super) fn serialize<S: Serializer>(
        values: &[Option<f32>],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(6 * values.len());
        for value in values {
            let separator = if text.is_empty() { "" } else { " " };
            match value {
                Some(value) => write!(text, "{separator}{}", rounded(*value)),
                None => write!(text, "{separator}-"),
            }
            .expect("a string takes any text");
        }
        serializer.serialize_str(&text)
    }

    fn rounded(value: f32) -> f32 {
        if value == 0.0 || !value.is_finite() {
            return 0.0;
        }
        let digits = FIGURES - 1 - value.abs().log10().floor() as i32;
        let scale = 10f64.powi(digits);
        ((f64::from(value) * scale).round() / scale) as f32
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Option<f32>>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let value = |word: &str| match word {
            "-" => Ok(None),
            number => number.parse().map(Some).map_err(D::Error::custom),
        };
        text.split_ascii_whitespace().map(value).collect()
    }
}

/// The mean of one figure over the measured time of all trials of a case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SystemMean {
    /// As in [`SystemColumn`].
    pub name: SystemFigure,
    /// Mean of all samples.
    pub mean: f64,
    /// The greatest sample.
    pub max: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(values: &[Option<f32>]) -> String {
        let column = SystemColumn {
            name: "dirty_mib".into(),
            values: values.to_vec(),
        };
        serde_json::to_string(&column).expect("written")
    }

    #[test]
    fn values_are_one_text_of_four_figures() {
        let values = [
            Some(1.23456),
            None,
            Some(0.0),
            Some(98_765.0),
            Some(-0.000_123_46),
        ];
        let text = written(&values);
        assert_eq!(
            text,
            r#"{"name":"dirty_mib","values":"1.235 - 0 98770 -0.0001235"}"#
        );
        let column: SystemColumn = serde_json::from_str(&text).expect("read");
        assert_eq!(column.values[..2], [Some(1.235), None]);
        // What was read is written as it was.
        assert_eq!(serde_json::to_string(&column).expect("written"), text);
        assert_eq!(written(&[]), r#"{"name":"dirty_mib","values":""}"#);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        let text = r#"{"name":"dirty_mib","values":"1 two"}"#;
        assert!(serde_json::from_str::<SystemColumn>(text).is_err());
    }
}
