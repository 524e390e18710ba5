//! Load levels: what cases have in common that are compared with each other.

use std::fmt;

use serde::{Deserialize, Serialize};
use spindle_text::rate::Rate;

/// A load level of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LoadLevel {
    /// Sessions that work at the same time, 1 or more; where transactions come at a rate, at most this many.
    pub clients: u32,
    /// The rate at which transactions come, where the plan has several; `None`: the plan says the same for all cases,
    /// or this is the closed loop that rates are parts of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

impl LoadLevel {
    /// A load level of which nothing but the number of clients is to be told.
    pub fn of(clients: u32) -> LoadLevel {
        LoadLevel {
            clients,
            rate: None,
        }
    }

    /// As it stands in a column of clients: `8`, `8 at 200/s`.
    pub fn in_column(&self) -> String {
        match self.rate {
            None => self.clients.to_string(),
            Some(rate) => format!("{} at {rate}", self.clients),
        }
    }

    /// As it stands in names of files: `clients8`, `clients8-200ps`, `clients8-30pc`.
    pub fn in_file_names(&self) -> String {
        let clients = format!("clients{}", self.clients);
        match self.rate {
            None => clients,
            Some(rate) => format!("{clients}-{}", rate.in_file_names()),
        }
    }
}

/// One client.
impl Default for LoadLevel {
    fn default() -> LoadLevel {
        LoadLevel::of(1)
    }
}

impl From<u32> for LoadLevel {
    fn from(clients: u32) -> LoadLevel {
        LoadLevel::of(clients)
    }
}

/// `1 client`, `8 clients`, `8 clients at 200/s`.
impl fmt::Display for LoadLevel {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clients {
            1 => write!(text, "1 client")?,
            clients => write!(text, "{clients} clients")?,
        }
        match self.rate {
            None => Ok(()),
            Some(rate) => write!(text, " at {rate}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_level_without_a_rate_is_what_it_always_was() {
        let old: LoadLevel = serde_json::from_str(r#"{"clients":8}"#).unwrap();
        assert_eq!(old, LoadLevel::of(8));
        assert_eq!(serde_json::to_string(&old).unwrap(), r#"{"clients":8}"#);
    }

    #[test]
    fn a_rate_is_told_wherever_the_load_is() {
        let load = |rate: &str| LoadLevel {
            clients: 8,
            rate: Rate::parse(rate),
        };
        let at = load("200/s");
        let json = serde_json::to_string(&at).unwrap();
        assert_eq!(json, r#"{"clients":8,"rate":"200/s"}"#);
        assert_eq!(serde_json::from_str::<LoadLevel>(&json).unwrap(), at);
        assert_eq!(at.to_string(), "8 clients at 200/s");
        assert_eq!(load("30%").in_column(), "8 at 30%");
        assert_eq!(at.in_file_names(), "clients8-200ps");
        assert_eq!(load("30%").in_file_names(), "clients8-30pc");
        assert_eq!(LoadLevel::of(8).in_file_names(), "clients8");
    }
}
