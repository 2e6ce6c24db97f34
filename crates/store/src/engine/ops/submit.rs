//! Making jobs: all of a submit or none, each once, and nothing that would wait for itself.

use std::collections::{BTreeSet, HashMap, HashSet};

use giga_domain::job::{DepsMode, JobKind};
use giga_domain::transition::check_holder;
use giga_domain::{Actor, Job, JobId, JobSpec, NewEvent, Stage, State, graph};
use giga_ports::StoreError;
use giga_ports::store::{NewJob, Submit, Submitted};

use super::super::{Needs, Op, Working};

impl Op for Submit {
    fn needs(&self, needs: &mut Needs) {
        let beside: HashSet<JobId> = self.jobs.iter().map(|new| new.id).collect();
        let mut awaited_beside = HashSet::new();
        let mut waits_for_others = false;
        for new in &self.jobs {
            needs.jobs.insert(new.id);
            needs.made.insert(new.id, new.product.clone());
            needs.jobs.extend(new.spec.deps.iter().copied().chain(new.spec.parent));
            needs.graph.parents.extend(new.spec.parent);
            if let Some(key) = &new.spec.idempotency_key {
                needs.keys.insert((new.product.clone(), key.clone()));
            }
            let (here, elsewhere): (Vec<JobId>, Vec<JobId>) =
                new.spec.deps.iter().partition(|dep| beside.contains(dep));
            awaited_beside.extend(here);
            waits_for_others |= !elsewhere.is_empty();
        }
        // A parent that gets a child with deps comes to wait for these: nobody may wait for the parent that way.
        if waits_for_others {
            needs.graph.awaited.extend(self.jobs.iter().filter_map(|new| new.spec.parent));
        }
        for new in self.jobs.iter().filter(|new| awaited_beside.contains(&new.id)) {
            if let Some(key) = &new.spec.idempotency_key {
                needs.graph.keys.insert((new.product.clone(), key.clone()));
            }
        }
    }

    fn decide(&self, working: &mut Working) -> Result<Vec<Submitted>, StoreError> {
        // Everything is checked before anything is made.
        let mut stands_for = HashMap::new();
        for (place, new) in self.jobs.iter().enumerate() {
            stands_for.insert(new.id, same_as(&self.jobs, place, working)?);
        }
        let beside: HashSet<(&JobId, _)> = self.jobs.iter().map(|new| (&new.id, &new.product)).collect();
        let is_new = |new: &&NewJob| stands_for[&new.id] == new.id && working.job(new.id).is_err();
        for new in self.jobs.iter().filter(is_new) {
            let known = |dep: &JobId| working.job(*dep).is_ok_and(|job| job.product == new.product);
            let unknown = |dep: &&JobId| !known(dep) && !beside.contains(&(*dep, &new.product));
            if let Some(dep) = new.spec.deps.iter().find(unknown) {
                return Err(StoreError::UnknownDep(*dep));
            }
            check_parent(new, working)?;
        }
        check_children(&self.jobs.iter().filter(is_new).collect::<Vec<_>>(), working)?;
        check_cycles(self.jobs.iter().filter(is_new), &stands_for, working)?;
        let mut answers = Vec::with_capacity(self.jobs.len());
        for new in &self.jobs {
            let id = stands_for[&new.id];
            answers.push(match working.job(id) {
                // The same id is this very command, repeated after its reply was lost.
                Ok(job) if id == new.id => Submitted::Created(job.clone()),
                Ok(job) => Submitted::Existing(job.clone()),
                Err(_) => Submitted::Created(make(new, &stands_for, &self.actor, working)),
            });
        }
        Ok(answers)
    }
}

/// The job that the one at `place` stands for: its own, or the one that its key made before, be it earlier in
/// this very command.
fn same_as(jobs: &[NewJob], place: usize, working: &Working) -> Result<JobId, StoreError> {
    let new = &jobs[place];
    let Some(key) = new.spec.idempotency_key.as_ref().filter(|_| working.job(new.id).is_err()) else {
        return Ok(new.id);
    };
    let same_key =
        |other: &&NewJob| other.product == new.product && other.spec.idempotency_key.as_ref() == Some(key);
    let known = working.job_by_key(&new.product, key).map(|(job, fingerprint)| (job.id, fingerprint));
    let earlier = jobs[..place].iter().find(same_key).map(|new| (new.id, &*new.fingerprint));
    match known.or(earlier) {
        Some((job, fingerprint)) if fingerprint != new.fingerprint => {
            Err(StoreError::KeyReused { key: key.clone(), job })
        }
        Some((job, _)) => Ok(job),
        None => Ok(new.id),
    }
}

fn make(new: &NewJob, stands_for: &HashMap<JobId, JobId>, actor: &Actor, working: &mut Working) -> Job {
    let mut spec = new.spec.clone();
    // A dep beside it may turn out to be a job that its key made before.
    for dep in &mut spec.deps {
        *dep = stands_for.get(dep).copied().unwrap_or(*dep);
    }
    let (job, event) = first_state(new, spec, working);
    let lost = |dep: &JobId| {
        let stage = working.job(*dep).map(Job::stage);
        stage.is_ok_and(|stage| stage.is_terminal() && stage != Stage::Shipped)
    };
    // Nobody who ends will point to it any more.
    let look_again = job.stage() == Stage::Blocked && job.spec.deps.iter().any(lost);
    working.insert_job(job.clone(), new.clone());
    if look_again {
        working.look_again(job.id);
    }
    let (product, place) = (job.product.clone(), (job.id, job.last_event));
    working.append(Some(product), Some(place), actor.clone(), event);
    job
}

/// A parent takes children while that can still mean something.
fn check_parent(new: &NewJob, working: &Working) -> Result<(), StoreError> {
    let Some(id) = new.spec.parent else { return Ok(()) };
    let parent = working.job(id).ok().filter(|parent| parent.product == new.product);
    let parent = parent.ok_or(StoreError::UnknownParent(id))?;
    if let Some(holder) = &new.under {
        check_holder(parent, holder)?;
    }
    let why = match parent.spec.kind {
        JobKind::Composite if parent.stage() != Stage::Blocked => {
            Some("takes no more children: a composite does so only while it waits for some")
        }
        JobKind::Agent if parent.stage().is_terminal() => Some("is over and takes no more children"),
        JobKind::Composite => unequal_deps(&parent.spec, &new.spec),
        JobKind::Agent => None,
    };
    if let Some(why) = why {
        return Err(StoreError::ParentClosed(id, why));
    }
    let above = working.loaded().graph.parents.get(&id).map_or(0, |parent| parent.above);
    // The parent itself is one more.
    if above + 1 > new.tree.depth { Err(StoreError::TooDeep(new.tree.depth)) } else { Ok(()) }
}

/// Nobody gets more children than it may have. The parents are locked, so nobody else gives them any meanwhile.
fn check_children(new: &[&NewJob], working: &Working) -> Result<(), StoreError> {
    let mut coming: HashMap<JobId, usize> = HashMap::new();
    for new in new {
        let Some(parent) = new.spec.parent else { continue };
        let count = coming.entry(parent).or_insert_with(|| {
            let there = working.loaded().graph.parents.get(&parent).map_or(0, |parent| parent.children);
            // Those that commands before it in the batch made.
            there + working.made().filter(|job| job.spec.parent == Some(parent)).count()
        });
        *count += 1;
        if *count > new.tree.children {
            return Err(StoreError::TooManyChildren { parent, most: new.tree.children });
        }
    }
    Ok(())
}

/// What a composite waits for, its children wait for too. Whoever submits them says so, because these jobs have to be
/// locked with the others.
fn unequal_deps(parent: &JobSpec, child: &JobSpec) -> Option<&'static str> {
    if parent.deps.is_empty() {
        return None;
    }
    let own: BTreeSet<&JobId> = child.deps.iter().collect();
    if !parent.deps.iter().all(|dep| own.contains(dep)) {
        return Some("waits for deps that this child does not wait for");
    }
    (child.deps_mode == DepsMode::Any)
        .then_some("has deps of its own, which its children wait for too: they cannot have depsMode any")
}

/// Edges come into being here alone: from a new job to its deps, and from a composite to its new child.
fn check_cycles<'a>(
    new: impl Iterator<Item = &'a NewJob>,
    stands_for: &HashMap<JobId, JobId>,
    working: &Working,
) -> Result<(), StoreError> {
    let mut waits: HashMap<JobId, Vec<JobId>> = HashMap::new();
    let mut starts = Vec::new();
    for new in new.filter(|new| !new.spec.deps.is_empty()) {
        starts.push(new.id);
        let deps = new.spec.deps.iter().map(|dep| stands_for.get(dep).unwrap_or(dep));
        waits.entry(new.id).or_default().extend(deps);
        if let Some(parent) = new.spec.parent.filter(|id| is_composite(*id, working)) {
            waits.entry(parent).or_default().push(new.id);
        }
    }
    if starts.is_empty() {
        return Ok(());
    }
    for (waiting, awaited) in &working.loaded().graph.waits {
        waits.entry(*waiting).or_default().push(*awaited);
    }
    // Those that commands before it in the batch made.
    for job in working.made() {
        waits.entry(job.id).or_default().extend(&job.spec.deps);
        if let Some(parent) = job.spec.parent.filter(|id| is_composite(*id, working)) {
            waits.entry(parent).or_default().push(job.id);
        }
    }
    match graph::cycle(starts, |id| waits.get(&id).cloned().unwrap_or_default()) {
        Some(round) => Err(StoreError::Cycle(round)),
        None => Ok(()),
    }
}

fn is_composite(id: JobId, working: &Working) -> bool {
    working.job(id).is_ok_and(|job| job.spec.kind == JobKind::Composite)
}

fn first_state(new: &NewJob, spec: JobSpec, working: &Working) -> (Job, NewEvent) {
    let now = working.now();
    let shipped = |dep: &JobId| working.job(*dep).is_ok_and(|job| job.stage() == Stage::Shipped);
    let mut deps = spec.deps.iter();
    let free = match spec.deps_mode {
        DepsMode::All => deps.all(shipped),
        DepsMode::Any => spec.deps.is_empty() || deps.any(shipped),
    };
    let ready_at = spec.run_at.unwrap_or(now).max(now);
    let state = if free && spec.kind != JobKind::Composite {
        State::Queued { since: now, ready_at, target: None }
    } else {
        State::Blocked
    };
    let event = NewEvent::submitted(&spec, state.stage());
    let made = Job::new(new.id, new.product.clone(), spec, state, now);
    let job = Job { enqueued_at: ready_at, ..made };
    (job, event)
}
