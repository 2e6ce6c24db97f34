//! The network of a job: open, or an empty namespace whose only way out is the factory's own proxy.
//!
//! ```text
//! inside: program ─▶ 127.0.0.1 (init's forwarder) ─▶ Unix socket ┃ outside: proxy ─▶ rules ─▶ host
//! ```
//! What is inside the namespace has no interface but loopback and no route: a program that knows nothing of proxies
//! reaches nobody. Names are resolved outside, by the proxy.

pub(super) mod forward;
mod proxy;
mod rules;

pub(crate) use proxy::Proxy;
pub use rules::HostRule;
pub(crate) use rules::{Rules, host_of};

use strum::{Display, EnumString, IntoStaticStr, VariantArray};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum NetworkMode {
    /// The network of the machine.
    #[default]
    Open,
    /// The coordinator, and what the job's engine cannot do without.
    None,
    /// The same, and the hosts on the operator's list.
    List,
}

#[derive(Debug, Clone, Default)]
pub struct NetworkConfig {
    pub mode: NetworkMode,
    pub hosts: Vec<HostRule>,
    /// Where the coordinator is: a job may always report to it.
    pub coordinator: Option<String>,
}
