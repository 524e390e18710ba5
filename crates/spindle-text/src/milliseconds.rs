//! Durations that code has in nanoseconds and documents have in milliseconds: `#[serde(with =
//! "spindle_text::milliseconds")]`.

use serde::{Deserialize, Deserializer, Serializer};

/// Nanoseconds of a millisecond.
pub const MILLISECOND_NS: u64 = 1_000_000;

/// Writes a duration in nanoseconds as whole milliseconds.
///
/// # Errors
/// Those of the format.
pub fn serialize<S: Serializer>(duration_ns: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_u64(duration_ns / MILLISECOND_NS)
}

/// Reads milliseconds as nanoseconds; more than 64 bits hold is the most that they hold.
///
/// # Errors
/// Those of the format.
pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    Ok(u64::deserialize(from)?.saturating_mul(MILLISECOND_NS))
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Kettle {
        #[serde(rename = "boils_ms", with = "crate::milliseconds")]
        boils_ns: u64,
    }

    #[test]
    fn nanoseconds_are_written_in_milliseconds_and_read_from_them() {
        let kettle = Kettle {
            boils_ns: 250_000_000,
        };
        let text = serde_json::to_string(&kettle).unwrap();
        assert_eq!(text, "{\"boils_ms\":250}");
        let read = |text: &str| serde_json::from_str::<Kettle>(text).unwrap().boils_ns;
        assert_eq!(read(&text), 250_000_000);
        assert_eq!(read(&format!("{{\"boils_ms\":{}}}", u64::MAX)), u64::MAX);
    }
}
