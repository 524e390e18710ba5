//! A line of the report of `doctor`: what finds makes it, what shows writes it.

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Health {
    /// As it should be.
    Ok,
    /// Results suffer from it.
    Warn,
    /// It is not there; what needs it is skipped.
    Missing,
}

/// One line of the report.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) health: Health,
    /// What was looked at, and what it is.
    pub(super) what: String,
    /// What it means for results, and the remedy; empty when all is well.
    pub(super) advice: String,
}

impl Finding {
    pub(super) fn ok(what: impl Into<String>) -> Finding {
        Finding {
            health: Health::Ok,
            what: what.into(),
            advice: String::new(),
        }
    }

    pub(super) fn warn(what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding {
            health: Health::Warn,
            what: what.into(),
            advice: advice.into(),
        }
    }

    pub(super) fn missing(what: impl Into<String>, advice: impl Into<String>) -> Finding {
        Finding {
            health: Health::Missing,
            what: what.into(),
            advice: advice.into(),
        }
    }
}
