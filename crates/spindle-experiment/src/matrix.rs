//! What was varied: the factors of a matrix of layouts, their levels, and which layout has which. Made by `vary`, kept
//! with the experiment, so that its result can tell what each factor does.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Names that a list tells one by one.
const NAMES_MAX: usize = 3;

/// The factors of an experiment whose layouts are combinations of their levels.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FactorMatrix {
    /// The factors in the order of the file; the layouts as they are written come first, where there are several.
    pub factors: Vec<Factor>,
    /// The combinations that became layouts.
    pub cells: Vec<MatrixCell>,
    /// Whether they are half of all combinations, chosen so that every effect can still be told.
    #[serde(default)]
    pub is_half: bool,
    /// Those that cannot be used, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<LeftOut>,
}

/// A combination that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Name of the layout that it would be.
    pub layout: String,
    /// Why not, in words, without a full stop.
    pub reason: String,
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
pub struct MatrixCell {
    /// Name of the layout.
    pub layout: String,
    /// Its level of each factor, counted from 0.
    pub levels: Vec<usize>,
}

impl fmt::Display for FactorMatrix {
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
        }?;
        if self.is_half && !self.left_out.is_empty() {
            write!(
                text,
                " With combinations left out, some effects cannot be told: measure all, or vary fewer keys."
            )?;
        }
        for (reason, layouts) in self.left_out_by_reason() {
            write!(text, "\nLeft out: {}: {reason}.", listed(&layouts))?;
        }
        Ok(())
    }
}

impl FactorMatrix {
    /// Whether a layout is one of the combinations.
    pub fn has(&self, layout: &str) -> bool {
        self.cells.iter().any(|cell| cell.layout == layout)
    }

    /// Takes combinations out.
    pub(super) fn leave_out(&mut self, left_out: Vec<LeftOut>) {
        let is_out = |cell: &MatrixCell| left_out.iter().any(|out| out.layout == cell.layout);
        self.cells.retain(|cell| !is_out(cell));
        self.left_out.extend(left_out);
    }

    /// Each reason with the layouts that it leaves out, in the order of the matrix.
    pub fn left_out_by_reason(&self) -> Vec<(&str, Vec<&str>)> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for LeftOut { layout, reason } in &self.left_out {
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, layouts)) => layouts.push(layout),
                None => reasons.push((reason, vec![layout])),
            }
        }
        reasons
    }
}

/// Names with semicolons between them; of many, the first and how many more.
pub fn listed(layouts: &[&str]) -> String {
    match layouts.split_at_checked(NAMES_MAX) {
        Some((first, more)) if more.len() > 1 => {
            format!("{}; and {} more", first.join("; "), more.len())
        }
        _ => layouts.join("; "),
    }
}
