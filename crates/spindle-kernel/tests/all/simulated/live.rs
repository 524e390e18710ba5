//! A database that a test takes by the hand: it starts, waits, damages and looks, step by step, in one world.

use std::future::Future;
use std::sync::Arc;

use spindle_io::Env;
use spindle_io::sim::{IoFault, Lasts, SimDisk, World};
use spindle_kernel::{Instance, Result};

use super::{Disks, Images, Scenario};

pub struct Live {
    pub world: World,
    disks: Disks,
    scenario: Scenario,
}

impl Live {
    pub fn on(scenario: Scenario, images: &Images) -> Live {
        let world = World::new(scenario.seed);
        let disks = Disks::new(&world, scenario, images);
        Live {
            world,
            disks,
            scenario,
        }
    }

    pub fn disk(&self, number: usize) -> &SimDisk {
        &self.disks.disks[number]
    }

    /// Lets the world live until `step` is done.
    pub fn run<T: 'static>(&mut self, step: impl Future<Output = T> + 'static) -> T {
        self.world.run(step).unwrap()
    }

    pub fn start(&mut self) -> Result<Instance> {
        let env: Arc<dyn Env> = self.world.env();
        let (storage, settings) = (self.disks.storage(self.scenario), self.scenario.settings());
        self.run(async move { Instance::startup(&env, &storage, &settings).await })
    }

    /// Fails the next I/O, whatever it is.
    pub fn fail_next_io(&self) {
        self.world.fail_io(IoFault {
            io: self.world.io_count() + 1,
            lasts: Lasts::Once,
            seed: 1,
        });
    }

    /// What the disks hold.
    pub fn images(&self) -> Images {
        self.disks.after(spindle_io::sim::PowerCut::LoseAll)
    }
}
