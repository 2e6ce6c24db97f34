//! What the operator of a machine decides about its agent.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use giga_api::client::Trust;
use giga_domain::{CapabilitySet, FactoryId, PoolName, Usd};

use super::BrokerConnector;
use crate::engines::{EnginesConfig, ToolServer, Watchdog};
use crate::sandbox::SandboxConfig;
use crate::workspace::GitPolicy;

#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Where the coordinator is.
    pub url: String,
    /// What the way there must be like.
    pub trust: Trust,
    pub id: FactoryId,
    /// Everything that the agent keeps: its token, mirrors, work trees, logs of running jobs.
    pub base: PathBuf,
    /// A token that may enroll, for the first start; afterwards the factory's own is kept in `base`.
    pub enroll_with: Option<String>,
    /// The pool that it is one of, whose credential `enroll_with` then is. It leaves for good when it is drained and when it
    /// is stopped.
    pub pool: Option<PoolName>,
    pub seats: u32,
    /// What the machine has beside what is detected.
    pub capabilities: CapabilitySet,
    /// What the machine costs, engines aside.
    pub cost_per_hour: Option<Usd>,
    pub engines: EnginesConfig,
    pub sandbox: SandboxConfig,
    /// Whether it runs scripts and verify commands. Without them it still runs engines that read prompts.
    pub commands: bool,
    pub git: GitPolicy,
    /// Tools that jobs are offered about themselves; none without.
    pub job_tools: Option<ToolServer>,
    /// Where its offers can be read, for the delivery mode `broker`.
    pub broker: Option<Arc<dyn BrokerConnector>>,
    pub watchdog: Watchdog,
    /// How often running work is saved where it can be resumed.
    pub checkpoint_every: Duration,
    /// Clone what is not here yet.
    pub can_clone: bool,
    /// Replace another process that is this factory.
    pub take_over: bool,
    /// Take one job, or find none, and leave.
    pub once: bool,
}
