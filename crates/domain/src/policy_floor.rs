//! What every job of a product keeps to, whatever its submitter asks for.
//!
//! What a manifest leaves open is filled in; what asks for more than the floor allows is refused, never quietly changed.

use serde::{Deserialize, Serialize};

use crate::job::{JobKind, ReviewGate, ShipMode};
use crate::manifest::Manifest;
use crate::word::words;
use crate::{Capability, Permissions, ProductId, limits};

words! {
    "network level",
    /// How far jobs may reach at most. Ordered: `Open` sorts first.
    #[derive(Default)]
    pub enum NetworkLevel {
        /// As far as the factory lets them.
        #[default]
        Open,
        /// What the factory lists, and nothing else.
        List,
        /// The coordinator and the engine's own hosts.
        None,
    }
}

impl NetworkLevel {
    /// What a factory must have for jobs that are to reach no further.
    fn needs(self) -> Option<&'static str> {
        match self {
            Self::Open => None,
            // A factory whose list is empty is closed, too.
            Self::List => Some(Capability::NETWORK_CLOSED),
            Self::None => Some(Capability::NETWORK_NONE),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PolicyFloor {
    /// Approvals that every result needs at least.
    pub quorum: u32,
    /// Whether a manifest may say `ship: auto`.
    pub auto_ship: bool,
    /// Those that may be used, every one where it is empty. A job that names none gets the first.
    pub engines: Vec<String>,
    /// Whether jobs run in a sandbox or not at all.
    pub sandbox: bool,
    pub network: NetworkLevel,
    /// The most that an engine may do without asking. `None`: whatever the manifest and the factory say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Permissions>,
    /// Children of one job, however they come. `None`: as many as people like, and
    /// [`limits::CHILDREN_FROM_INSIDE`] by what runs inside a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_children: Option<u32>,
    /// How deep children may have children. `None`: [`limits::DAG_DEPTH`], and [`limits::DEPTH_FROM_INSIDE`] by what runs
    /// inside a job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_depth: Option<u32>,
    /// Jobs that are queued or blocked; the flag `max_queued_jobs` holds as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_queued_jobs: Option<u64>,
    /// All artifacts of the product together; the flag `artifact_product_mib` holds as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_artifact_mib: Option<u64>,
}

impl Default for PolicyFloor {
    fn default() -> Self {
        Self {
            quorum: 0,
            auto_ship: true,
            engines: Vec::new(),
            sandbox: false,
            network: NetworkLevel::default(),
            permissions: None,
            max_children: None,
            max_depth: None,
            max_queued_jobs: None,
            max_artifact_mib: None,
        }
    }
}

/// A field of a manifest that asks for more than it may have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AsksTooMuch {
    pub field: &'static str,
    pub message: String,
}

impl AsksTooMuch {
    pub fn new(field: &'static str, message: impl Into<String>) -> Self {
        Self { field, message: message.into() }
    }
}

/// The floors that hold for a job: its product's, and those of the owners of its repositories.
pub fn keep_to(floors: &[(&ProductId, &PolicyFloor)], manifest: &mut Manifest) -> Result<(), AsksTooMuch> {
    // It does nothing itself, and its children each keep to them.
    if manifest.kind == JobKind::Composite {
        return Ok(());
    }
    if manifest.engine.is_none()
        && let Some((_, floor)) = floors.iter().find(|(_, floor)| !floor.engines.is_empty())
    {
        let all_allow = |engine: &&String| floors.iter().all(|(_, floor)| floor.allows(engine));
        // Where they agree on none, the check below says what is asked for.
        manifest.engine = floor.engines.iter().find(all_allow).or(floor.engines.first()).cloned();
    }
    if manifest.permissions.is_none() {
        manifest.permissions = floors.iter().filter_map(|(_, floor)| floor.permissions).min();
    }
    if manifest.review == ReviewGate::default() {
        manifest.review.quorum = floors.iter().map(|(_, floor)| floor.quorum).max().unwrap_or(0);
    }
    floors.iter().try_for_each(|(product, floor)| floor.keep(product, manifest))
}

impl PolicyFloor {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    fn allows(&self, engine: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|allowed| allowed == engine)
    }

    fn keep(&self, product: &ProductId, manifest: &mut Manifest) -> Result<(), AsksTooMuch> {
        if manifest.ship == ShipMode::Auto && !self.auto_ship {
            let message = format!(
                "must be manual: the policy of product {product} lets no result in without somebody's word"
            );
            return Err(AsksTooMuch::new("ship", message));
        }
        let asked = manifest.review.quorum;
        if asked < self.quorum {
            let message = format!(
                "asks for {asked} approval(s), and the policy of product {product} for {}; ask for as many, or leave it out",
                self.quorum
            );
            return Err(AsksTooMuch::new("review", message));
        }
        if let Some(engine) = manifest.engine.as_deref().filter(|engine| !self.allows(engine)) {
            let message = format!(
                "`{engine}` is not among the engines that the policy of product {product} allows: {}",
                self.engines.join(", ")
            );
            return Err(AsksTooMuch::new("engine", message));
        }
        if let Some(most) = self.permissions {
            let asked = manifest.permissions.unwrap_or(most);
            if asked > most {
                let message = format!(
                    "`{asked}` lets the engine do more without asking than the policy of product {product}, which says `{most}`"
                );
                return Err(AsksTooMuch::new("permissions", message));
            }
        }
        let needed = [self.sandbox.then_some(Capability::SANDBOX), self.network.needs()];
        for needed in needed.into_iter().flatten() {
            manifest.capabilities.insert(needed.parse().expect("it is written as a capability is"));
        }
        Ok(())
    }
}

/// How large a tree of jobs may grow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Children of the parent, those that it has included.
    pub children: usize,
    /// How many may stand above a job.
    pub depth: usize,
}

impl Default for TreeLimits {
    fn default() -> Self {
        Self { children: usize::MAX, depth: limits::DAG_DEPTH }
    }
}

impl TreeLimits {
    /// What is let grow under these floors, by people or from inside a job.
    pub fn under<'a>(floors: impl IntoIterator<Item = &'a PolicyFloor>, from_inside: bool) -> Self {
        let usual = if from_inside {
            Self { children: limits::CHILDREN_FROM_INSIDE, depth: limits::DEPTH_FROM_INSIDE }
        } else {
            Self::default()
        };
        let (mut children, mut depth) = (None, None);
        for floor in floors {
            children = least(children, floor.max_children);
            depth = least(depth, floor.max_depth);
        }
        Self {
            children: children.map_or(usual.children, |most| most as usize),
            depth: depth.map_or(usual.depth, |most| most as usize).min(limits::DAG_DEPTH),
        }
    }
}

fn least(a: Option<u32>, b: Option<u32>) -> Option<u32> {
    a.into_iter().chain(b).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::parse_markdown;

    fn manifest(fields: &str) -> Manifest {
        parse_markdown(format!("---\nname: a\n{fields}\n---\nDo it.\n").as_bytes()).unwrap().0
    }

    fn strict() -> PolicyFloor {
        PolicyFloor {
            quorum: 2,
            auto_ship: false,
            engines: vec!["claude".to_owned(), "codex".to_owned()],
            sandbox: true,
            network: NetworkLevel::List,
            permissions: Some(Permissions::Commands),
            ..PolicyFloor::default()
        }
    }

    fn kept(fields: &str, floors: &[&PolicyFloor]) -> Result<Manifest, AsksTooMuch> {
        let product: ProductId = "web".parse().unwrap();
        let floors: Vec<_> = floors.iter().map(|floor| (&product, *floor)).collect();
        let mut manifest = manifest(fields);
        keep_to(&floors, &mut manifest).map(|()| manifest)
    }

    #[test]
    fn what_is_left_open_is_filled_in() {
        let kept = kept("repo: app", &[&strict()]).unwrap();
        assert_eq!(kept.review.quorum, 2);
        assert_eq!(kept.engine.as_deref(), Some("claude"));
        assert_eq!(kept.permissions, Some(Permissions::Commands));
        let needed: Vec<_> = kept.capabilities.iter().map(Capability::as_str).collect();
        assert_eq!(needed, ["network:closed", "sandbox:bwrap"]);
    }

    #[test]
    fn what_asks_for_more_is_refused() {
        for (fields, field) in [
            ("ship: auto", "ship"),
            ("review: {quorum: 1}", "review"),
            ("review: {quorum: 0, reviewers: [ana]}", "review"),
            ("engine: shell\nscript: make", "engine"),
            ("permissions: all", "permissions"),
        ] {
            let refused = kept(fields, &[&strict()]).unwrap_err();
            assert_eq!(refused.field, field, "{refused:?}");
            assert!(refused.message.contains("product web"), "{refused:?}");
        }
        kept("engine: codex\nreview: {quorum: 3}", &[&strict()]).unwrap();
        kept("kind: composite", &[&strict()]).unwrap();
        let free = kept("ship: auto\nengine: shell\nscript: make", &[&PolicyFloor::default()]).unwrap();
        assert_eq!(free, manifest("ship: auto\nengine: shell\nscript: make"));
    }

    #[test]
    fn of_several_floors_the_strictest_counts() {
        let other = PolicyFloor {
            quorum: 3,
            engines: vec!["gemini".to_owned(), "codex".to_owned()],
            network: NetworkLevel::None,
            permissions: Some(Permissions::Edit),
            ..PolicyFloor::default()
        };
        let both = kept("repo: app", &[&strict(), &other]).unwrap();
        assert_eq!((both.review.quorum, both.engine.as_deref()), (3, Some("codex")));
        assert_eq!(both.permissions, Some(Permissions::Edit));
        assert!(both.capabilities.iter().any(|c| c.as_str() == "network:none"));
        let none = PolicyFloor { engines: vec!["gemini".to_owned()], ..PolicyFloor::default() };
        assert_eq!(kept("repo: app", &[&strict(), &none]).unwrap_err().field, "engine");
    }

    #[test]
    fn trees_grow_as_far_as_the_strictest_floor_lets_them() {
        let floor = |children, depth| PolicyFloor {
            max_children: children,
            max_depth: depth,
            ..PolicyFloor::default()
        };
        let floors = [floor(Some(20), None), floor(Some(500), Some(2)), floor(None, None)];
        assert_eq!(TreeLimits::under(&floors, true), TreeLimits { children: 20, depth: 2 });
        assert_eq!(TreeLimits::under([], false), TreeLimits::default());
        let usual = TreeLimits { children: limits::CHILDREN_FROM_INSIDE, depth: limits::DEPTH_FROM_INSIDE };
        assert_eq!(TreeLimits::under(&floors[2..], true), usual);
        // More than usual where the product says so.
        assert_eq!(TreeLimits::under(&floors[1..2], true).children, 500);
        assert_eq!(TreeLimits::under(&[floor(None, Some(99))], false).depth, limits::DAG_DEPTH);
    }
}
