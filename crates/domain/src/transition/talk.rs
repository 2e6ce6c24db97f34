//! What a job and people say to each other: asked by the holder, answered by people, given up at a deadline.
//!
//! An open question keeps a queued job where it is, however it came back there: whoever ran it next would only ask again.
//! A question of a job that will not run again is withdrawn.

use super::{Refusal, Transition};
use crate::conversation::{Closed, ClosedHow, Delivered};
use crate::{
    Ask, Conversation, Epoch, FailReason, Failure, Job, JobKind, Message, NewEvent, Question, QuestionKind,
    RequestId, Stage, State, TalkError, Timestamp, limits,
};

fn of(job: &mut Job) -> &mut Conversation {
    job.conversation.get_or_insert_default()
}

pub(super) fn ask(next: &mut Transition, ask: &Ask, now: Timestamp) -> Result<(), Refusal> {
    let (epoch, policy) = (next.job.epoch, next.job.spec.ask);
    let talk = of(&mut next.job);
    if talk.asked_as(ask).is_some() {
        return Ok(());
    }
    if talk.open().count() >= limits::OPEN_QUESTIONS {
        return Err(TalkError::TooManyOpen(limits::OPEN_QUESTIONS).into());
    }
    if talk.asked >= limits::JOB_QUESTIONS {
        return Err(TalkError::TooManyAsked(limits::JOB_QUESTIONS).into());
    }
    let Ask { kind, key, text, options, default, deadline } = ask.clone();
    talk.asked += 1;
    let question = Question {
        number: talk.asked,
        kind,
        key,
        text,
        options,
        default,
        epoch,
        asked_at: now,
        park_at: now.plus(policy.park_after()),
        deadline: now.plus(deadline.unwrap_or(policy.deadline()).min(policy.deadline())),
        closed: None,
    };
    let event = NewEvent::question_asked(&question);
    talk.questions.push(question);
    talk.forget_old();
    next.note(event);
    Ok(())
}

pub(super) fn answer(
    next: &mut Transition,
    number: u32,
    answer: &str,
    by: &str,
    now: Timestamp,
) -> Result<(), Refusal> {
    let talk = of(&mut next.job);
    let question = talk.question(number).ok_or(TalkError::NoSuchQuestion(number))?;
    match question.closed.as_ref().map(|closed| &closed.how) {
        None => {}
        Some(ClosedHow::Answered { by: before, answer: known }) => {
            return if (before.as_str(), known.as_str()) == (by, answer) {
                Ok(())
            } else {
                Err(TalkError::Answered { number, by: before.clone(), answer: known.clone() }.into())
            };
        }
        Some(_) => return Err(TalkError::Closed(number).into()),
    }
    let is_option = question.options.iter().any(|option| option == answer);
    if question.kind == QuestionKind::Permission && !is_option {
        return Err(TalkError::NotAnOption { number, options: question.options.join(", ") }.into());
    }
    let how = ClosedHow::Answered { by: by.to_owned(), answer: answer.to_owned() };
    close(talk, number, how, now);
    next.note(NewEvent::question_answered(number, answer, Some(by)));
    go_on(next, now);
    Ok(())
}

fn close(talk: &mut Conversation, number: u32, how: ClosedHow, now: Timestamp) {
    talk.told += 1;
    let closed = Closed { at: now, how, seq: Some(talk.told), delivered: None };
    if let Some(question) = talk.questions.iter_mut().find(|question| question.number == number) {
        question.closed = Some(closed);
    }
}

/// A queued job that waited for the last answer is ready.
fn go_on(next: &mut Transition, now: Timestamp) {
    if next.job.needs_input() {
        return;
    }
    if let State::Queued { ready_at, .. } = &mut next.job.state {
        *ready_at = now.min(*ready_at);
    }
}

pub(super) fn say(
    next: &mut Transition,
    id: &RequestId,
    text: &str,
    by: &str,
    now: Timestamp,
) -> Result<(), Refusal> {
    let known = next.job.conversation.iter().flat_map(|talk| &talk.messages).any(|message| message.id == *id);
    if known {
        return Ok(());
    }
    let from = next.job.stage();
    let refused = |action, remedy| Err(Refusal::Illegal { from, action, remedy });
    if from.is_terminal() {
        return refused("be told anything", "this stage is final; submit a new job instead");
    }
    if next.job.spec.kind == JobKind::Composite {
        return refused("be told anything: it is a composite", "say it to one of its children");
    }
    let talk = of(&mut next.job);
    let waiting = talk.messages.iter().filter(|message| message.delivered.is_none()).count();
    if waiting >= limits::WAITING_MESSAGES {
        return Err(TalkError::TooManyMessages(waiting).into());
    }
    talk.told += 1;
    let (seq, text, by) = (talk.told, text.to_owned(), by.to_owned());
    let event = NewEvent::message_sent(&by, &text);
    talk.messages.push(Message { id: id.clone(), seq, text, by, at: now, delivered: None });
    talk.forget_old();
    next.note(event);
    Ok(())
}

/// What is unknown or was delivered before is passed over.
pub(super) fn delivered(next: &mut Transition, seqs: &[u64], now: Timestamp) {
    let epoch = next.job.epoch;
    let Some(talk) = next.job.conversation.as_deref_mut() else { return };
    let delivered = Delivered { at: now, epoch };
    let mut number = 0;
    let answers = talk.questions.iter_mut().filter_map(|question| question.closed.as_mut());
    let answers = answers.filter_map(|closed| Some((closed.seq?, &mut closed.delivered)));
    let messages = talk.messages.iter_mut().map(|message| (message.seq, &mut message.delivered));
    for (seq, known) in answers.chain(messages) {
        if known.is_none() && seqs.contains(&seq) {
            *known = Some(delivered);
            number += 1;
        }
    }
    if number > 0 {
        talk.forget_old();
        next.note(NewEvent::messages_delivered(epoch, number));
    }
}

/// While it runs, its holder is told that nobody answered, and ends the run; in the queue there is nobody to tell.
pub(super) fn close_due(next: &mut Transition, now: Timestamp) {
    let due: Vec<Question> =
        next.job.open_questions().filter(|question| question.deadline <= now).cloned().collect();
    let mut given_up = None;
    for question in due {
        let number = question.number;
        let how =
            question.default.clone().map_or(ClosedHow::Expired, |answer| ClosedHow::Defaulted { answer });
        close(of(&mut next.job), number, how, now);
        match &question.default {
            Some(answer) => next.note(NewEvent::question_answered(number, answer, None)),
            None => {
                next.note(NewEvent::question_expired(&question));
                given_up.get_or_insert(question);
            }
        }
    }
    match given_up {
        Some(question) if next.job.stage() == Stage::Queued => {
            let failure = failure_of(&question);
            let event = NewEvent::unanswered(&failure);
            next.enter(State::Failed { failure }, event);
        }
        _ => go_on(next, now),
    }
}

fn failure_of(question: &Question) -> Failure {
    let detail = format!("nobody answered in time: {}", question.text);
    Failure { reason: FailReason::Unanswered, detail: Some(detail) }
}

/// Why a run failed, whatever its engine made of it: nobody answered what it asked.
pub(super) fn unanswered(job: &Job, run: Epoch) -> Option<Failure> {
    let mut questions = job.conversation.iter().flat_map(|talk| &talk.questions);
    let given_up = |question: &&Question| {
        question.epoch == run
            && question.closed.as_ref().is_some_and(|closed| closed.how == ClosedHow::Expired)
    };
    questions.find(given_up).map(failure_of)
}

/// Nobody has to answer any more.
pub(super) fn withdraw(job: &mut Job, at: Timestamp) {
    let Some(talk) = job.conversation.as_deref_mut() else { return };
    for question in talk.questions.iter_mut().filter(|question| question.is_open()) {
        question.closed = Some(Closed { at, how: ClosedHow::Withdrawn, seq: None, delivered: None });
    }
}
