//! What was varied: the factors of a matrix of layouts, their levels, and which layout has which. Made by `vary`, kept
//! with the experiment, so that its result can tell what each factor does.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The factors of an experiment whose layouts are combinations of their levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matrix {
    /// The factors in the order of the file; the layouts as they are written come first, where there are several.
    pub factors: Vec<Factor>,
    /// The combinations that became layouts.
    pub cells: Vec<Cell>,
    /// Whether they are half of all combinations, chosen so that every effect can still be told.
    #[serde(default)]
    pub is_half: bool,
}

/// Something that layouts differ in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Factor {
    /// What it is called: the last part of its key, or `layout` for the layouts as they are written.
    pub name: String,
    /// Its levels as people read them.
    pub levels: Vec<String>,
}

/// A layout and its levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the layout.
    pub layout: String,
    /// Its level of each factor, counted from 0.
    pub levels: Vec<usize>,
}

impl fmt::Display for Matrix {
    fn fmt(&self, text: &mut fmt::Formatter<'_>) -> fmt::Result {
        let factors: Vec<String> = self
            .factors
            .iter()
            .map(|factor| format!("{} ({})", factor.name, factor.levels.join(", ")))
            .collect();
        let all: usize = self
            .factors
            .iter()
            .map(|factor| factor.levels.len())
            .product();
        let cells = self.cells.len();
        write!(text, "A matrix of {}: ", factors.join(" x "))?;
        match self.is_half {
            true => write!(
                text,
                "half of its {all} combinations, {cells} layouts. Every effect of one factor, and of two together, can be told; \
                 an interaction of three looks like the effect of the others together. All of them: vary.fraction = \"full\"."
            ),
            false if cells == all => write!(text, "{cells} layouts."),
            false => write!(text, "{cells} of {all} layouts."),
        }
    }
}
