//! Products: their share of the fleet, their weights, and the repositories that they own.

use std::collections::HashSet;

use giga_domain::manifest::is_author;
use giga_domain::product::owned_name;
use giga_domain::repo::{is_repo_name, meant_by};
use giga_domain::{
    Actor, Capability, Factory, PolicyFloor, Product, ProductId, ProductSettings, Rev, limits, merge_message,
};
use giga_ports::store::SetProduct;

use crate::view::ViewState;
use crate::{Coordinator, Error, FieldProblem, ForeignRepo};

/// More than this against the others would say nothing that this does not.
const MOST: f64 = 1e6;
const MOST_TOGETHER: u32 = 20;

impl Coordinator {
    /// Those that were ever set, by id.
    pub async fn products(&self) -> Result<Vec<Product>, Error> {
        Ok(self.core.store.read().products().await?)
    }

    /// One that was never set is an ordinary one.
    pub async fn product(&self, id: &ProductId) -> Result<Product, Error> {
        let known = self.products().await?.into_iter().find(|product| product.id == *id);
        Ok(known.unwrap_or_else(|| Product {
            id: id.clone(),
            settings: ProductSettings::default(),
            rev: Rev(0),
        }))
    }

    pub async fn set_product(
        &self,
        product: ProductId,
        settings: ProductSettings,
        if_rev: Option<Rev>,
        actor: Actor,
    ) -> Result<Product, Error> {
        check(&settings)?;
        let product = self.core.store.set_product(SetProduct { product, settings, if_rev, actor }).await?;
        self.fleet.view.lock().tenants.put_product(product.clone());
        Ok(product)
    }

    /// The problem of a job for a repository that another product owns: an error, or a warning where the flag
    /// `foreign_repos` lets it pass.
    pub(crate) fn foreign_repo<'a>(
        &self,
        product: &ProductId,
        mut repos: impl Iterator<Item = &'a str>,
    ) -> Result<Option<ForeignRepo>, Error> {
        let state = self.fleet.view.lock();
        let foreign = |name| state.tenants.owner_of(name).filter(|(owner, _)| *owner != product);
        let of_repo = |repo| std::iter::once(repo).chain(full_names(&state, repo)).find_map(foreign);
        let Some((asked, (owner, repo))) = repos.find_map(|asked| Some((asked, of_repo(asked)?))) else {
            return Ok(None);
        };
        let foreign = ForeignRepo { asked: asked.to_owned(), repo, owner: owner.clone() };
        if state.flag("foreign_repos") == "route" {
            Ok(Some(foreign))
        } else {
            Err(Error::ForeignRepo(foreign))
        }
    }
}

/// What a short name may stand for on the factories of the fleet.
pub(crate) fn full_names<'a>(state: &'a ViewState, repo: &str) -> Vec<&'a str> {
    if !is_repo_name(repo) {
        return Vec::new();
    }
    let known = |factory: &'a Factory| factory.advertised.repos.iter().map(|known| known.name.as_str());
    state.factories.values().flat_map(|factory| meant_by(repo, known(factory))).collect()
}

fn check(settings: &ProductSettings) -> Result<(), FieldProblem> {
    let share = settings.share;
    if !(share.is_finite() && share > 0.0 && share <= MOST) {
        let message = format!("`{share}` is no share; it is a number above 0 and up to {MOST}, such as 2.5");
        return Err(FieldProblem::new("share", message));
    }
    for (term, &weight) in settings.weights.iter() {
        if !(weight.is_finite() && (0.0..=MOST).contains(&weight)) {
            let message = format!("`{weight}` is no weight; it is a number from 0 to {MOST}, such as 1.5");
            return Err(FieldProblem::new(format!("weights.{term}"), message));
        }
    }
    check_merges(settings)?;
    check_policy(&settings.policy)?;
    check_repos(&settings.repos)
}

fn check_merges(settings: &ProductSettings) -> Result<(), FieldProblem> {
    if let Some(Err(why)) = settings.merge.message.as_deref().map(merge_message::check) {
        return Err(FieldProblem::new("merge.message", format!("the message {why}")));
    }
    if let Some(author) = settings.merge.author.as_deref().filter(|author| !is_author(author)) {
        let message =
            format!("`{author}` is no author; it is a name and an address, such as Ana <ana@example.org>");
        return Err(FieldProblem::new("merge.author", message));
    }
    if !(1..=MOST_TOGETHER).contains(&settings.merge_batch) {
        let message = format!(
            "`{}` is no number of results to merge together; it is one from 1 to {MOST_TOGETHER}",
            settings.merge_batch
        );
        return Err(FieldProblem::new("mergeBatch", message));
    }
    if settings.merge_checks.len() > limits::VERIFY_COMMANDS {
        let message = format!(
            "{} are too many; there are {} at most",
            settings.merge_checks.len(),
            limits::VERIFY_COMMANDS
        );
        return Err(FieldProblem::new("mergeChecks", message));
    }
    match settings.merge_checks.iter().position(|check| check.trim().is_empty() || check.contains('\0')) {
        Some(index) => {
            let message = "it is no command; write one such as `cargo test`";
            Err(FieldProblem::new(format!("mergeChecks[{index}]"), message))
        }
        None => Ok(()),
    }
}

fn check_policy(policy: &PolicyFloor) -> Result<(), FieldProblem> {
    if policy.quorum as usize > limits::REVIEWERS {
        let message =
            format!("`{}` are too many approvals; {} are the most", policy.quorum, limits::REVIEWERS);
        return Err(FieldProblem::new("policy.quorum", message));
    }
    if policy.engines.len() > limits::CAPABILITIES {
        let message =
            format!("{} are too many; there are {} at most", policy.engines.len(), limits::CAPABILITIES);
        return Err(FieldProblem::new("policy.engines", message));
    }
    for (index, engine) in policy.engines.iter().enumerate() {
        let field = || format!("policy.engines[{index}]");
        if engine == Capability::ANY_ENGINE || Capability::engine(engine).is_err() {
            let message = format!("`{engine}` is no engine; it is a word such as claude");
            return Err(FieldProblem::new(field(), message));
        }
        if policy.engines[..index].contains(engine) {
            return Err(FieldProblem::new(field(), format!("`{engine}` is listed twice")));
        }
    }
    if policy.max_depth.is_some_and(|depth| depth as usize > limits::DAG_DEPTH) {
        let message = format!("children of children go {} deep at most", limits::DAG_DEPTH);
        return Err(FieldProblem::new("policy.maxDepth", message));
    }
    Ok(())
}

fn check_repos(repos: &[String]) -> Result<(), FieldProblem> {
    if repos.len() > limits::PRODUCT_REPOS {
        let message =
            format!("{} are too many; a product owns {} at most", repos.len(), limits::PRODUCT_REPOS);
        return Err(FieldProblem::new("repos", message));
    }
    let mut seen = HashSet::new();
    for (index, repo) in repos.iter().enumerate() {
        let field = || format!("repos[{index}]");
        if !is_repo_name(repo) {
            let message = format!(
                "`{repo}` is no name of a repository; it is the last part of its URL without `.git`, such as hello"
            );
            return Err(FieldProblem::new(field(), message));
        }
        if !seen.insert(owned_name(repo)) {
            return Err(FieldProblem::new(field(), format!("`{repo}` is listed twice")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use giga_domain::{ScoreTerm, Weights};

    use super::*;

    fn refused(settings: &ProductSettings) -> String {
        check(settings).unwrap_err().field
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_field() {
        assert_eq!(check(&ProductSettings::default()), Ok(()));
        for share in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e7] {
            assert_eq!(refused(&ProductSettings { share, ..ProductSettings::default() }), "share");
        }
        for cost_fit in [-0.1, f64::NAN, f64::INFINITY] {
            let weights = Weights::default().with(ScoreTerm::CostFit, cost_fit);
            let settings = ProductSettings { weights, ..ProductSettings::default() };
            assert_eq!(refused(&settings), "weights.costFit");
        }
        let owning = |repos: &[&str]| ProductSettings {
            repos: repos.iter().map(|&repo| repo.to_owned()).collect(),
            ..ProductSettings::default()
        };
        assert_eq!(check(&owning(&["hello", "team/notes", "a.b-c_d", "my app"])), Ok(()));
        for bad in ["", "-x", "a ", " a", "a..b", "https://example.org/x.git", "git@host:x", "a//b", "ä"] {
            assert_eq!(refused(&owning(&["fine", bad])), "repos[1]", "{bad}");
        }
        let merging = |change: fn(&mut ProductSettings)| {
            let mut settings = ProductSettings::default();
            change(&mut settings);
            settings
        };
        for (change, field) in [
            ((|s| s.merge.message = Some("{nam}".to_owned())) as fn(&mut ProductSettings), "merge.message"),
            (|s| s.merge.author = Some("Ana".to_owned()), "merge.author"),
            (|s| s.merge_batch = 0, "mergeBatch"),
            (|s| s.merge_batch = 21, "mergeBatch"),
            (|s| s.merge_checks = vec!["make".to_owned(), " ".to_owned()], "mergeChecks[1]"),
            (|s| s.policy.quorum = 33, "policy.quorum"),
            (|s| s.policy.max_depth = Some(17), "policy.maxDepth"),
            (|s| s.policy.engines = vec!["claude".to_owned(), "any".to_owned()], "policy.engines[1]"),
            (|s| s.policy.engines = vec!["a b".to_owned()], "policy.engines[0]"),
            (|s| s.policy.engines = vec!["claude".to_owned(), "claude".to_owned()], "policy.engines[1]"),
            (|s| s.policy.engines = (0..65).map(|n| format!("e{n}")).collect(), "policy.engines"),
        ] {
            assert_eq!(refused(&merging(change)), field);
        }
        assert_eq!(refused(&owning(&["same", "other", "Same.git"])), "repos[2]");
        assert_eq!(refused(&owning(&vec!["x"; limits::PRODUCT_REPOS + 1])), "repos");
    }
}
