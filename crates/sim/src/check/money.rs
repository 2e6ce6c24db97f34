//! Budgets: what every grant had to fit into, and what every run was charged for.
//!
//! The feed stands in the order of the commits, so what is summed up here is what was true at each of them.

use std::collections::{BTreeMap, BTreeSet};

use giga_domain::{
    Actor, BudgetSettings, Charge, ChargeHow, Epoch, Event, EventKind, Job, JobId, ProductId, Stage,
    Timestamp, Usd,
};

use super::standing::DAY_MS;
use super::story::{grant_of, is_held};
use super::{Evidence, Findings, Promise};
use crate::history::{Record, Word};

pub(super) fn check(evidence: &Evidence, found: &mut Findings) {
    let mut purse = Purse::of(evidence);
    once_each(evidence, found);
    for event in &evidence.events {
        purse.follow(event, found);
    }
    purse.nothing_else(found);
    for record in &evidence.records {
        if let Record::BudgetOff { at, product, reserved, leases } = record {
            let text = format!("at {at} {product} had {reserved} reserved and {leases} on its leases");
            found.add(Promise::ChargedOnce, text);
        }
    }
}

fn once_each(evidence: &Evidence, found: &mut Findings) {
    let mut seen = BTreeSet::new();
    for charge in &evidence.charges {
        let Some((job, epoch)) = charge.run else { continue };
        if !seen.insert((job, epoch, charge.how == ChargeHow::Correction)) {
            let text = format!("the run {epoch} of {job} was charged twice, {:?}", charge.how);
            found.add(Promise::ChargedOnce, text);
        }
    }
    for budget in &evidence.budgets {
        let charged: Usd = evidence
            .charges
            .iter()
            .filter(|charge| charge.product == budget.product && charge.run.is_some())
            .map(|charge| charge.usd)
            .sum();
        let spent = budget.spent.total.usd;
        if spent != charged {
            let text = format!("{} says that {spent} was spent; its runs cost {charged}", budget.product);
            found.add(Promise::ChargedOnce, text);
        }
    }
}

/// What is in flight of a product.
struct Held {
    product: ProductId,
    epoch: Epoch,
    /// What may have been reserved for it: more than one where the settings changed in that very commit.
    caps: BTreeSet<Usd>,
}

#[derive(Default)]
struct Spent {
    day: i64,
    today: Usd,
    total: Usd,
    /// Without what runs spent beyond their caps.
    today_within: Usd,
    total_within: Usd,
}

/// What a holder reported of one run: what got through for certain while it held the job and with its final report, and all
/// that may have.
#[derive(Default, Clone)]
struct Reported {
    at_work: Usd,
    in_the_end: Usd,
    perhaps: BTreeSet<Usd>,
}

/// A cancelled run that was charged all that it was allowed to spend, until its holder says what it cost.
struct Assumed {
    product: ProductId,
    epoch: Epoch,
    charged: Usd,
    at: Timestamp,
    reported: Reported,
}

struct Purse<'a> {
    jobs: BTreeMap<JobId, &'a Job>,
    asked: BTreeMap<JobId, Option<Usd>>,
    settings: BTreeMap<&'a ProductId, Vec<(Timestamp, BudgetSettings)>>,
    reported: BTreeMap<(JobId, Epoch), Reported>,
    charges: BTreeMap<(JobId, Epoch), &'a Charge>,
    /// What was given back, as the ledger says.
    refunds: BTreeMap<(JobId, Epoch), Usd>,
    assumed: BTreeMap<JobId, Assumed>,
    held: BTreeMap<JobId, Held>,
    spent: BTreeMap<ProductId, Spent>,
    paused: BTreeSet<ProductId>,
}

impl<'a> Purse<'a> {
    fn of(evidence: &'a Evidence) -> Self {
        let mut asked = BTreeMap::new();
        let mut settings: BTreeMap<&ProductId, Vec<_>> = BTreeMap::new();
        let mut reported: BTreeMap<(JobId, Epoch), Reported> = BTreeMap::new();
        for record in &evidence.records {
            match record {
                Record::Asked { job, cap } => {
                    asked.insert(*job, *cap);
                }
                Record::BudgetSet { at, product, settings: new } => {
                    settings.entry(product).or_default().push((*at, *new));
                }
                Record::Reporting { job, epoch, reported: amount } => {
                    let reported = reported.entry((*job, *epoch)).or_default();
                    reported.perhaps.insert(*amount);
                }
                Record::Held { epoch, word, reported: amount, after, .. } => {
                    let reported = reported.entry((after.id, *epoch)).or_default();
                    // A renewal after its job was cancelled is answered and writes nothing.
                    if after.epoch == *epoch && after.holder.is_some() {
                        reported.at_work = reported.at_work.max(*amount);
                    } else if *word != Word::On {
                        reported.in_the_end = reported.in_the_end.max(*amount);
                    }
                }
                _ => {}
            }
        }
        Self {
            jobs: evidence.jobs.iter().map(|job| (job.id, job)).collect(),
            asked,
            settings,
            reported,
            charges: evidence
                .charges
                .iter()
                .filter(|c| !mends(c))
                .filter_map(|c| Some((c.run?, c)))
                .collect(),
            refunds: evidence
                .charges
                .iter()
                .filter(|charge| mends(charge))
                .filter_map(|charge| Some((charge.run?, charge.usd.abs())))
                .collect(),
            assumed: BTreeMap::new(),
            held: BTreeMap::new(),
            spent: BTreeMap::new(),
            paused: BTreeSet::new(),
        }
    }

    /// In force at that time: two where they changed in the commit of that very time.
    fn settings_at(&self, product: &ProductId, at: Timestamp) -> Vec<BudgetSettings> {
        let all = self.settings.get(product).map(Vec::as_slice).unwrap_or_default();
        let before = all.iter().rev().find(|(since, _)| *since < at).map(|(_, settings)| *settings);
        let same = all.iter().filter(|(since, _)| *since == at).map(|(_, settings)| *settings);
        [before.unwrap_or_default()].into_iter().chain(same).collect()
    }

    fn follow(&mut self, event: &Event, found: &mut Findings) {
        match (event.kind, &event.product) {
            (EventKind::BudgetPaused, Some(product)) => {
                self.paused.insert(product.clone());
            }
            (EventKind::BudgetResumed, Some(product)) => {
                self.paused.remove(product);
            }
            _ => {}
        }
        let Some((id, _)) = event.job else { return };
        if event.kind == EventKind::CostReported {
            self.cost_reported(id, event, found);
        }
        if event.to.is_some_and(|to| !is_held(to)) {
            self.ended(id, event, found);
        }
        if let (Some(grant), Some(job)) = (grant_of(event), self.jobs.get(&id).copied()) {
            self.granted(job, grant.epoch, event.at, found);
        }
    }

    fn granted(&mut self, job: &Job, epoch: Epoch, at: Timestamp, found: &mut Findings) {
        let product = &job.product;
        if self.paused.contains(product) {
            let text = format!("{} was granted at epoch {epoch} while {product} was paused", job.id);
            found.add(Promise::BudgetKept, text);
        }
        let cap = self.asked.get(&job.id).copied().unwrap_or(job.spec.budget.usd);
        let in_flight: Usd = self
            .held
            .values()
            .filter(|held| held.product == *product)
            .map(|held| held.caps.first().copied().unwrap_or_default())
            .sum();
        let spent = self.spent.entry(product.clone()).or_default();
        spent.turn(at);
        let (today, total) = (spent.today, spent.total);
        let mut caps = BTreeSet::new();
        let mut fits_any = false;
        for settings in self.settings_at(product, at) {
            let own = cap.or(settings.job_cap).unwrap_or_default();
            let fits = |limit: Option<Usd>, spent: Usd| {
                limit.is_none_or(|limit| spent + in_flight + own.max(Usd::LEAST) <= limit)
            };
            fits_any |= fits(settings.limits.day, today) && fits(settings.limits.total, total);
            caps.insert(own);
        }
        if !fits_any {
            let text = format!(
                "{} was granted at epoch {epoch} with {today} spent today, {total} in all, {in_flight} in flight and \
                 {caps:?} for itself, under {:?}",
                job.id,
                self.settings_at(product, at)
            );
            found.add(Promise::BudgetKept, text);
        }
        self.held.insert(job.id, Held { product: product.clone(), epoch, caps });
    }

    fn ended(&mut self, id: JobId, event: &Event, found: &mut Findings) {
        let Some(Held { product, epoch, caps }) = self.held.remove(&id) else { return };
        let charge = self.charges.remove(&(id, epoch));
        let (amount, how) =
            charge.map_or((Usd::ZERO, ChargeHow::Measured), |charge| (charge.usd.max(Usd::ZERO), charge.how));
        let reported = self.reported.remove(&(id, epoch)).unwrap_or_default();
        let silent = event.from == Some(Stage::Building) && ends_in_silence(event);
        // What it reports of a cancelled run may have come afterwards.
        let least = if event.kind == EventKind::Cancelled { Usd::ZERO } else { reported.in_the_end }
            .max(reported.at_work);
        let known = reported.perhaps.iter().copied().chain([Usd::ZERO]).filter(|amount| *amount >= least);
        let mut right: BTreeSet<(Usd, bool)> = BTreeSet::new();
        for known in known {
            if silent {
                right.extend(caps.iter().map(|cap| (known.max(*cap), *cap > known)));
            } else {
                right.insert((known, false));
            }
        }
        if !right.contains(&(amount, how == ChargeHow::Assumed)) {
            let text = format!(
                "the run {epoch} of {id}, ended by {} from {:?}, was charged {amount} ({how:?}); right is one of {right:?}",
                event.kind, event.from
            );
            found.add(Promise::ChargedOnce, text);
        }
        if charge.is_some_and(|charge| charge.at != event.at) {
            let text =
                format!("the run {epoch} of {id} ended at {} and was charged at another time", event.at);
            found.add(Promise::ChargedOnce, text);
        }
        let within = amount.min(caps.last().copied().unwrap_or_default());
        self.spend(&product, amount, within, event.at, found);
        if event.kind == EventKind::Cancelled && how == ChargeHow::Assumed {
            let assumed = Assumed { product, epoch, charged: amount, at: event.at, reported };
            self.assumed.insert(id, assumed);
        }
    }

    /// What the run really cost is one of the figures that its holder reported; the rest of what was assumed is refunded.
    fn cost_reported(&mut self, id: JobId, event: &Event, found: &mut Findings) {
        let Some(Assumed { product, epoch, charged, at, reported }) = self.assumed.remove(&id) else {
            let text = format!("{id} was settled up, and nothing of it had been assumed");
            return found.add(Promise::ChargedOnce, text);
        };
        let real = event
            .data
            .get("usdMicros")
            .and_then(serde_json::Value::as_i64)
            .map_or(Usd::ZERO, Usd::from_micros);
        let refund = self.refunds.remove(&(id, epoch)).unwrap_or_default();
        let was_reported = reported.perhaps.contains(&real) || real.is_zero();
        if !was_reported || real < reported.at_work || refund != charged.less(real) {
            let text = format!(
                "the cancelled run {epoch} of {id} was charged {charged}, cost {real} and was given {refund} back"
            );
            found.add(Promise::ChargedOnce, text);
        }
        let spent = self.spent.entry(product).or_default();
        spent.turn(event.at);
        if at.as_millis().div_euclid(DAY_MS) == spent.day {
            spent.today = spent.today.less(refund);
            spent.today_within = spent.today_within.less(refund);
        }
        spent.total = spent.total.less(refund);
        spent.total_within = spent.total_within.less(refund);
    }

    fn spend(&mut self, product: &ProductId, amount: Usd, within: Usd, at: Timestamp, found: &mut Findings) {
        let highest = self.settings_at(product, at).into_iter().map(|settings| settings.limits);
        let (days, totals): (Vec<_>, Vec<_>) = highest.map(|limits| (limits.day, limits.total)).unzip();
        let spent = self.spent.entry(product.clone()).or_default();
        spent.turn(at);
        spent.today += amount;
        spent.total += amount;
        spent.today_within += within;
        spent.total_within += within;
        let passes = |limits: Vec<Option<Usd>>, spent: Usd| {
            let all: Option<Vec<Usd>> = limits.into_iter().collect();
            all.and_then(|all| all.into_iter().max()).is_some_and(|limit| spent > limit)
        };
        if passes(totals, spent.total_within) || passes(days, spent.today_within) {
            let text = format!(
                "{product} spent {} today and {} in all without any overrun, past its limit, at {at}",
                spent.today_within, spent.total_within
            );
            found.add(Promise::BudgetKept, text);
        }
    }

    fn nothing_else(&self, found: &mut Findings) {
        for (job, epoch) in self.charges.keys() {
            let text = format!("the run {epoch} of {job} was charged though it has not ended");
            found.add(Promise::ChargedOnce, text);
        }
        for (job, epoch) in self.refunds.keys() {
            let text = format!("something of the run {epoch} of {job} was given back, and nobody had asked");
            found.add(Promise::ChargedOnce, text);
        }
    }
}

fn ends_in_silence(event: &Event) -> bool {
    match event.kind {
        EventKind::LeaseExpired | EventKind::Cancelled => true,
        EventKind::Preempted => !matches!(event.actor, Actor::Factory(_)),
        _ => false,
    }
}

/// It takes part of an earlier charge back.
fn mends(charge: &Charge) -> bool {
    charge.how == ChargeHow::Correction
}

impl Spent {
    fn turn(&mut self, now: Timestamp) {
        let day = now.as_millis().div_euclid(DAY_MS);
        if day != self.day {
            (self.day, self.today, self.today_within) = (day, Usd::ZERO, Usd::ZERO);
        }
    }
}
