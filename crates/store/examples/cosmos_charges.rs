//! What Azure Cosmos DB charges for a job and for standing still.
//!
//! ```text
//! cargo run -p giga-store --features cosmos-emulator --example cosmos_charges
//! cargo run -p giga-store --features cosmos-emulator --example cosmos_charges -- 'cosmos://ACCOUNT…/giga/empty?…'
//! ```
//!
//! With an address it goes to the service, into an empty container, and the charges are the service's own. Without one it goes
//! to the emulator in this process, which charges a fixed 1.24 for each operation of a batch; so the second column
//! says what the emulator's own model charges for single documents of those sizes (5.8 RU to create and 8.7 to replace one of
//! 1 KB, twice that for each doubling), which is more than the service takes for long ones.
#![expect(clippy::print_stdout, reason = "the figures are what it is for")]
#![expect(clippy::unwrap_used, reason = "whoever runs it wants to see where it stopped")]

use std::sync::Arc;
use std::time::Duration;

use azure_data_cosmos_driver::in_memory_emulator::RequestUnitChargingModel;
use giga_domain::factory::{Advertised, FactoryScope};
use giga_domain::token::{Permission, TokenRecord, TokenSecret};
use giga_domain::{
    Actor, Command, FactoryId, Holder, HolderAction, JobId, JobSpec, OperatorAction, RunReport, Timestamp,
    TreeLimits,
};
use giga_ports::Clock;
use giga_ports::store::{
    Advertise, Claim, Claimed, DispatchStore, Enroll, EventReads, FactoryStore, Hold, JobReads, JobStore,
    MakeOffers, NewJob, NewOffer, Sent, Steer, Submit, TakeLead,
};
use giga_store::cosmos::{Address, Credential, EmulatedAccount, Spent, connect};
use giga_store::{BatchStore, CosmosBackend, Tuning};
use giga_testkit::ManualClock;
use serde_json::json;

const LEASE: Duration = Duration::from_mins(1);
const JOBS: u128 = 50;

struct Steps {
    backend: CosmosBackend,
    /// By step: its name, how often, what the service charged, what the model would.
    sums: Vec<(&'static str, u32, f64, f64)>,
    before: Spent,
}

impl Steps {
    fn done(&mut self, step: &'static str) {
        let now = self.backend.spent();
        let charged = now.request_units - self.before.request_units;
        let model = RequestUnitChargingModel::default();
        let commits = now.writes - self.before.writes;
        let length = usize::try_from(now.bytes - self.before.bytes).unwrap();
        let modelled = if commits == 0 {
            charged
        } else {
            // The head and the commit, with the few properties that each has.
            let each = length / usize::try_from(commits).unwrap();
            commits as f64 * (model.compute_replace_or_delete_ru(300, 8) + model.compute_create_ru(each, 3))
        };
        self.before = now;
        match self.sums.iter_mut().find(|(name, ..)| *name == step) {
            Some((_, times, sum, model)) => {
                *times += 1;
                *sum += charged;
                *model += modelled;
            }
            None => self.sums.push((step, 1, charged, modelled)),
        }
    }
}

#[tokio::main]
async fn main() {
    let account = EmulatedAccount::new(None);
    let container = match std::env::args().nth(1) {
        Some(url) => {
            let address = Address::parse(&url).unwrap();
            let credential = match &address.key_file {
                Some(path) => Credential::read(path).await.unwrap(),
                None => Credential::default(),
            };
            connect(&address, credential).await.unwrap()
        }
        None => account.container().await.unwrap(),
    };
    let clock = Arc::new(ManualClock::default());
    let backend = CosmosBackend::open(container, clock.clone()).await.unwrap();
    let store = BatchStore::start(backend.clone(), Tuning::default()).await.unwrap();
    let (user, factory): (Actor, FactoryId) =
        (Actor::Token("ana".parse().unwrap()), "mac-1".parse().unwrap());
    let token = TokenRecord {
        id: "token-1".parse().unwrap(),
        hash: TokenSecret::from_random("user", [7; 32]).hash(),
        permission: Permission::Factory { factory: factory.clone(), scope: FactoryScope::default() },
        label: "mac".to_owned(),
        created_at: Timestamp::ZERO,
        expires_at: None,
        revoked_at: None,
    };
    let enroll = Enroll { id: factory.clone(), scope: FactoryScope::default(), token, actor: user.clone() };
    store.enroll(enroll).await.unwrap();
    let advertised = Advertised { seat_limit: 100, ..Advertised::default() };
    store.advertise(Advertise { factory: factory.clone(), advertised }).await.unwrap();
    let node = "node-1".parse().unwrap();
    let term = store.lead(TakeLead { node, lease: LEASE }).await.unwrap().term;

    let mut steps = Steps { before: backend.spent(), backend: backend.clone(), sums: Vec::new() };
    for number in 0..JOBS {
        let spec: JobSpec = serde_json::from_value(json!({
            "name": format!("fix the {number}th bug"), "capabilities": [], "ship": "manual",
        }))
        .unwrap();
        let id = JobId::from_parts(clock.now(), number);
        let new = NewJob {
            id,
            product: "demo".parse().unwrap(),
            spec,
            manifest: json!({ "name": "fix a bug", "product": "demo" }),
            body: "What is wrong, how to see it, what should be there instead. ".repeat(30),
            persona: None,
            fingerprint: "f".repeat(64),
            under: None,
            tree: TreeLimits::default(),
        };
        store.submit(Submit { jobs: vec![new], actor: user.clone() }).await.unwrap();
        steps.done("submit");
        let rev = backend.job(id).await.unwrap().unwrap().rev;
        steps.done("a read that finds nothing new");
        let chosen = vec![NewOffer { job: id, rev, factory: factory.clone() }];
        let offers = store.offer(MakeOffers { term, chosen, pickup: LEASE }).await.unwrap();
        let seq = offers[0].as_ref().unwrap().dispatch_seq;
        steps.done("offer");
        store.sent(Sent { offers: vec![(id, seq)] }).await.unwrap();
        steps.done("sent");
        let claim = Claim {
            job: id,
            rev: None,
            dispatch_seq: Some(seq),
            factory: factory.clone(),
            request: format!("claim-{number}").parse().unwrap(),
            lease: LEASE,
        };
        let Claimed::Granted(job) = store.claim(claim).await.unwrap() else { panic!("nobody else is here") };
        steps.done("claim");
        let holder = Holder { factory: factory.clone(), epoch: job.epoch };
        let hold = |action| Hold { job: id, holder: holder.clone(), actions: vec![action] };
        store.hold(hold(HolderAction::Start)).await.unwrap();
        steps.done("start");
        store.hold(hold(HolderAction::Renew { lease: LEASE * 2 })).await.unwrap();
        steps.done("renew");
        let report =
            RunReport { summary: Some("Found it and fixed it. ".repeat(20)), ..RunReport::default() };
        store.hold(hold(HolderAction::Report(report))).await.unwrap();
        steps.done("report");
        let request = format!("ship-{number}").parse().unwrap();
        let command = Command::Operator { action: OperatorAction::Ship, reason: None };
        store.steer(Steer { job: id, request, command, if_rev: None, actor: user.clone() }).await.unwrap();
        steps.done("ship");
    }
    for _ in 0..JOBS {
        clock.advance(Duration::from_secs(7));
        store.lead(TakeLead { node: "node-1".parse().unwrap(), lease: LEASE }).await.unwrap();
        steps.done("the leader's renewal");
    }
    println!("{:<32}{:>12}{:>12}", "each", "RU charged", "RU modelled");
    for (step, times, charged, modelled) in &steps.sums {
        println!("{step:<32}{:>12.2}{:>12.2}", charged / f64::from(*times), modelled / f64::from(*times));
    }
    let (idle, life): (Vec<_>, Vec<_>) = steps.sums.iter().partition(|(step, ..)| step.contains(' '));
    let sum = |steps: &[&(&str, u32, f64, f64)], of: fn(&(&str, u32, f64, f64)) -> f64| -> f64 {
        steps.iter().map(|step| of(step) / f64::from(step.1)).sum()
    };
    println!(
        "{:<32}{:>12.2}{:>12.2}",
        "a job's life (one renewal)",
        sum(&life, |s| s.2),
        sum(&life, |s| s.3)
    );
    // The leader renews every 10 s; sweeps look about three times a minute whether there is anything to do.
    let minute = |of: fn(&(&str, u32, f64, f64)) -> f64| -> f64 {
        let each = |step: &(&str, u32, f64, f64)| of(step) / f64::from(step.1);
        3.0 * each(idle[0]) + 6.0 * each(idle[1])
    };
    println!("{:<32}{:>12.2}{:>12.2}", "an idle minute", minute(|s| s.2), minute(|s| s.3));

    let before = backend.spent();
    backend.save().await.unwrap();
    let after = backend.spent();
    println!(
        "folding the log of {JOBS} jobs: {:.0} RU charged, {} writes, {} bytes",
        after.request_units - before.request_units,
        after.writes - before.writes,
        after.bytes - before.bytes
    );
    let head = backend.feed_head().await.unwrap();
    println!(
        "{head} events, {:.0} bytes per job in the snapshot",
        (after.bytes - before.bytes) as f64 / JOBS as f64
    );
}
