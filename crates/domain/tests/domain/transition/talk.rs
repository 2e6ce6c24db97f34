//! Questions, answers and messages: who may, how often, and what they do to where a job stands.

use std::time::Duration;

use giga_domain::conversation::{ClosedHow, Delivered};
use giga_domain::{
    Ask, AskPolicy, Command, Conversation, Epoch, EventKind, FailReason, HolderAction, Job, JobKind,
    OperatorAction, Question, QuestionKind, Refusal, Stage, State, TalkError, Timestamp, limits, transition,
};

use crate::transition::fixture::*;

const HOUR: Duration = Duration::from_hours(1);

fn apply(job: &Job, command: &Command, now: Timestamp) -> (Job, Vec<EventKind>) {
    let after = transition(job, command, now).unwrap_or_else(|refusal| panic!("{command:?}: {refusal}"));
    (after.job, after.events.iter().map(|event| event.kind).collect())
}

fn refused(job: &Job, command: &Command) -> String {
    transition(job, command, NOW).expect_err("it is refused").to_string()
}

fn held(job: &Job, action: HolderAction) -> Job {
    apply(job, &holder("a", job.epoch.0, vec![action]), NOW).0
}

fn asking(text: &str, default: Option<&str>) -> HolderAction {
    HolderAction::Ask(Ask {
        text: text.to_owned(),
        options: vec!["yes".to_owned(), "no".to_owned()],
        default: default.map(str::to_owned),
        ..Ask::default()
    })
}

fn running() -> Job {
    let mut job = job_in(Stage::Building);
    job.spec.ask = AskPolicy { park_after_ms: Some(600_000), deadline_ms: Some(3_600_000) };
    job
}

fn answer(question: u32, text: &str, by: &str) -> Command {
    Command::Answer { question, answer: text.to_owned(), by: by.to_owned() }
}

fn say(id: &str) -> Command {
    Command::Say { id: request(id), text: "faster".to_owned(), by: "ana".to_owned() }
}

fn release() -> HolderAction {
    HolderAction::Release { checkpoint: None }
}

fn question(job: &Job, number: u32) -> Question {
    job.conversation.as_ref().and_then(|talk| talk.question(number)).expect("it was asked").clone()
}

fn ready_at(job: &Job) -> Timestamp {
    match job.state {
        State::Queued { ready_at, .. } => ready_at,
        _ => panic!("it is {}", job.stage()),
    }
}

#[test]
fn a_question_says_until_when_it_can_be_answered() {
    let (job, events) = apply(&running(), &holder("a", 7, vec![asking("port?", Some("no"))]), NOW);
    assert_eq!(events, [EventKind::QuestionAsked]);
    assert!(job.needs_input());
    let asked = question(&job, 1);
    assert_eq!((asked.epoch, asked.asked_at), (Epoch(7), NOW));
    assert_eq!((asked.park_at, asked.deadline), (NOW.plus(HOUR / 6), NOW.plus(HOUR)));
    let talk = job.conversation.as_deref().expect("it asked");
    assert!(!talk.is_to_park(NOW.plus(HOUR / 7)));
    assert!(talk.is_to_park(NOW.plus(HOUR / 6)));
}

#[test]
fn a_deadline_of_its_own_may_be_shorter_and_not_longer() {
    let ask = |deadline| HolderAction::Ask(Ask { deadline: Some(deadline), ..Ask::default() });
    assert_eq!(question(&held(&running(), ask(HOUR / 2)), 1).deadline, NOW.plus(HOUR / 2));
    assert_eq!(question(&held(&running(), ask(HOUR * 2)), 1).deadline, NOW.plus(HOUR));
}

#[test]
fn the_same_question_again_is_the_same_question() {
    let first = held(&running(), asking("port?", None));
    assert_eq!(held(&first, asking("port?", None)), first, "while it is open");
    let answered = apply(&first, &answer(1, "yes", "ana"), NOW).0;
    assert_eq!(held(&answered, asking("port?", None)), answered, "and when it has its answer");
    let by_key = |key: &str| {
        HolderAction::Ask(Ask { key: Some(key.to_owned()), text: "port?".to_owned(), ..Ask::default() })
    };
    let keyed = held(&answered, by_key("a"));
    assert_eq!(question(&keyed, 2).key.as_deref(), Some("a"), "a key is another question");
    assert_eq!(held(&keyed, by_key("a")), keyed);
    let withdrawn = apply(&first, &holder("a", 7, vec![fail(false)]), NOW).0;
    let again = apply(&withdrawn, &operator(OperatorAction::Requeue), NOW).0;
    let claimed = apply(&again, &claim("a", "again"), NOW).0;
    assert_eq!(
        question(&held(&claimed, asking("port?", None)), 2).number,
        2,
        "what was withdrawn is asked anew"
    );
}

#[test]
fn a_job_asks_so_much_and_no_more() {
    let mut job = running();
    for number in 0..limits::OPEN_QUESTIONS {
        job = held(&job, asking(&number.to_string(), None));
    }
    let more = holder("a", 7, vec![asking("one more", None)]);
    assert_eq!(
        transition(&job, &more, NOW).unwrap_err(),
        Refusal::Talk(TalkError::TooManyOpen(limits::OPEN_QUESTIONS))
    );
    job = apply(&job, &answer(1, "yes", "ana"), NOW).0;
    job = apply(&job, &more, NOW).0;
    let talk = job.conversation.as_deref_mut().expect("it asked");
    talk.asked = limits::JOB_QUESTIONS;
    talk.questions.clear();
    assert!(refused(&job, &more).contains("200 questions"));
}

#[test]
fn what_is_over_is_forgotten_and_what_waits_is_not() {
    let mut job = running();
    for number in 1..=30 {
        job = held(&job, asking(&number.to_string(), None));
        job = apply(&job, &answer(number, "yes", "ana"), NOW).0;
        if number != 3 {
            job = held(&job, HolderAction::Delivered(vec![number.into()]));
        }
    }
    let kept: Vec<u32> =
        job.conversation.iter().flat_map(|talk| &talk.questions).map(|question| question.number).collect();
    assert_eq!(kept.len(), limits::QUESTIONS_KEPT);
    assert_eq!(kept[..2], [3, 12], "question 3 has an answer that no run was given");
}

#[test]
fn an_answer_is_given_once() {
    let job = held(&running(), asking("port?", None));
    let (answered, events) = apply(&job, &answer(1, "yes", "ana"), NOW);
    assert_eq!(events, [EventKind::QuestionAnswered]);
    assert!(!answered.needs_input());
    assert_eq!(question(&answered, 1).answer(), Some("yes"));
    assert!(answered.conversation.as_ref().is_some_and(|talk| talk.has_undelivered()));
    assert_eq!(apply(&answered, &answer(1, "yes", "ana"), NOW).0, answered, "the same again is repeated");
    assert!(refused(&answered, &answer(1, "no", "bo")).contains("answered by ana already: yes"));
    assert!(refused(&answered, &answer(9, "no", "bo")).contains("no question 9"));
}

#[test]
fn which_of_several_has_to_be_said() {
    let job = held(&held(&running(), asking("a?", None)), asking("b?", None));
    let meant = |job: &Job| job.conversation.as_deref().expect("it asked").only_open();
    assert_eq!(meant(&job), Err(TalkError::WhichOne("1, 2".to_owned())));
    let one = apply(&job, &answer(2, "yes", "ana"), NOW).0;
    assert_eq!(meant(&one), Ok(1));
    assert_eq!(meant(&apply(&one, &answer(1, "no", "ana"), NOW).0), Err(TalkError::NothingOpen));
}

#[test]
fn a_permission_is_one_of_its_options_and_a_question_is_anything() {
    let ask = |kind| {
        let options = vec!["allow".to_owned(), "reject".to_owned()];
        HolderAction::Ask(Ask { kind, text: "run make".to_owned(), options, ..Ask::default() })
    };
    let permission = held(&running(), ask(QuestionKind::Permission));
    assert!(refused(&permission, &answer(1, "sure", "ana")).contains("one of allow, reject"));
    apply(&permission, &answer(1, "allow", "ana"), NOW);
    apply(&held(&running(), ask(QuestionKind::Question)), &answer(1, "something else", "ana"), NOW);
}

#[test]
fn a_job_that_comes_back_with_an_open_question_waits_for_its_answer() {
    let asked = held(&running(), asking("port?", None));
    let expired = NOW.plus(LEASE);
    for (command, now, kind) in [
        (holder("a", 7, vec![release()]), NOW, EventKind::Parked),
        (Command::Expire, expired, EventKind::LeaseExpired),
        (holder("a", 7, vec![fail(true)]), NOW, EventKind::Retried),
    ] {
        let (queued, events) = apply(&asked, &command, now);
        assert_eq!((queued.stage(), events), (Stage::Queued, vec![kind]));
        assert_eq!(ready_at(&queued), NOW.plus(HOUR), "{kind}");
        let early = transition(&queued, &claim("b", "next"), now).unwrap_err();
        assert_eq!(early, Refusal::NotClaimable("it waits for an answer"), "{kind}");
        let answered = apply(&queued, &answer(1, "yes", "ana"), now.plus(LEASE)).0;
        assert_eq!(ready_at(&answered), now.plus(LEASE), "it goes on as soon as it is answered: {kind}");
        apply(&answered, &claim("b", "next"), now.plus(LEASE));
    }
}

#[test]
fn parking_uses_no_attempt_and_goes_on_when_all_is_answered() {
    let asked = held(&held(&running(), asking("a?", None)), asking("b?", None));
    let parked = held(&asked, release());
    assert_eq!(parked.attempts, 0);
    let one = apply(&parked, &answer(1, "yes", "ana"), NOW).0;
    assert_eq!(ready_at(&one), NOW.plus(HOUR), "another is still open");
    assert_eq!(ready_at(&apply(&one, &answer(2, "no", "ana"), NOW).0), NOW);
    let plain = held(&apply(&held(&running(), asking("a?", None)), &answer(1, "x", "ana"), NOW).0, release());
    assert_eq!(ready_at(&plain), NOW, "the answer was faster than the release");
}

#[test]
fn the_default_is_the_answer_at_the_deadline() {
    let asked = held(&running(), asking("port?", Some("no")));
    assert_eq!(apply(&asked, &Command::CloseQuestions, NOW.plus(HOUR / 2)).0, asked);
    for job in [asked.clone(), held(&asked, release())] {
        let (closed, events) = apply(&job, &Command::CloseQuestions, NOW.plus(HOUR));
        assert_eq!(events, [EventKind::QuestionAnswered]);
        assert_eq!(closed.stage(), job.stage());
        let closed = question(&closed, 1);
        assert_eq!(
            closed.closed.map(|closed| closed.how),
            Some(ClosedHow::Defaulted { answer: "no".to_owned() })
        );
    }
}

#[test]
fn without_a_default_a_queued_job_fails_and_a_running_one_is_told() {
    let asked = held(&running(), asking("port?", None));
    let (told, events) = apply(&asked, &Command::CloseQuestions, NOW.plus(HOUR));
    assert_eq!((told.stage(), events), (Stage::Building, vec![EventKind::QuestionExpired]));
    assert!(told.conversation.as_ref().is_some_and(|talk| talk.has_undelivered()), "its holder is told");
    let ended = held(&told, fail(true));
    assert_eq!(
        ended.failure().map(|failure| failure.reason),
        Some(FailReason::Unanswered),
        "however it ends"
    );
    let (failed, events) = apply(&held(&asked, release()), &Command::CloseQuestions, NOW.plus(HOUR));
    assert_eq!(events, [EventKind::QuestionExpired, EventKind::Failed]);
    let failure = failed.failure().expect("it failed");
    assert_eq!(failure.reason, FailReason::Unanswered);
    assert_eq!(failure.detail.as_deref(), Some("nobody answered in time: port?"));
    assert!(refused(&failed, &answer(1, "yes", "ana")).contains("closed"));
}

#[test]
fn nobody_is_asked_for_a_job_that_will_not_go_on() {
    let asked = held(&running(), asking("port?", None));
    for command in
        [holder("a", 7, vec![report()]), holder("a", 7, vec![fail(false)]), operator(OperatorAction::Cancel)]
    {
        let ended = apply(&asked, &command, NOW).0;
        assert!(!ended.needs_input(), "{command:?}");
        assert_eq!(
            question(&ended, 1).closed.map(|closed| (closed.how, closed.at)),
            Some((ClosedHow::Withdrawn, NOW))
        );
    }
}

#[test]
fn what_people_say_is_delivered_once() {
    let (told, events) = apply(&running(), &say("one"), NOW);
    assert_eq!(events, [EventKind::MessageSent]);
    let talk = |job: &Job| job.conversation.as_deref().expect("somebody spoke").clone();
    assert!(talk(&told).has_undelivered());
    let (done, events) = apply(&told, &holder("a", 7, vec![HolderAction::Delivered(vec![1])]), NOW);
    assert_eq!(events, [EventKind::MessageDelivered]);
    assert_eq!(talk(&done).messages[0].delivered, Some(Delivered { at: NOW, epoch: Epoch(7) }));
    assert!(!talk(&done).has_undelivered());
    assert_eq!(
        held(&done, HolderAction::Delivered(vec![1, 9])),
        done,
        "again, and of what is unknown: nothing"
    );
    assert!(!told.needs_input(), "a message asks for nothing");
    assert_eq!(apply(&done, &say("one"), NOW).0, done, "the same call again after a lost reply");
}

#[test]
fn messages_wait_for_whoever_can_read_them_and_not_without_end() {
    let mut queued = job_in(Stage::Queued);
    for number in 0..limits::WAITING_MESSAGES {
        queued = apply(&queued, &say(&format!("say-{number}")), NOW).0;
    }
    assert!(refused(&queued, &say("one")).contains("20 messages wait"));
    apply(&queued, &claim("b", "next"), NOW);
    let mut group = job_in(Stage::Blocked);
    group.spec.kind = JobKind::Composite;
    assert!(refused(&group, &say("one")).contains("children"));
    assert!(refused(&job_in(Stage::Shipped), &say("one")).contains("final"));
}

#[test]
fn a_conversation_of_before_is_read() {
    assert_eq!(serde_json::from_str::<Conversation>("{}").unwrap(), Conversation::default());
    let job = held(&running(), asking("port?", Some("no")));
    let kept = serde_json::to_string(&job.conversation).unwrap();
    assert_eq!(serde_json::from_str::<Option<Box<Conversation>>>(&kept).unwrap(), job.conversation);
}
