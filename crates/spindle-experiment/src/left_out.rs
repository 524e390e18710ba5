//! Combinations of a matrix that cannot be used: settings that are right by themselves and refused together, or by the
//! engine, or by this machine. They are left out with the reason. It is an error only if fewer than two combinations
//! remain. Used while layouts are read, and when the machine is examined before a run.

use super::document::Document;
use super::error::ExperimentError;
use super::experiment::Experiment;
use super::layout::Layout;
use super::matrix::{FactorMatrix, LeftOut, listed};

/// Fewer combinations than this compare nothing.
const CASES_MIN: usize = 2;

/// Combinations that were refused while they were read.
#[derive(Default)]
pub(super) struct Refused {
    layouts: Vec<LeftOut>,
    mistakes: Vec<ExperimentError>,
}

impl Refused {
    /// Takes the mistakes after the first `known` out of `document`, if `layout` is a combination and they are all
    /// refusals; says whether it is left out.
    pub(super) fn take(&mut self, document: &Document, layout: Option<&str>, known: usize) -> bool {
        let matrix = document.matrix.as_ref();
        let Some(layout) = layout.filter(|name| matrix.is_some_and(|matrix| matrix.has(name)))
        else {
            return false;
        };
        let mistakes = document.take_mistakes_after(known);
        match mistakes.first() {
            Some(first) if mistakes.iter().all(ExperimentError::is_refusal) => {
                self.layouts.push(LeftOut {
                    layout: layout.to_owned(),
                    reason: first.reason(),
                });
                self.mistakes.extend(mistakes);
                true
            }
            _ => {
                mistakes
                    .into_iter()
                    .for_each(|mistake| document.note(mistake));
                false
            }
        }
    }

    /// How many were taken.
    pub(super) fn count(&self) -> usize {
        self.layouts.len()
    }

    /// Adds those of `layouts` whose files lie on one that is left out, and says which of them stay. Where too few do,
    /// the refusals are mistakes after all.
    pub(super) fn spread(&mut self, document: &Document, layouts: &[Layout]) -> Vec<bool> {
        let with_files = with_files_there(layouts, &self.layouts);
        self.layouts.extend(with_files);
        let is_out = |layout: &Layout| self.layouts.iter().any(|out| out.layout == layout.name);
        let stays: Vec<bool> = layouts.iter().map(|layout| !is_out(layout)).collect();
        let remain = layouts.iter().zip(&stays);
        let remain = remain.filter(|(layout, stays)| layout.candidate && **stays);
        if !self.layouts.is_empty() && remain.count() < CASES_MIN {
            let mistakes = std::mem::take(&mut self.mistakes);
            mistakes
                .into_iter()
                .for_each(|mistake| document.note(mistake));
        }
        stays
    }

    /// The matrix without them.
    pub(super) fn out_of(self, matrix: Option<&FactorMatrix>) -> Option<FactorMatrix> {
        let mut matrix = matrix.cloned()?;
        matrix.leave_out(self.layouts);
        Some(matrix)
    }
}

/// The layouts that put files on one of those left out, or on one that does; each with that as its reason.
fn with_files_there(layouts: &[Layout], left_out: &[LeftOut]) -> Vec<LeftOut> {
    let mut more: Vec<LeftOut> = Vec::new();
    loop {
        let known = |name: &str| left_out.iter().chain(&more).any(|out| out.layout == name);
        let next = layouts.iter().find_map(|layout| {
            let beneath = layout.placement.layouts().find(|name| known(name))?;
            (!known(&layout.name)).then(|| LeftOut {
                layout: layout.name.clone(),
                reason: format!("its files would lie on {beneath:?}, which is left out"),
            })
        });
        match next {
            Some(next) => more.push(next),
            None => return more,
        }
    }
}

impl Experiment {
    /// Leaves combinations out that cannot be used here: numbers of layouts, each with the reason, in words. Nothing
    /// but combinations can be left out.
    ///
    /// # Errors
    /// Fewer than two combinations would remain. The experiment stays as it was.
    pub fn leave_out(&mut self, refused: &[(usize, String)]) -> Result<(), TooFewLeft> {
        let Some(matrix) = &mut self.matrix else {
            return Ok(());
        };
        let layouts = &self.layouts;
        let of_matrix = refused.iter().map(|(index, reason)| LeftOut {
            layout: layouts[*index].name.clone(),
            reason: reason.clone(),
        });
        let mut left_out: Vec<LeftOut> = of_matrix.filter(|out| matrix.has(&out.layout)).collect();
        if left_out.is_empty() {
            return Ok(());
        }
        left_out.extend(with_files_there(layouts, &left_out));
        let is_out = |layout: &Layout| left_out.iter().any(|out| out.layout == layout.name);
        let remain = layouts
            .iter()
            .filter(|layout| layout.candidate && !is_out(layout));
        let remain = remain.count();
        if remain < CASES_MIN {
            let mut alone = FactorMatrix {
                left_out: Vec::new(),
                ..matrix.clone()
            };
            alone.leave_out(left_out);
            return Err(TooFewLeft::of(&alone, remain));
        }
        self.layouts.retain(|layout| {
            let is_repeated = layout.repeats.as_deref();
            !left_out
                .iter()
                .any(|out| out.layout == layout.name || is_repeated == Some(&out.layout))
        });
        matrix.leave_out(left_out);
        Ok(())
    }
}

/// Why nothing can be compared: fewer than two combinations remain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TooFewLeft {
    /// None does.
    #[error("none of what is varied can be measured here. {reasons}")]
    None {
        /// Each with the layouts that it leaves out.
        reasons: String,
    },
    /// One does.
    #[error(
        "only one of what is varied can be measured here, and there is nothing to compare it with. {reasons}"
    )]
    One {
        /// Each with the layouts that it leaves out.
        reasons: String,
    },
}

impl TooFewLeft {
    /// How many of a matrix remain, in which those left out stand.
    fn of(matrix: &FactorMatrix, remain: usize) -> TooFewLeft {
        let reasons = matrix.left_out_by_reason().into_iter();
        let reasons = reasons.map(|(reason, layouts)| format!("{}: {reason}", listed(&layouts)));
        let reasons = reasons.collect::<Vec<String>>().join(". ");
        match remain {
            0 => TooFewLeft::None { reasons },
            _ => TooFewLeft::One { reasons },
        }
    }
}
