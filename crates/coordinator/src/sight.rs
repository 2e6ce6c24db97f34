//! What a caller may be told about: its own products, the factories that serve them, and repositories that no other
//! product owns.
//!
//! Explanations, plans, warnings and alerts are made from a picture of the fleet that was cut to this, so that no sentence
//! can name what the caller may not see.

use std::borrow::Cow;
use std::fmt;

use giga_domain::repo::meant_by;
use giga_domain::{Event, ProductId};
use giga_scheduler::{JobView, Snapshot};

use crate::Coordinator;
use crate::policies::Tenants;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sight {
    Everything,
    Products(Vec<ProductId>),
}

impl Sight {
    pub fn allows(&self, product: &ProductId) -> bool {
        match self {
            Self::Everything => true,
            Self::Products(own) => own.contains(product),
        }
    }

    /// Does something that serves these products serve one of the caller's? None at all means every product.
    pub fn meets(&self, products: &[ProductId]) -> bool {
        products.is_empty() || products.iter().any(|product| self.allows(product))
    }

    /// The event without the job that took its seat, which may be anybody's: who sees some products only is not told.
    pub fn of_event<'a>(&self, event: &'a Event) -> Cow<'a, Event> {
        let Some(other) = event.data.get("forJob").and_then(|id| id.as_str()) else {
            return Cow::Borrowed(event);
        };
        if *self == Self::Everything {
            return Cow::Borrowed(event);
        }
        let mut cut = event.clone();
        cut.cause = event.cause.replace(&format!("job {other}"), "another job");
        cut.data.remove("forJob");
        Cow::Owned(cut)
    }

    fn sees_repo(&self, tenants: &Tenants, repo: &str) -> bool {
        tenants.owner_of(repo).is_none_or(|(owner, _)| self.allows(owner))
    }

    /// Leaves out what the caller may not see. What the job itself names, its submitter knew.
    pub(crate) fn cut(&self, snapshot: &mut Snapshot, tenants: &Tenants, job: Option<&JobView>) {
        if *self == Self::Everything {
            return;
        }
        snapshot.factories.retain(|factory| self.meets(&factory.products));
        let named = |repo: &str| {
            let repos = job.into_iter().flat_map(|job| job.repo.iter().chain(&job.more_repos));
            repos.into_iter().any(|named| !meant_by(named, std::iter::once(repo)).is_empty())
        };
        for factory in &mut snapshot.factories {
            factory.repos.retain(|repo| self.sees_repo(tenants, &repo.name) || named(&repo.name));
        }
    }
}

/// A job is for a repository that another product owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignRepo {
    /// As the job names it.
    pub asked: String,
    /// As its owner does.
    pub repo: String,
    pub owner: ProductId,
}

impl ForeignRepo {
    /// In words that name nothing which the caller may not see.
    pub fn told_to(&self, sight: &Sight) -> String {
        if sight.allows(&self.owner) {
            return self.to_string();
        }
        format!("repo: `{}` belongs to another product; submit the job there, or ask its owner", self.asked)
    }
}

impl fmt::Display for ForeignRepo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { repo, owner, .. } = self;
        write!(f, "repo: `{repo}` belongs to product `{owner}`; submit the job there, or ask its owner")
    }
}

impl Coordinator {
    pub fn sees_repo(&self, sight: &Sight, repo: &str) -> bool {
        *sight == Sight::Everything || sight.sees_repo(&self.fleet.view.lock().tenants, repo)
    }
}
