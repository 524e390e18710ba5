//! The experiment as a whole, and what follows from it for a layout. Nothing in here reads a file. The code that runs
//! experiments uses it, and so does the code that leaves layouts out.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::database::{Database, DatabaseSpec};
use crate::layout::{Layout, PlacedOn};
use crate::limit::Delay;
use crate::load_machine::LoadMachine;
use crate::matrix::FactorMatrix;
use crate::plan::Plan;
use crate::restore::PutBack;
use crate::workload::WorkloadChoice;

/// A whole experiment, complete and checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// What it is called; part of the name of its run directory.
    pub name: String,
    /// Where everything random starts from: data, transactions, the order of trials.
    pub seed: u64,
    /// The database, before any layout's own settings; [`Experiment::spec`] tells which it is, for layouts may name a
    /// server that runs already.
    pub database: Database,
    /// What the clients do.
    pub workload: WorkloadChoice,
    /// How the trials are run and judged.
    pub plan: Plan,
    /// The candidates, at least one, each with its own name.
    pub layouts: Vec<Layout>,
    /// Machines on which clients run; none: all run on this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load: Vec<LoadMachine>,
    /// What was varied, if the candidates are combinations of settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matrix: Option<FactorMatrix>,
    /// Whether the plan was cut down to a first look.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_quick: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

impl Experiment {
    /// Numbers of the layouts that are measured, in order.
    pub fn candidates(&self) -> impl Iterator<Item = usize> + '_ {
        let layouts = self.layouts.iter().enumerate();
        layouts.filter_map(|(index, layout)| layout.candidate.then_some(index))
    }

    /// The database of a layout's cases: the shared settings with that layout's own in place.
    ///
    /// # Panics
    /// When there is no such layout.
    pub fn database_of(&self, layout: usize) -> &Database {
        &self.layouts[layout].database
    }

    /// Which database it is, as the first layout has it: in all of them it is of one kind, and has the same memory.
    pub fn spec(&self) -> &DatabaseSpec {
        &self.layouts[0].database.spec
    }

    /// What is done to put the database of a layout back before a trial.
    ///
    /// # Panics
    /// When there is no such layout.
    pub fn put_back(&self, layout: usize) -> PutBack {
        self.plan.restore.of(&self.layouts[layout])
    }

    /// The directory of a layout's redo, if it is a separate one: it lies on no other layout, and belongs to this one.
    ///
    /// # Panics
    /// When there is no such layout.
    pub fn redo_apart(&self, layout: usize) -> Option<PathBuf> {
        let of = &self.layouts[layout];
        let is_placed = of.placement.redo.is_some();
        let path = of.database.spec.redo_path().filter(|_| !is_placed);
        path.map(Path::to_path_buf)
    }

    /// How much longer the database is to make the I/O of a layout's datafiles, and that of its redo: each by the
    /// layout that it lies on, unless that `is_slow` already. Nothing beneath a layout delays redo in its own
    /// directory.
    ///
    /// # Panics
    /// When there is no such layout.
    pub fn delays_of(
        &self,
        layout: usize,
        is_slow: impl Fn(usize) -> bool,
    ) -> (Option<Delay>, Option<Delay>) {
        let of = &self.layouts[layout];
        let on = |placed: &Option<PlacedOn>| {
            let beneath = match placed {
                Some(PlacedOn::Layout(name)) => {
                    let mut layouts = self.layouts.iter();
                    layouts.position(|other| other.name == *name)?
                }
                _ => layout,
            };
            self.layouts[beneath].delay.filter(|_| !is_slow(beneath))
        };
        let redo = match self.redo_apart(layout) {
            Some(_) => of.delay,
            None => on(&of.placement.redo),
        };
        (on(&of.placement.data), redo)
    }
}
