//! Questions, answers and messages: kept with the job, fenced like everything that a holder writes, and found by when they
//! are due.

use std::time::Duration;

use giga_domain::{
    Ask, AskPolicy, Command, EventKind, FactoryId, FailReason, Holder, HolderAction, Job, JobId,
    QuestionKind, Refusal, Stage, State, TalkError,
};
use giga_ports::StoreError;
use giga_ports::store::{ExpireLeases, Steer};

use super::World;
use super::world::{LEASE, holder, user};

const DEADLINE: Duration = Duration::from_hours(1);

fn ask(text: &str, default: Option<&str>) -> HolderAction {
    HolderAction::Ask(Ask {
        kind: QuestionKind::Question,
        key: Some(format!("key of {text}")),
        text: text.to_owned(),
        options: vec!["ja ü".to_owned(), "no".to_owned()],
        default: default.map(str::to_owned),
        deadline: None,
    })
}

async fn steer(world: &World, job: JobId, command: Command) -> Result<Job, StoreError> {
    let request = super::steer_request();
    world.store.steer(Steer { job, request, command, if_rev: None, actor: user() }).await
}

fn answer(question: u32, answer: &str) -> Command {
    Command::Answer { question, answer: answer.to_owned(), by: "ana".to_owned() }
}

fn say(id: &str) -> Command {
    Command::Say { id: id.parse().unwrap(), text: "faster \u{1f3ed}".to_owned(), by: "ana".to_owned() }
}

async fn asking(world: &World, mac: &FactoryId, default: Option<&str>) -> (Job, Holder) {
    let ask_policy =
        AskPolicy { park_after_ms: Some(60_000), deadline_ms: Some(DEADLINE.as_millis() as u64) };
    let (job, holder) = world.building(mac, |spec| spec.ask = ask_policy).await;
    let job = world.hold(job.id, &holder, [ask("which port?", default)]).await.unwrap();
    (job, holder)
}

fn ready_in(job: &Job, world: &World) -> Option<Duration> {
    match job.state {
        State::Queued { ready_at, .. } => Some(ready_at.since(world.now())),
        _ => None,
    }
}

pub async fn what_is_said_is_kept(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = asking(world, &mac, Some("no")).await;
    assert_eq!(world.job(job.id).await, job);
    let answered = steer(world, job.id, answer(1, "ja ü")).await.unwrap();
    let told = steer(world, job.id, say("one")).await.unwrap();
    assert!(answered.rev < told.rev);
    assert_eq!(world.job(job.id).await, told);
    let delivered = world.hold(job.id, &holder, [HolderAction::Delivered(vec![1, 2])]).await.unwrap();
    assert_eq!(world.job(job.id).await, delivered);
    let talk = delivered.conversation.unwrap();
    assert_eq!(talk.question(1).and_then(|question| question.answer()), Some("ja ü"));
    assert_eq!(talk.messages[0].delivered.map(|delivered| delivered.epoch), Some(holder.epoch));
    let kinds: Vec<EventKind> =
        world.snapshot(job.id).await.events.iter().map(|event| event.kind).skip(3).collect();
    assert_eq!(
        kinds,
        [
            EventKind::QuestionAsked,
            EventKind::QuestionAnswered,
            EventKind::MessageSent,
            EventKind::MessageDelivered
        ]
    );
}

pub async fn the_same_question_and_the_same_message_again_are_one(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = asking(world, &mac, None).await;
    let told = steer(world, job.id, say("one")).await.unwrap();
    let before = world.snapshot(job.id).await;
    assert_eq!(world.hold(job.id, &holder, [ask("which port?", None)]).await.unwrap(), told);
    assert_eq!(steer(world, job.id, say("one")).await.unwrap(), told);
    assert_eq!(world.snapshot(job.id).await, before);
}

pub async fn a_refused_word_changes_nothing(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = asking(world, &mac, None).await;
    steer(world, job.id, answer(1, "no")).await.unwrap();
    let before = world.snapshot(job.id).await;
    for command in [answer(1, "ja ü"), answer(2, "no")] {
        let error = steer(world, job.id, command.clone()).await.unwrap_err();
        assert!(matches!(error, StoreError::Refused(Refusal::Talk(_))), "{command:?}: {error:?}");
    }
    assert_eq!(world.snapshot(job.id).await, before);
}

pub async fn a_holder_that_lost_its_lease_asks_nothing(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, first) = world.building(&mac, |_| ()).await;
    world.advance(LEASE);
    world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    let job = world.granted(job.id, &mac).await;
    steer(world, job.id, say("one")).await.unwrap();
    let before = world.snapshot(job.id).await;
    for action in [ask("which port?", None), HolderAction::Delivered(vec![1])] {
        let error = world.hold(job.id, &first, [action]).await.unwrap_err();
        assert!(matches!(error, StoreError::Refused(Refusal::Fenced { .. })), "{error:?}");
    }
    assert_eq!(world.snapshot(job.id).await, before);
    world.hold(job.id, &holder(&job), [ask("which port?", None)]).await.unwrap();
}

pub async fn a_parked_job_is_claimed_when_it_is_answered(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = asking(world, &mac, None).await;
    let parked = world.hold(job.id, &holder, [HolderAction::Release { checkpoint: None }]).await.unwrap();
    assert_eq!(ready_in(&parked, world), Some(DEADLINE));
    assert_eq!(ready_in(&world.job(job.id).await, world), Some(DEADLINE));
    world.advance(Duration::from_mins(5));
    let answered = steer(world, job.id, answer(1, "no")).await.unwrap();
    assert_eq!(ready_in(&answered, world), Some(Duration::ZERO));
    let granted = world.granted(job.id, &mac).await;
    assert_eq!(granted.conversation, answered.conversation, "the next run is told");
}

/// However the holder went: the question stays, and so does the job.
pub async fn a_question_outlives_its_run(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, _) = asking(world, &mac, None).await;
    world.advance(LEASE);
    let reaped = world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    assert_eq!(reaped.jobs, [job.id]);
    let queued = world.job(job.id).await;
    assert!(queued.needs_input() && queued.epoch > job.epoch);
    assert_eq!(ready_in(&queued, world), Some(Duration::from_mins(59)));
}

pub async fn questions_are_found_by_when_they_are_due(world: &World) {
    let mac = world.factory("mac-1").await;
    let read = async |limit| world.store.read().asking(limit).await.unwrap();
    assert_eq!(read(10).await, []);
    let (first, _) = asking(world, &mac, Some("no")).await;
    world.advance(Duration::from_mins(1));
    let (second, holder) = asking(world, &mac, None).await;
    let due = |job: &Job| (job.id, job.conversation.as_ref().unwrap().due().unwrap());
    assert_eq!(read(10).await, [due(&first), due(&second)]);
    assert_eq!(read(1).await, [due(&first)]);
    steer(world, first.id, answer(1, "no")).await.unwrap();
    assert_eq!(read(10).await, [due(&second)]);
    world.hold(second.id, &holder, [super::world::fail(false)]).await.unwrap();
    assert_eq!(read(10).await, [], "what failed asks nobody");
}

pub async fn what_nobody_answers_is_closed_at_its_deadline(world: &World) {
    let mac = world.factory("mac-1").await;
    let (with, _) = asking(world, &mac, Some("no")).await;
    let (without, holder) = asking(world, &mac, None).await;
    world.hold(without.id, &holder, [HolderAction::Release { checkpoint: None }]).await.unwrap();
    let early = steer(world, with.id, Command::CloseQuestions).await.unwrap();
    assert_eq!(early, with);
    world.advance(DEADLINE);
    let with = steer(world, with.id, Command::CloseQuestions).await.unwrap();
    assert_eq!(with.conversation.as_ref().and_then(|talk| talk.question(1)?.answer()), Some("no"));
    let without = steer(world, without.id, Command::CloseQuestions).await.unwrap();
    assert_eq!(without.stage(), Stage::Failed);
    assert_eq!(without.failure().map(|failure| failure.reason), Some(FailReason::Unanswered));
    assert_eq!(world.job(without.id).await, without);
    assert_eq!(world.store.read().asking(10).await.unwrap(), []);
}

pub async fn a_job_asks_so_much_and_no_more(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = asking(world, &mac, None).await;
    for text in ["b", "c", "d", "e"] {
        world.hold(job.id, &holder, [ask(text, None)]).await.unwrap();
    }
    let before = world.snapshot(job.id).await;
    let error = world.hold(job.id, &holder, [ask("f", None)]).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused(Refusal::Talk(TalkError::TooManyOpen(5)))), "{error:?}");
    assert_eq!(world.snapshot(job.id).await, before);
}
