//! A price: the experiment file names it, and results keep it.

use serde::{Deserialize, Serialize};

/// What a layout costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Hundredths of the currency's unit in a month of 730 hours, 1 to 10^15.
    pub hundredths_per_month: u64,
    /// Three capital letters.
    pub currency: String,
}
