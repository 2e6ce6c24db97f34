//! Questions and messages through the use cases: who hears what when, deadlines, and what it costs while nobody asks.

use std::time::Duration;

use giga_coordinator::{Directive, StreamEvent};
use giga_domain::{AlertKind, Ask, Delivery, FactoryId, FailReason, Holder, HolderAction, Job, Stage};

use crate::common::{Fleet, operator};

const HOUR: Duration = Duration::from_hours(1);

fn ask(text: &str, default: Option<&str>) -> Ask {
    Ask {
        text: text.to_owned(),
        options: vec!["yes".to_owned(), "it's no".to_owned()],
        default: default.map(str::to_owned),
        ..Ask::default()
    }
}

fn holder(job: &Job) -> Holder {
    Holder { factory: job.last_factory.clone().unwrap(), epoch: job.epoch }
}

async fn asking(fleet: &Fleet, mac: &FactoryId, name: &str, default: Option<&str>) -> Job {
    fleet.submit(&format!("name: {name}\nask: {{parkAfter: 10m, deadline: 1h}}")).await;
    let held = fleet.claim(mac, &format!("request-{name}")).await.unwrap();
    fleet.hold(&held, vec![HolderAction::Start]).await.unwrap();
    fleet.coordinator.ask(held.id, holder(&held), ask("Which port?", default)).await.unwrap().0
}

async fn directives(fleet: &Fleet, job: &Job) -> Vec<Directive> {
    fleet.coordinator.renew(job.id, holder(job), None).await.unwrap().directives
}

#[tokio::test]
async fn the_holder_hears_of_answers_and_when_to_let_go() {
    let fleet = Fleet::by_hand().await;
    let mac = fleet.factory("mac", &[], 2).await;
    let job = asking(&fleet, &mac, "one", None).await;
    assert_eq!(directives(&fleet, &job).await, []);
    fleet.coordinator.say(job.id, None, "faster".to_owned(), "ana".to_owned(), operator()).await.unwrap();
    assert_eq!(directives(&fleet, &job).await, [Directive::Input]);
    fleet.coordinator.delivered(job.id, holder(&job), vec![1]).await.unwrap();
    assert_eq!(directives(&fleet, &job).await, []);
    for _ in 0..20 {
        fleet.clock.advance(Duration::from_secs(30));
        directives(&fleet, &job).await;
    }
    assert_eq!(directives(&fleet, &job).await, [Directive::Park], "the question is open for ten minutes");
    let parked = fleet.hold(&job, vec![HolderAction::Release { checkpoint: None }]).await.unwrap();
    assert_eq!(parked.stage(), Stage::Queued);
    assert_eq!(fleet.claim(&mac, "too-early").await, None, "nobody runs what waits for an answer");
    fleet.coordinator.answer(job.id, None, "yes".to_owned(), "ana".to_owned(), operator()).await.unwrap();
    let next = fleet.claim(&mac, "next").await.expect("it is answered");
    assert_eq!(directives(&fleet, &next).await, [Directive::Input], "the next run is told");
}

#[tokio::test]
async fn deadlines_are_kept_and_nobody_is_asked_meanwhile() {
    let fleet = Fleet::by_hand().await;
    let mac = fleet.factory("mac", &[], 4).await;
    let commits = |fleet: &Fleet| fleet.store.stats().commits;
    assert_eq!(fleet.coordinator.close_questions_once().await.unwrap(), None, "nothing is asked");
    let with = asking(&fleet, &mac, "with", Some("yes")).await;
    fleet.clock.advance(Duration::from_secs(1));
    let without = asking(&fleet, &mac, "without", None).await;
    fleet.hold(&without, vec![HolderAction::Release { checkpoint: None }]).await.unwrap();
    let before = commits(&fleet);
    let pause = fleet.coordinator.close_questions_once().await.unwrap();
    assert_eq!(pause, Some(Duration::from_secs(3_599)), "until the first deadline");
    assert_eq!(commits(&fleet), before, "nothing is written before it");

    fleet.clock.advance(Duration::from_secs(3_599));
    assert_eq!(fleet.coordinator.close_questions_once().await.unwrap(), Some(Duration::from_secs(1)));
    let talk = fleet.job(with.id).await.conversation.unwrap();
    assert_eq!(talk.question(1).unwrap().answer(), Some("yes"), "the default is the answer");
    fleet.clock.advance(Duration::from_secs(1));
    assert_eq!(fleet.coordinator.close_questions_once().await.unwrap(), None);
    let failed = fleet.job(without.id).await;
    assert_eq!(failed.failure().map(|failure| failure.reason), Some(FailReason::Unanswered));
}

#[tokio::test]
async fn it_says_what_it_waits_for() {
    let fleet = Fleet::by_hand().await;
    let mac = fleet.factory("mac", &[], 1).await;
    let job = asking(&fleet, &mac, "one", Some("yes")).await;
    fleet.clock.advance(Duration::from_mins(5));
    let deadline = job.conversation.as_ref().unwrap().due().unwrap();
    let asks = format!("Which port?, asked 5 min ago, default `yes` at {deadline}");
    let (_, why) = fleet.coordinator.explain(job.id).await.unwrap();
    assert_eq!(why.summary, format!("running on mac; asks: {asks}"));
    fleet.hold(&job, vec![HolderAction::Release { checkpoint: None }]).await.unwrap();
    let (_, why) = fleet.coordinator.explain(job.id).await.unwrap();
    assert_eq!(why.summary, format!("waiting for an answer to: {asks}"));
    assert_eq!(
        why.remedies[0].command.as_deref(),
        Some(format!(r"giga job answer {} --question 1 yes|'it'\''s no'", job.id).as_str())
    );
    let alerts = fleet.coordinator.alerts().await.unwrap();
    let alert =
        alerts.iter().find(|alert| alert.kind == AlertKind::NeedsInput).expect("somebody has to answer");
    assert_eq!(
        (alert.job, alert.message.as_str()),
        (Some(job.id), format!("job {} asks: Which port?", job.id).as_str())
    );
    fleet.coordinator.answer(job.id, Some(1), "yes".to_owned(), "ana".to_owned(), operator()).await.unwrap();
    let alerts = fleet.coordinator.alerts().await.unwrap();
    assert!(alerts.iter().all(|alert| alert.kind != AlertKind::NeedsInput), "{alerts:?}");
}

#[tokio::test]
async fn an_answer_reaches_whoever_waits_for_it_at_once() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory_by(Delivery::Poll, "mac", 1).await;
    let job = asking(&fleet, &mac, "one", None).await;
    let mut stream = fleet.coordinator.dispatch().open_factory_stream(mac).unwrap();
    let (coordinator, id) = (fleet.coordinator.clone(), job.id);
    let waiting = tokio::spawn(async move { coordinator.conversation(id, 0, HOUR).await });
    fleet.coordinator.answer(id, None, "yes".to_owned(), "ana".to_owned(), operator()).await.unwrap();
    let talk = tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("it is woken").unwrap();
    assert_eq!(talk.unwrap().question(1).unwrap().answer(), Some("yes"));
    let news = tokio::time::timeout(Duration::from_secs(20), stream.next()).await.expect("its holder, too");
    assert!(matches!(news, Some(StreamEvent::News)), "{news:?}");
}
