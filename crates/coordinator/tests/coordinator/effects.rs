//! What the world outside is told: nothing is left out, nothing gets a second id, and nobody waits for somebody else.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::counted::Counted;
use crate::common::{Fleet, operator};
use async_trait::async_trait;
use giga_coordinator::{
    AddWebhook, Coordinator, Error, Options, Ports, SubmitRequest, job_name, tracked_body, tracker_key,
};
use giga_domain::manifest::from_json;
use giga_domain::{
    Effect, EffectOutcome, EffectState, EffectTarget, EventKind, FeedPos, OperatorAction, ProductSettings,
    Stage, Webhook, WebhookId,
};
use giga_ports::effects::TrackerItem;
use giga_ports::store::EffectFilter;
use giga_ports::{Effects, EffectsError};
use giga_testkit::effects::Recorded;
use serde_json::json;

struct Outside {
    fleet: Fleet,
    recorded: Arc<Recorded>,
    /// Leads.
    coordinator: Arc<Coordinator>,
}

impl Outside {
    async fn new() -> Self {
        let fleet = Fleet::by_hand().await;
        let recorded = Arc::new(Recorded::default());
        let coordinator = by_hand(&fleet, recorded.clone()).await;
        coordinator.dispatch().lead_once().await.unwrap().expect("nobody else leads");
        Self { fleet, recorded, coordinator }
    }

    async fn webhook(&self, product: Option<&str>, kinds: &[EventKind]) -> WebhookId {
        let add = AddWebhook {
            product: product.map(|product| product.parse().unwrap()),
            url: "https://example.com/hook".to_owned(),
            kinds: kinds.to_vec(),
            actor: operator(),
        };
        self.coordinator.effects().add_webhook(add).await.unwrap().id
    }

    /// As the follower does it: look at the feed, fan out, deliver.
    async fn round(&self) -> (usize, usize) {
        self.coordinator.refresh_once().await.unwrap();
        let made = self.coordinator.effects().fan_out_once().await.unwrap();
        (made, self.coordinator.effects().deliver_once().await.unwrap())
    }

    fn asked(&self) -> Vec<String> {
        self.recorded.asked().iter().map(|(effect, _)| effect.id.to_string()).collect()
    }

    async fn effects(&self) -> Vec<Effect> {
        self.coordinator.effects().list(&EffectFilter::default(), None, 10_000).await.unwrap()
    }

    async fn positions(&self, kind: EventKind) -> Vec<FeedPos> {
        let feed = self.coordinator.feed(FeedPos::ZERO, 100_000).await.unwrap();
        feed.iter().filter(|event| event.kind == kind).map(|event| event.pos).collect()
    }
}

async fn by_hand(fleet: &Fleet, effects: Arc<dyn Effects>) -> Arc<Coordinator> {
    let ports = Ports { effects, ..fleet.ports.clone() };
    Coordinator::by_hand(ports, Options::default()).await.unwrap()
}

fn failed(detail: &str) -> EffectOutcome {
    EffectOutcome::Failed { detail: detail.to_owned(), after: None }
}

#[tokio::test]
async fn every_event_that_somebody_wants_is_told_once() {
    let outside = Outside::new().await;
    outside.fleet.submit("name: before").await;
    let all = outside.webhook(None, &[]).await;
    let shipped = outside.webhook(Some("demo"), &[EventKind::Submitted]).await;
    let elsewhere = outside.webhook(Some("other"), &[EventKind::Submitted]).await;
    for n in 0..300 {
        outside.fleet.submit(&format!("name: job-{n}")).await;
    }
    let mut waited = 0;
    loop {
        let (made, delivered) = outside.round().await;
        if made == 0 && delivered == 0 && waited > 5 {
            break;
        }
        // What stands behind others for the same receiver is put off a little.
        waited += 1;
        outside.fleet.clock.advance(Duration::from_secs(5));
    }
    let events = outside.positions(EventKind::Submitted).await;
    let (before, events) = events.split_first().unwrap();
    let mut asked = outside.asked();
    let count = asked.len();
    asked.sort();
    asked.dedup();
    assert_eq!(count, asked.len(), "nothing twice");
    for pos in events {
        assert!(asked.contains(&format!("wh:{all}:{pos}")) && asked.contains(&format!("wh:{shipped}:{pos}")));
    }
    assert!(!asked.contains(&format!("wh:{all}:{before}")), "nobody listened yet");
    assert!(!asked.iter().any(|id| id.contains(&elsewhere.to_string())));
    assert!(
        outside
            .effects()
            .await
            .iter()
            .all(|effect| effect.state == EffectState::Delivered && effect.attempts == 1)
    );
    for effect in outside.effects().await {
        let of_all = effect.target == EffectTarget::Webhook(all);
        assert_eq!(effect.product.is_none(), of_all, "as much as its receiver sees");
    }

    let (effect, webhook) = outside
        .recorded
        .asked()
        .into_iter()
        .find(|(e, _)| e.id.as_str().contains(&shipped.to_string()))
        .unwrap();
    assert_eq!(webhook.map(|webhook| webhook.id), Some(shipped));
    assert_eq!(
        (&effect.payload["type"], &effect.payload["productId"]),
        (&json!("job.submitted"), &json!("demo"))
    );
    assert_eq!((&effect.payload["seq"], &effect.payload["to"]), (&json!(1), &json!("queued")));
}

#[tokio::test]
async fn whoever_leads_next_goes_on_where_the_last_one_stopped() {
    let outside = Outside::new().await;
    let hook = outside.webhook(None, &[EventKind::Submitted]).await;
    outside.fleet.submit("name: one").await;
    assert_eq!(outside.round().await, (1, 1));

    outside.coordinator.dispatch().step_down_once().await.unwrap();
    outside.fleet.submit("name: two").await;
    assert_eq!(outside.round().await.0, 0, "it does not lead");
    let next = by_hand(&outside.fleet, outside.recorded.clone()).await;
    next.dispatch().lead_once().await.unwrap().unwrap();
    assert_eq!(next.effects().fan_out_once().await.unwrap(), 1);
    // The one before believes that it leads, with what it knew then.
    assert_eq!(
        next.effects().fan_out_once().await.unwrap()
            + outside.coordinator.effects().fan_out_once().await.unwrap(),
        0
    );
    assert_eq!(next.effects().deliver_once().await.unwrap(), 1);
    let expected: Vec<String> =
        outside.positions(EventKind::Submitted).await.iter().map(|pos| format!("wh:{hook}:{pos}")).collect();
    assert_eq!(outside.asked(), expected);
}

#[tokio::test]
async fn two_that_both_send_send_everything_once() {
    let outside = Outside::new().await;
    outside.webhook(None, &[EventKind::Submitted]).await;
    for n in 0..200 {
        outside.fleet.submit(&format!("name: job-{n}")).await;
    }
    outside.coordinator.effects().fan_out_once().await.unwrap();
    let other = by_hand(&outside.fleet, outside.recorded.clone()).await;
    for _ in 0..10 {
        let (a, b) =
            tokio::join!(outside.coordinator.effects().deliver_once(), other.effects().deliver_once());
        assert!(a.is_ok() && b.is_ok());
        outside.fleet.clock.advance(Duration::from_secs(5));
    }
    let mut asked = outside.asked();
    assert_eq!(asked.len(), 200);
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), 200);
}

/// Never answers while it is stuck.
struct Stuck(Arc<Recorded>, AtomicBool);

#[async_trait]
impl Effects for Stuck {
    async fn deliver(&self, effect: &Effect, webhook: Option<&Webhook>) -> EffectOutcome {
        let outcome = self.0.deliver(effect, webhook).await;
        if self.1.load(Ordering::SeqCst) {
            std::future::pending::<()>().await;
        }
        outcome
    }

    async fn check_url(&self, url: &str) -> Result<(), EffectsError> {
        self.0.check_url(url).await
    }

    fn trackers(&self) -> Vec<String> {
        self.0.trackers()
    }

    async fn item(&self, tracker: &str, item: &str) -> Result<TrackerItem, EffectsError> {
        self.0.item(tracker, item).await
    }
}

#[tokio::test]
async fn what_a_dead_coordinator_was_sending_is_sent_again_under_the_same_id() {
    let outside = Outside::new().await;
    outside.webhook(None, &[EventKind::Submitted]).await;
    outside.fleet.submit("name: one").await;
    outside.coordinator.effects().fan_out_once().await.unwrap();
    let dying =
        by_hand(&outside.fleet, Arc::new(Stuck(outside.recorded.clone(), AtomicBool::new(true)))).await;
    {
        let sending = dying.effects().deliver_once();
        tokio::pin!(sending);
        tokio::select! {
            _ = &mut sending => panic!("it was stuck"),
            _ = outside.recorded.asked_at_least(1) => {}
        }
    }
    assert_eq!(outside.coordinator.effects().deliver_once().await.unwrap(), 0, "somebody may still be at it");
    outside.fleet.clock.advance(Duration::from_mins(2));
    assert_eq!(outside.coordinator.effects().deliver_once().await.unwrap(), 1);
    let asked = outside.asked();
    assert_eq!((asked.len(), &asked[0]), (2, &asked[1]));
}

#[tokio::test]
async fn a_receiver_that_is_away_holds_up_nobody_and_loses_no_attempts() {
    let outside = Outside::new().await;
    let away = outside.webhook(Some("demo"), &[EventKind::Submitted]).await;
    let fine = outside.webhook(Some("other"), &[EventKind::Submitted]).await;
    let target = EffectTarget::Webhook(away);
    let down = target.clone();
    outside.recorded.answer_with(move |effect| {
        if effect.target == down {
            failed("500")
        } else {
            EffectOutcome::Delivered { detail: "200".to_owned() }
        }
    });
    for n in 0..400 {
        outside.fleet.submit(&format!("name: job-{n}")).await;
    }
    outside.fleet.try_submit_for("other", "name: fine").await.unwrap();
    assert_eq!(outside.round().await, (401, 1), "the last in the queue went through at once");
    let sent = |id: WebhookId| outside.asked().iter().filter(|asked| asked.contains(&id.to_string())).count();
    assert_eq!((sent(away), sent(fine)), (1, 1), "one is enough to see that nobody answers");
    let effects = outside.effects().await;
    let attempts: u32 =
        effects.iter().filter(|effect| effect.target == target).map(|effect| effect.attempts).sum();
    assert_eq!(attempts, 1);

    // It comes back, and gets everything.
    outside.recorded.answer_with(|_| EffectOutcome::Delivered { detail: "200".to_owned() });
    for _ in 0..20 {
        outside.fleet.clock.advance(Duration::from_mins(1));
        outside.round().await;
    }
    assert!(outside.effects().await.iter().all(|effect| effect.state == EffectState::Delivered));
    assert_eq!(sent(away), 401);
}

#[tokio::test]
async fn what_a_receiver_never_came_back_for_is_given_up_tried_or_not() {
    let outside = Outside::new().await;
    outside.webhook(None, &[EventKind::Submitted]).await;
    outside.recorded.answer_with(|_| failed("500"));
    for n in 0..300 {
        outside.fleet.submit(&format!("name: job-{n}")).await;
    }
    outside.round().await;
    outside.fleet.clock.advance(Duration::from_hours(71));
    outside.coordinator.dispatch().lead_once().await.unwrap();
    outside.fleet.submit("name: young").await;
    outside.round().await;
    assert!(outside.effects().await.iter().all(|effect| !effect.is_over()));
    outside.fleet.clock.advance(Duration::from_hours(2));
    outside.round().await;
    let effects = outside.effects().await;
    let (dead, waiting): (Vec<_>, Vec<_>) = effects.iter().partition(|effect| effect.is_over());
    // The two that were tried have pauses of their own.
    assert!(dead.len() >= 298, "{}", dead.len());
    assert!(
        dead.iter().all(|effect| effect.detail.as_deref() == Some("the receiver stayed unreachable: 500"))
    );
    assert_eq!(waiting[0].payload["seq"], json!(1));
    assert!(waiting.iter().any(|effect| effect.created_at > dead[0].created_at), "the young one waits");
    assert_eq!(outside.asked().len(), 3, "once each time");
}

#[tokio::test]
async fn a_store_that_fails_once_silences_nobody() {
    let fleet = Fleet::by_hand().await;
    let recorded = Arc::new(Recorded::default());
    let counted = Arc::new(Counted::new(fleet.store.clone()));
    let ports = Ports { store: counted.clone(), effects: recorded.clone(), ..fleet.ports.clone() };
    counted.fail_next("take_effects");
    let coordinator = Coordinator::start(ports, Options::default()).await.unwrap();
    let add = AddWebhook {
        product: None,
        url: "https://example.com/hook".to_owned(),
        kinds: vec![EventKind::Shipped],
        actor: operator(),
    };
    let webhook = coordinator.effects().add_webhook(add).await.unwrap();
    let delivered = async {
        // Until it was told, whatever the pauses are: each message is reason to look.
        loop {
            coordinator.effects().test_webhook(&webhook, &operator()).await.unwrap();
            fleet.clock.advance(Duration::from_secs(10));
            let sent = tokio::time::timeout(Duration::from_millis(20), recorded.asked_at_least(1)).await;
            if sent.is_ok() {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), delivered).await.expect("it was never told");
    assert!(!counted.is_to_fail("take_effects"), "the first look failed");
    coordinator.stop().await;
}

#[tokio::test]
async fn whoever_was_added_elsewhere_misses_nothing() {
    let outside = Outside::new().await;
    outside.webhook(Some("other"), &[EventKind::Submitted]).await;
    outside.round().await;
    // The leader has heard nothing of this yet, and looks at the feed.
    let elsewhere = by_hand(&outside.fleet, outside.recorded.clone()).await;
    let add = AddWebhook {
        product: Some("demo".parse().unwrap()),
        url: "https://example.com/hook".to_owned(),
        kinds: vec![EventKind::Submitted],
        actor: operator(),
    };
    let added = elsewhere.effects().add_webhook(add).await.unwrap();
    outside.fleet.submit("name: one").await;
    assert_eq!(outside.coordinator.effects().fan_out_once().await.unwrap(), 1);
    assert_eq!(outside.effects().await[0].target, EffectTarget::Webhook(added.id));
}

#[tokio::test]
async fn the_same_call_with_the_same_key_makes_one_webhook() {
    let outside = Outside::new().await;
    let add = |url: &str, product: Option<&str>| AddWebhook {
        product: product.map(|product| product.parse().unwrap()),
        url: format!("https://example.com/{url}"),
        kinds: Vec::new(),
        actor: operator(),
    };
    let once = outside.coordinator.effects().add_webhook_once(add("a", None), Some("key")).await.unwrap();
    assert_eq!(
        outside.coordinator.effects().add_webhook_once(add("a", None), Some("key")).await.unwrap(),
        once
    );
    match outside.coordinator.effects().add_webhook_once(add("b", None), Some("key")).await {
        Err(Error::Invalid(problem)) => assert_eq!(problem.field, "idempotency-key"),
        other => panic!("{other:?}"),
    }
    outside.coordinator.effects().add_webhook_once(add("a", Some("demo")), Some("key")).await.unwrap();
    outside.coordinator.effects().add_webhook_once(add("a", None), Some("other")).await.unwrap();
    assert_eq!(outside.coordinator.effects().webhooks().await.unwrap().len(), 3);
}

#[tokio::test]
async fn what_was_given_up_is_an_event_and_never_leads_to_itself() {
    let outside = Outside::new().await;
    outside.webhook(None, &[]).await;
    outside.recorded.answer_with(|_| EffectOutcome::Refused { detail: "410 Gone".to_owned() });
    outside.fleet.submit("name: one").await;
    outside.round().await;
    let dead = outside.effects().await;
    // Its own beginning, and the job: one is enough to see that all the others would go the same way.
    let is_dead = |effect: &&Effect| effect.state == EffectState::Dead;
    assert_eq!((dead.len(), dead.iter().filter(is_dead).count()), (2, 1), "{dead:?}");
    outside.fleet.clock.advance(Duration::from_secs(5));
    assert_eq!(outside.round().await, (0, 0));
    let dead = outside.effects().await;
    assert!(dead.iter().all(|effect| effect.state == EffectState::Dead), "{dead:?}");
    assert_eq!(outside.positions(EventKind::EffectGivenUp).await.len(), dead.len());
    outside.fleet.clock.advance(Duration::from_mins(5));
    assert_eq!(outside.round().await, (0, 0), "nothing was made of the giving up");

    outside.recorded.answer_with(|_| EffectOutcome::Delivered { detail: "200".to_owned() });
    outside.coordinator.effects().revive(dead[0].id.clone(), operator()).await.unwrap();
    assert_eq!(outside.round().await, (0, 1), "somebody gave it another chance");
    let add = AddWebhook {
        product: None,
        url: "https://example.com".to_owned(),
        kinds: vec![EventKind::EffectGivenUp],
        actor: operator(),
    };
    match outside.coordinator.effects().add_webhook(add).await {
        Err(Error::Invalid(problem)) => assert_eq!(problem.field, "types[0]"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_removed_webhook_is_told_nothing_and_a_test_arrives() {
    let outside = Outside::new().await;
    let hook = outside.webhook(None, &[EventKind::Submitted]).await;
    let webhook = outside.coordinator.effects().webhooks().await.unwrap().remove(0);
    let test = outside.coordinator.effects().test_webhook(&webhook, &operator()).await.unwrap();
    assert_eq!(outside.round().await, (0, 1));
    assert_eq!(outside.asked(), [test.id.to_string()]);
    assert_eq!(outside.recorded.asked()[0].0.payload["type"], "webhook.test");

    outside.fleet.submit("name: one").await;
    outside.coordinator.effects().fan_out_once().await.unwrap();
    outside.coordinator.effects().remove_webhook(hook, operator()).await.unwrap();
    outside.fleet.submit("name: two").await;
    assert_eq!(outside.round().await, (0, 0));
    assert_eq!(outside.asked().len(), 1);

    outside.fleet.clock.advance(Duration::from_hours(24 * 365));
    assert_eq!(outside.coordinator.retire_old_effects().await.unwrap(), 2);
    assert!(outside.effects().await.is_empty());
    // Whoever comes later hears what happens from then on.
    outside.webhook(None, &[EventKind::Submitted]).await;
    outside.fleet.submit("name: three").await;
    outside.coordinator.dispatch().lead_once().await.unwrap();
    assert_eq!(outside.round().await, (1, 1));
}

fn item(title: &str) -> TrackerItem {
    TrackerItem {
        item: "acme/app#12".to_owned(),
        url: "https://github.com/acme/app/issues/12".to_owned(),
        title: title.to_owned(),
        body: "It says helo.".to_owned(),
        labels: Vec::new(),
    }
}

async fn ingest(outside: &Outside, text: &str) -> (giga_domain::Job, bool) {
    let item = outside.coordinator.effects().tracker_item("github", "acme/app#12").await.unwrap();
    let mut manifest = from_json(&json!({ "name": job_name(&item), "ship": "auto" })).unwrap();
    manifest.idempotency_key = Some(tracker_key("github", &item.item));
    let request = SubmitRequest {
        product: "demo".parse().unwrap(),
        manifest,
        body: tracked_body(text, &item),
        actor: operator(),
    };
    let ingested = outside.coordinator.ingest(request).await.unwrap();
    (ingested.job, ingested.submitted.is_some())
}

#[tokio::test]
async fn an_item_has_one_job_and_hears_where_it_stands() {
    let outside = Outside::new().await;
    outside.recorded.put_item("github", item("Greeting is wrong"));
    let (job, made) = ingest(&outside, "").await;
    assert!(made && job.spec.name == "Greeting is wrong");
    outside.recorded.put_item("github", item("Another title"));
    for text in ["", "more"] {
        let (again, made) = ingest(&outside, text).await;
        assert_eq!((again.id, made), (job.id, false), "whatever it says by now");
    }
    outside.fleet.submit("name: plain").await;
    // Somebody listens for the first time, while the tracker has not been told yet.
    outside.webhook(None, &[EventKind::Shipped]).await;
    outside.round().await;
    let mut stages: BTreeMap<u64, String> = BTreeMap::new();
    let collect = |stages: &mut BTreeMap<u64, String>| {
        for (effect, _) in outside.recorded.asked() {
            if let EffectTarget::Tracker { tracker, item } = &effect.target {
                assert_eq!(
                    (tracker.as_str(), item.as_str(), effect.job),
                    ("github", "acme/app#12", Some(job.id))
                );
                let seq = effect.payload["seq"].as_u64().unwrap();
                assert_eq!(effect.id.as_str(), format!("tracker:{}:{seq}", job.id));
                stages.insert(seq, effect.payload["to"].as_str().unwrap().to_owned());
            }
        }
    };
    collect(&mut stages);
    assert_eq!(stages.values().collect::<Vec<_>>(), ["queued"]);

    outside.coordinator.operate(job.id, OperatorAction::Cancel, None, None, operator()).await.unwrap();
    outside.round().await;
    collect(&mut stages);
    assert_eq!(stages.values().collect::<Vec<_>>(), ["queued", "cancelled"]);

    let before = outside.asked().len();
    let effect = outside.coordinator.effects().echo(job.id).await.unwrap();
    outside.coordinator.effects().deliver_once().await.unwrap();
    assert_eq!(outside.asked()[before..], [effect.id.to_string()], "told again because somebody asked");
    let plain = outside.fleet.submit("name: plain-two").await;
    assert!(matches!(outside.coordinator.effects().echo(plain.id).await, Err(Error::Invalid(_))));
    assert_eq!(outside.fleet.job(job.id).await.stage(), Stage::Cancelled);
}

#[tokio::test]
async fn a_product_reaches_no_further_than_its_repositories() {
    let outside = Outside::new().await;
    outside.recorded.put_item("github", item("Greeting"));
    let may = |product: &str, sees_everything: bool| {
        outside.coordinator.effects().usable_item(
            "github",
            "acme/app#12",
            &product.parse().unwrap(),
            sees_everything,
        )
    };
    match may("demo", false) {
        Err(Error::Invalid(problem)) => {
            assert!(problem.field == "item" && problem.message.contains("github-repos"), "{problem}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(may("demo", true).unwrap(), "acme/app#12");
    let owning = ProductSettings { repos: vec!["acme/app".to_owned()], ..ProductSettings::default() };
    outside.coordinator.set_product("demo".parse().unwrap(), owning, None, operator()).await.unwrap();
    assert!(may("demo", false).is_ok() && may("other", false).is_err());

    let (job, _) = ingest(&outside, "").await;
    outside.round().await;
    assert_eq!(outside.asked().len(), 1);
    // The operator says otherwise from here on.
    outside.recorded.allow(&[("other", "acme/app")]);
    assert!(may("demo", true).is_err() && may("other", false).is_ok());
    outside.coordinator.operate(job.id, OperatorAction::Cancel, None, None, operator()).await.unwrap();
    outside.round().await;
    assert_eq!(outside.asked().len(), 1, "it hears nothing more");
    assert!(matches!(outside.coordinator.effects().echo(job.id).await, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn a_fleet_that_tells_nobody_pays_nothing() {
    let fleet = Fleet::by_hand().await;
    let counted = Arc::new(Counted::new(fleet.store.clone()));
    let ports = Ports { store: counted.clone(), ..fleet.ports.clone() };
    let coordinator = Coordinator::by_hand(ports, Options::default()).await.unwrap();
    coordinator.dispatch().lead_once().await.unwrap().unwrap();
    coordinator.effects().fan_out_once().await.unwrap();
    counted.taken();
    for n in 0..20 {
        fleet.submit(&format!("name: job-{n}")).await;
        coordinator.refresh_once().await.unwrap();
        counted.taken();
        coordinator.effects().fan_out_once().await.unwrap();
        let asked = counted.taken();
        assert!(asked.is_empty(), "{asked:?}");
    }
}
