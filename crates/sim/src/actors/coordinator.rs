//! A coordinator's place in the cluster: one is started there, runs its steps, may be paused or killed, and another is
//! started in its place, which knows nothing of the one before.

use std::sync::Arc;
use std::time::Duration;

use giga_coordinator::{Coordinator, Options, Ports};
use giga_ports::{NoSecretKeys, StoreError};
use giga_store::{BatchStore, Tuning};
use tokio::task::JoinSet;

use super::nap;
use crate::ports::{NoBlobs, NodeBackend, NodeBroker, NodeEffects, NodeStore, NodeTopics};
use crate::prng::{Prng, SeededRandomness};
use crate::turnstile::Node;
use crate::world::{Address, Life, World};

#[derive(Debug)]
pub(crate) struct Cluster {
    pub world: Arc<World>,
    pub slot: usize,
    pub prng: Prng,
}

impl Cluster {
    pub(crate) async fn run(mut self) {
        loop {
            let node = self.world.turnstile.new_node();
            let Ok(coordinator) = self.start(node).await else {
                self.world.turnstile.kill(node);
                nap(&mut self.prng, 20, 200).await;
                continue;
            };
            self.world.trace.note(|| format!("n{} starts in place {}", node.0, self.slot));
            let life = Arc::new(Life::default());
            let address = Address { coordinator: coordinator.clone(), life: life.clone() };
            self.world.set_address(self.slot, Some(address));
            let steps = self.steps(&coordinator);
            self.until_killed(node).await;
            self.world.trace.note(|| format!("n{} is killed", node.0));
            self.world.turnstile.kill(node);
            self.world.set_address(self.slot, None);
            drop(steps);
            life.end();
            nap(&mut self.prng, 50, 2_500).await;
        }
    }

    async fn start(&mut self, node: Node) -> Result<Arc<Coordinator>, StoreError> {
        let world = &self.world;
        let backend = NodeBackend { node, world: world.clone() };
        let tuning = Tuning { patience: world.scenario.patience, ..Tuning::default() };
        let store = NodeStore::new(node, world.clone(), BatchStore::start(backend, tuning).await?);
        let blobs = Arc::new(NoBlobs);
        let ports = Ports {
            store: Arc::new(store),
            topics: Arc::new(NodeTopics { node, world: world.clone() }),
            broker: Arc::new(NodeBroker::new(node, world.clone(), self.prng.fork())),
            clock: Arc::new(world.clock.skewed(world.scenario.skews_ms[self.slot])),
            random: Arc::new(SeededRandomness::new(self.prng.fork())),
            logs: blobs.clone(),
            artifacts: blobs,
            effects: Arc::new(NodeEffects::new(world.clone(), self.prng.fork())),
            secret_keys: Arc::new(NoSecretKeys),
            pool_drivers: giga_ports::PoolDrivers::default(),
        };
        let options = Options {
            sweep_every: world.scenario.sweep,
            idle_sweep_every: world.scenario.sweep,
            lead_lease: world.scenario.lead_lease,
            offer_grace: world.scenario.offer_grace,
            sweep_limit: self.prng.between(1, 20) as usize,
            ..Options::default()
        };
        Coordinator::by_hand(ports, options).await
    }

    async fn until_killed(&mut self, node: Node) {
        loop {
            nap(&mut self.prng, 400, 2_000).await;
            let rates = self.world.rates();
            if self.prng.chance(rates.coordinator_killed) {
                return;
            }
            if self.prng.chance(rates.coordinator_paused) {
                let lease = self.world.scenario.lease.as_millis() as u64;
                let time = Duration::from_millis(self.prng.between(lease / 4, lease * 2));
                self.world.trace.note(|| format!("n{} is paused for {time:?}", node.0));
                self.world.turnstile.pause(node, time);
            }
        }
    }

    /// What the reconcilers do by themselves in a real process. Dropping the set ends them in the middle of it.
    fn steps(&mut self, coordinator: &Arc<Coordinator>) -> JoinSet<()> {
        let mut steps = JoinSet::new();
        let sweep = self.world.scenario.sweep;
        let one = coordinator.clone();
        steps.spawn(async move {
            loop {
                let pause = one.reap_once().await.ok().flatten().unwrap_or(sweep);
                tokio::time::sleep(pause).await;
            }
        });
        self.repeat(&mut steps, coordinator, 400, 1_200, |one| async move {
            let _ = one.reconsider_once().await;
        });
        let scenario = self.world.scenario.clone();
        self.repeat(&mut steps, coordinator, 150, 500, |one| async move {
            let _ = one.refresh_once().await;
        });
        let lead = scenario.lead_lease.as_millis() as u64;
        self.repeat(&mut steps, coordinator, lead / 4, lead / 2, |one| async move {
            let _ = one.dispatch().lead_once().await;
        });
        self.repeat(&mut steps, coordinator, 40, 250, |one| async move {
            let _ = one.dispatch().dispatch_once().await;
        });
        self.repeat(&mut steps, coordinator, 400, 1_500, |one| async move {
            let _ = one.dispatch().offers_once().await;
        });
        let heartbeat = scenario.heartbeat.as_millis() as u64;
        self.repeat(&mut steps, coordinator, heartbeat, heartbeat, |one| async move {
            let _ = one.presence_once().await;
        });
        if scenario.rules.talk {
            self.repeat(&mut steps, coordinator, 100, 400, |one| async move {
                let _ = one.close_questions_once().await;
            });
        }
        if scenario.topic_jobs > 0 {
            self.topic_steps(&mut steps, coordinator);
        }
        if scenario.rules.webhooks > 0 {
            self.effect_steps(&mut steps, coordinator);
        }
        steps
    }

    /// Each of them delivers, whoever leads: that must not matter.
    fn effect_steps(&mut self, steps: &mut JoinSet<()>, coordinator: &Arc<Coordinator>) {
        self.repeat(steps, coordinator, 100, 500, |one| async move {
            let _ = one.effects().fan_out_once().await;
        });
        self.repeat(steps, coordinator, 200, 900, |one| async move {
            let _ = one.effects().deliver_once().await;
        });
    }

    fn topic_steps(&mut self, steps: &mut JoinSet<()>, coordinator: &Arc<Coordinator>) {
        self.repeat(steps, coordinator, 20, 150, |one| async move {
            let _ = one.topics().claim_once().await;
        });
        self.repeat(steps, coordinator, 150, 500, |one| async move {
            let _ = one.topics().expire_once().await;
        });
        self.repeat(steps, coordinator, 150, 500, |one| async move {
            let _ = one.topics().promote_once().await;
        });
        // The timer behind the hints, which may be lost.
        self.repeat(steps, coordinator, 600, 2_500, |one| async move { one.topics().look_everywhere() });
    }

    fn repeat<Fut>(
        &mut self,
        steps: &mut JoinSet<()>,
        coordinator: &Arc<Coordinator>,
        low_ms: u64,
        high_ms: u64,
        step: impl Fn(Arc<Coordinator>) -> Fut + Send + 'static,
    ) where
        Fut: Future<Output = ()> + Send,
    {
        let (mut prng, coordinator) = (self.prng.fork(), coordinator.clone());
        steps.spawn(async move {
            loop {
                step(coordinator.clone()).await;
                nap(&mut prng, low_ms, high_ms).await;
            }
        });
    }
}
