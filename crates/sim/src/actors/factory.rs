//! A worker host. Killed, it forgets what it held and comes back as if new; its leases end by themselves.
//!
//! How jobs reach it is what the last heartbeat's answer said, and may change while it runs.

use std::sync::Arc;

use giga_domain::factory::Advertised;
use giga_domain::{Capability, CapabilitySet, Delivery};
use giga_ports::Clock;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::merger::Merger;
use super::nap;
use super::provider::Noticed;
use super::session::Intake;
use crate::prng::Prng;
use crate::scenario::FactoryPlan;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Host {
    pub world: Arc<World>,
    pub plan: FactoryPlan,
    pub prng: Prng,
}

/// What the last answer said.
#[derive(Debug, Clone)]
pub(crate) struct Mode(Arc<Mutex<Delivery>>);

impl Mode {
    pub(crate) fn get(&self) -> Delivery {
        *self.0.lock()
    }

    fn set(&self, mode: Delivery) {
        *self.0.lock() = mode;
    }
}

impl Host {
    pub(crate) async fn run(mut self) {
        let mut lives = 0;
        loop {
            lives += 1;
            let mode = Mode(Arc::new(Mutex::new(self.plan.delivery)));
            // Dropped at the end of this life, with everything that was begun in it.
            let mut life = JoinSet::new();
            let noticed = Noticed::default();
            let part = Self { world: self.world.clone(), plan: self.plan.clone(), prng: self.prng.fork() };
            life.spawn(part.heartbeats(mode.clone(), noticed.clone()));
            let (world, plan) = (self.world.clone(), self.plan.clone());
            let intake = Intake::new(world, plan, mode, noticed, lives, self.prng.fork());
            life.spawn(intake.run());
            let (world, factory) = (self.world.clone(), self.plan.id.clone());
            life.spawn(Merger { world, factory, prng: self.prng.fork() }.run());
            loop {
                nap(&mut self.prng, 400, 1_500).await;
                if self.prng.chance(self.world.rates().factory_killed) {
                    break;
                }
            }
            self.world.trace.note(|| format!("{} is killed", self.plan.id));
            drop(life);
            nap(&mut self.prng, 100, 4_000).await;
        }
    }

    fn advertised(&self, mode: Delivery, noticed: &Noticed) -> Advertised {
        let capabilities = self.plan.capabilities.iter().copied().chain([Capability::SEVERAL_REPOS]);
        Advertised {
            capabilities: CapabilitySet::parse(capabilities).unwrap_or_default(),
            seat_limit: self.plan.seats,
            can_clone: true,
            delivery: Some(mode),
            accounts: if self.world.scenario.rules.accounts {
                noticed.reported(self.world.clock.now())
            } else {
                Vec::new()
            },
            ..Advertised::default()
        }
    }

    async fn heartbeats(mut self, mode: Mode, noticed: Noticed) {
        let interval = self.world.scenario.heartbeat.as_millis() as u64;
        loop {
            let (id, advertised) = (self.plan.id.clone(), self.advertised(mode.get(), &noticed));
            let beat = self
                .world
                .call(&mut self.prng, |one| async move { one.heartbeat(id, advertised).await })
                .await;
            match beat {
                Ok(answer) if answer.delivery == mode.get() => {
                    nap(&mut self.prng, interval / 2, interval).await;
                }
                // It says at once how it works from here on.
                Ok(answer) => mode.set(answer.delivery),
                Err(_) => nap(&mut self.prng, 50, 300).await,
            }
        }
    }
}
