//! What a job may ask for: the policy floors that hold for it, and, for what comes from inside a job, what that job has.

use giga_domain::engine::SHELL;
use giga_domain::job::{JobKind, MergeBy, ShipMode};
use giga_domain::manifest::Manifest;
use giga_domain::policy_floor::{AsksTooMuch, keep_to};
use giga_domain::product::DEFAULT_PRODUCT;
use giga_domain::{EngineChoice, Job, PolicyFloor, ProductId, TreeLimits};

use crate::jobs::Origin;
use crate::products::full_names;
use crate::view::ViewState;
use crate::{Coordinator, FieldProblem};

impl Coordinator {
    /// Fills in what the manifest leaves open, refuses what asks for too much, and says how far the tree may grow.
    pub(crate) fn bound(
        &self,
        product: &ProductId,
        manifest: &mut Manifest,
        origin: &Origin<'_>,
    ) -> Result<TreeLimits, FieldProblem> {
        let problem = |AsksTooMuch { field, message }| FieldProblem::new(field, message);
        let from_inside = origin.under.is_some();
        if let Some(parent) = origin.parent.filter(|_| from_inside) {
            inherit(parent, manifest).map_err(problem)?;
        }
        let state = self.fleet.view.lock();
        let floors = floors(&state, product, manifest);
        keep_to(&floors, manifest).map_err(problem)?;
        Ok(TreeLimits::under(floors.iter().map(|(_, floor)| *floor), from_inside))
    }

    /// The policy floor of a product.
    pub(crate) fn floor_of(&self, product: &ProductId) -> PolicyFloor {
        let state = self.fleet.view.lock();
        state.tenants.product(product).map(|known| known.settings.policy.clone()).unwrap_or_default()
    }
}

/// Of the job's product and of whoever owns its repositories; those that nobody owns are under that of the default product.
fn floors<'a>(
    state: &'a ViewState,
    product: &ProductId,
    manifest: &Manifest,
) -> Vec<(&'a ProductId, &'a PolicyFloor)> {
    let owner = |repo: &str| {
        let names = std::iter::once(repo).chain(full_names(state, repo));
        names.map(|name| state.tenants.owner_of(name)).find_map(|owner| owner.map(|(id, _)| id.as_str()))
    };
    let mut holding = vec![product.as_str()];
    for repo in manifest.repos() {
        let owner = owner(repo).unwrap_or(DEFAULT_PRODUCT);
        if !holding.contains(&owner) {
            holding.push(owner);
        }
    }
    let of = |name: &str| state.tenants.products().find(|known| known.id.as_str() == name);
    holding.into_iter().filter_map(of).map(|known| (&known.id, &known.settings.policy)).collect()
}

/// Nobody hands out more than it has: what a child leaves open is as with the job from whose inside it comes, and what asks
/// for more is refused. A composite does nothing itself.
fn inherit(parent: &Job, child: &mut Manifest) -> Result<(), AsksTooMuch> {
    if child.kind == JobKind::Composite {
        return Ok(());
    }
    let spec = &parent.spec;
    let of = "that of the job that it comes from";
    if let Some(repo) = child.repos().find(|repo| spec.repos().all(|own| own != *repo)) {
        let own: Vec<&str> = spec.repos().collect();
        let own = if own.is_empty() { "has none".to_owned() } else { format!("works on {}", own.join(", ")) };
        return Err(AsksTooMuch::new("repo", format!("`{repo}` is not {of}, which {own}")));
    }
    inherit_engine(&spec.engine, child)?;
    if let Some(more) = child.capabilities.beyond(&spec.capabilities).next() {
        let more = child.capabilities.token(more);
        return Err(AsksTooMuch::new(
            "capabilities",
            format!("`{more}` is not among those of the job that it comes from"),
        ));
    }
    for needed in spec.capabilities.iter().filter(|needed| needed.shuts_in()) {
        child.capabilities.insert(needed.clone());
    }
    inherit_branches(parent, child)?;
    inherit_caps(parent, child)?;
    if child.ship == ShipMode::Auto && spec.ship != ShipMode::Auto {
        return Err(AsksTooMuch::new(
            "ship",
            format!("must be manual, like {of}: a child may not ship automatically"),
        ));
    }
    let gate = parent.gate();
    if child.review.quorum == 0 && child.review.reviewers.is_empty() {
        child.review = gate.clone();
    }
    if child.review.is_weaker_than(gate) {
        let message =
            format!("must ask for at least {} approval(s) from {}, like {of}", gate.quorum, gate.who());
        return Err(AsksTooMuch::new("review", message));
    }
    if let Some(most) = cap(spec.permissions, &mut child.permissions) {
        return Err(AsksTooMuch::new("permissions", format!("must be {most} at most, like {of}")));
    }
    if child.priority < spec.priority {
        return Err(AsksTooMuch::new(
            "priority",
            format!("must be {} at most, like {of}", spec.priority.as_str()),
        ));
    }
    Ok(())
}

fn inherit_engine(own: &EngineChoice, child: &mut Manifest) -> Result<(), AsksTooMuch> {
    let too_much = |message: String| Err(AsksTooMuch::new("engine", message));
    if own.is_any() {
        // Any engine is any that reads prompts.
        if child.engine.has(SHELL) {
            let message = "cannot be shell: the job that it comes from has an engine that reads prompts";
            return too_much(message.to_owned());
        }
        return Ok(());
    }
    if child.engine.is_any() {
        child.engine = own.clone();
        return Ok(());
    }
    let mut picks = child.engine.picks().to_vec();
    for asked in &mut picks {
        let Some(own_pick) = own.picks().iter().find(|pick| pick.name == asked.name) else {
            let among = own
                .single()
                .map_or_else(|| format!("must be among {own}"), |own| format!("must be {}", own.name));
            return too_much(format!("{among}, like that of the job that it comes from"));
        };
        if let Some(model) = &own_pick.model
            && asked.model.get_or_insert_with(|| model.clone()) != model
        {
            return too_much(format!("must be {own_pick}, like that of the job that it comes from"));
        }
    }
    child.engine = EngineChoice::new(picks);
    Ok(())
}

/// Where the work starts and where it goes, and who moves that branch.
fn inherit_branches(parent: &Job, child: &mut Manifest) -> Result<(), AsksTooMuch> {
    let spec = &parent.spec;
    let branches = [("base", &spec.base, &mut child.base), ("target", &spec.target, &mut child.target)];
    for (field, own, asked) in branches {
        if asked.is_none() {
            asked.clone_from(own);
        } else if asked != own {
            let own = own.as_deref().map_or("left out".to_owned(), |own| format!("`{own}`"));
            return Err(AsksTooMuch::new(
                field,
                format!("must be {own}, like that of the job that it comes from"),
            ));
        }
    }
    // The forge has gates of its own; the queue would go around them.
    if spec.merge.by == Some(MergeBy::PullRequest) && child.merge.by == Some(MergeBy::Push) {
        let message = "must be pull_request, like that of the job that it comes from";
        return Err(AsksTooMuch::new("merge.by", message));
    }
    child.merge = std::mem::take(&mut child.merge).or(&spec.merge);
    Ok(())
}

/// What a run may use up.
fn inherit_caps(parent: &Job, child: &mut Manifest) -> Result<(), AsksTooMuch> {
    let (own, asked) = (&parent.spec.budget, &mut child.budget);
    let over = [
        cap(own.usd, &mut asked.usd).map(|cap| format!("usd must be {cap} at most")),
        cap(own.tokens, &mut asked.tokens).map(|cap| format!("tokens must be {cap} at most")),
        cap(own.wall_ms, &mut asked.wall_ms).map(|cap| format!("wall must be {} s at most", cap / 1_000)),
    ];
    match over.into_iter().flatten().next() {
        Some(message) => {
            Err(AsksTooMuch::new("budget", format!("{message}, like that of the job that it comes from")))
        }
        None => Ok(()),
    }
}

/// The cap that is asked for too much of; one that was left out is as the parent's.
fn cap<T: PartialOrd + Copy>(own: Option<T>, asked: &mut Option<T>) -> Option<T> {
    let own = own?;
    (*asked.get_or_insert(own) > own).then_some(own)
}

#[cfg(test)]
mod tests {
    use giga_domain::job::{ConflictPolicy, ReviewGate};
    use giga_domain::manifest::parse_markdown;
    use giga_domain::{JobId, State, Timestamp};

    use super::*;

    fn manifest(fields: &str) -> Manifest {
        parse_markdown(format!("---\nname: a\n{fields}\n---\n").as_bytes()).unwrap().0
    }

    fn inherited(parent: &str, child: &str) -> Result<Manifest, AsksTooMuch> {
        let spec = manifest(parent).to_spec(Vec::new(), None);
        let parent = Job::new(JobId::MIN, "p".parse().unwrap(), spec, State::Blocked, Timestamp::ZERO);
        let mut child = manifest(child);
        inherit(&parent, &mut child).map(|()| child)
    }

    #[test]
    fn a_child_does_not_go_around_a_pull_request() {
        let parent = "repo: app\nmerge: {by: pull_request}";
        assert_eq!(inherited(parent, "repo: app\nmerge: {by: push}").unwrap_err().field, "merge.by");
        assert_eq!(inherited(parent, "repo: app").unwrap().merge.by, Some(MergeBy::PullRequest));
        inherited("repo: app", "repo: app\nmerge: {by: pull_request}").unwrap();
    }

    #[test]
    fn a_child_chooses_among_the_engines_of_its_parent() {
        let parent = "engine: [{name: claude, model: opus}, codex]";
        let engine = |child: &str| inherited(parent, child).map(|child| child.engine.to_string());
        assert_eq!(engine("priority: normal").unwrap(), "claude (opus), codex");
        assert_eq!(engine("engine: codex\nmodel: o5").unwrap(), "codex (o5)", "nobody chose its model");
        assert_eq!(engine("engine: claude").unwrap(), "claude (opus)");
        for more in ["engine: gemini", "engine: [codex, gemini]", "engine: claude\nmodel: sonnet"] {
            assert_eq!(engine(more).unwrap_err().field, "engine", "{more}");
        }
    }

    #[test]
    fn a_child_does_no_more_without_asking_than_its_parent() {
        use giga_domain::Permissions;
        let parent = "permissions: edit";
        assert_eq!(inherited(parent, "permissions: all").unwrap_err().field, "permissions");
        assert_eq!(inherited(parent, "priority: low").unwrap().permissions, Some(Permissions::Edit));
        assert_eq!(inherited(parent, "permissions: ask").unwrap().permissions, Some(Permissions::Ask));
    }

    #[test]
    fn any_engine_is_any_that_reads_prompts() {
        assert_eq!(
            inherited("priority: low", "priority: low\nengine: shell\nscript: make").unwrap_err().field,
            "engine"
        );
        inherited("repo: app", "engine: claude").unwrap();
        inherited("repo: app", "engine: [claude, codex]").unwrap();
        inherited("engine: shell\nscript: make", "engine: shell\nscript: make").unwrap();
        let plain = inherited("repo: app", "onConflict: fail").unwrap();
        assert_eq!((plain.on_conflict, plain.review), (ConflictPolicy::Fail, ReviewGate::default()));
    }
}
