//! Keys that change something: who may, what they mean here, and the question before it is done.

use crossterm::event::KeyCode;
use giga_api::wire::{FactoryState, Job, JobKind, OperatorAction, PauseCause, Stage, TopicJobState};

use crate::model::{Model, Page, Tab, Tone, Typing, topic_key};
use crate::msg::{Action, Effect};
use crate::text::{clean, quoted};

/// What the key means here; `None` where it means nothing.
pub(super) fn act(model: &mut Model, key: char) -> Option<Vec<Effect>> {
    let wanted = wanted(model, key)?;
    if !model.who.may_act() {
        let role = model.who.role;
        let text = format!("read-only: the role {role} may not do that (giga token create --role operator)");
        model.say(Tone::Bad, text);
        return Some(Vec::new());
    }
    Some(match wanted {
        Wanted::Action(action) if action.question().is_some() => {
            model.ask = Some(action);
            Vec::new()
        }
        Wanted::Action(action) => go(model, action),
        Wanted::Comment { id, name, epoch } => {
            super::prompt::open(model, Typing::Comment { id, name, epoch });
            Vec::new()
        }
        Wanted::Say { id, name, question } => {
            super::prompt::open(model, Typing::Say { id, name, question });
            Vec::new()
        }
        Wanted::Not(why) => {
            model.say(Tone::Bad, why);
            Vec::new()
        }
    })
}

/// The answer to a question.
pub(super) fn answer(model: &mut Model, key: KeyCode) -> Vec<Effect> {
    let Some(action) = model.ask.take() else { return Vec::new() };
    match (key, action) {
        (KeyCode::Char('y'), action) => go(model, action),
        (KeyCode::Char('s'), Action::PauseBudget { product, .. }) => {
            go(model, Action::PauseBudget { product, stop_running: true })
        }
        _ => {
            model.say(Tone::Plain, "nothing changed");
            Vec::new()
        }
    }
}

pub(super) fn go(model: &mut Model, action: Action) -> Vec<Effect> {
    model.say(Tone::Plain, format!("… {}", action.line()));
    vec![Effect::Act(action)]
}

enum Wanted {
    Action(Action),
    Comment {
        id: String,
        name: String,
        epoch: Option<u64>,
    },
    Say {
        id: String,
        name: String,
        question: Option<u32>,
    },
    /// Why it cannot be done.
    Not(String),
}

fn wanted(model: &Model, key: char) -> Option<Wanted> {
    match (model.page(), model.tab) {
        (Some(Page::Job(page)), _) => match &page.job {
            Some(job) => on_job(model, job, key),
            None => None,
        },
        (Some(Page::Factory { id, .. }), _) if key == 'd' => on_factory(model, id),
        (None, Tab::Factories) if key == 'd' => on_factory(model, &model.selected()?),
        (None, Tab::Jobs) if matches!(key, 'r' | 'S' | 'x') => {
            let id = model.selected()?;
            let job = model.jobs.rows.iter().find(|job| job.id == id)?;
            on_job(model, job, key)
        }
        (None, Tab::Budgets) => on_budget(model, key),
        (None, Tab::Topics) => on_topic(model, key),
        _ => None,
    }
}

/// Does the key do anything for a job that stands where this one does?
pub(crate) fn fits_stage(job: &Job, key: &str) -> bool {
    key.chars().next().and_then(|key| judge(job, key)).is_some_and(|(fits, _)| fits)
}

/// The stages that an action makes sense in, and what to say elsewhere; the coordinator decides in the end.
fn judge(job: &Job, key: char) -> Option<(bool, &'static str)> {
    let stage = job.stage;
    Some(match key {
        'r' => (
            matches!(stage, Stage::Failed | Stage::Review)
                || (stage == Stage::Blocked && job.kind == JobKind::Composite),
            "only a failed job or one in review can be requeued",
        ),
        'S' => (stage == Stage::Testing, "only a job that is ready to ship can be shipped"),
        'x' => (!stage.is_terminal(), "it has already finished"),
        'X' => (stage == Stage::Review, "only a job in review can be rejected; x cancels"),
        'i' => (job.needs_input, "it asks nothing"),
        'm' => (!stage.is_terminal() && job.kind == JobKind::Agent, "nobody reads messages to it"),
        'A' | 'C' => (stage == Stage::Review, "only a job in review can be reviewed"),
        _ => return None,
    })
}

fn on_job(model: &Model, job: &Job, key: char) -> Option<Wanted> {
    let (fits, remedy) = judge(job, key)?;
    if !fits {
        return Some(Wanted::Not(format!("{} is {}: {remedy}", clean(&job.name), job.stage.label())));
    }
    let (id, name, meant) = (job.id.clone(), job.name.clone(), meant(model, &job.id, &job.name));
    let epoch = job.result.as_ref().map(|result| result.lease_epoch);
    let act =
        |act| Wanted::Action(Action::Job { act, id: id.clone(), name: name.clone(), meant: meant.clone() });
    Some(match key {
        'r' => act(OperatorAction::Requeue),
        'S' => act(OperatorAction::Ship),
        'x' => act(OperatorAction::Cancel),
        'X' => act(OperatorAction::Reject),
        'i' => {
            let question = job.open_questions.first().map(|question| question.number);
            Wanted::Say { id, name, question }
        }
        'm' => Wanted::Say { id, name, question: None },
        'A' => Wanted::Action(Action::Approve { id, name, meant, epoch }),
        _ => Wanted::Comment { id, name, epoch },
    })
}

/// How the command line calls the job: by its name, where that is a plain word and no other job here has it.
pub(crate) fn meant(model: &Model, id: &str, name: &str) -> String {
    let rows = model.jobs.rows.iter().chain(model.board.columns.values().flatten());
    let shared = rows.into_iter().any(|job| job.name == name && job.id != id);
    if shared || quoted(name) != name { id.to_owned() } else { name.to_owned() }
}

fn on_factory(model: &Model, id: &str) -> Option<Wanted> {
    let undo = model.factory(id)?.state == FactoryState::Draining;
    Some(Wanted::Action(Action::Drain { factory: id.to_owned(), undo }))
}

fn on_budget(model: &Model, key: char) -> Option<Wanted> {
    let product = model.selected()?;
    let budget = model.shown_budgets().into_iter().find(|budget| budget.product_id == product)?;
    Some(match (key, &budget.paused) {
        ('P', Some(pause)) if pause.cause == PauseCause::Operator => {
            Wanted::Not(format!("{} is already paused", clean(&product)))
        }
        ('P', _) => Wanted::Action(Action::PauseBudget { product, stop_running: false }),
        ('R', None) => Wanted::Not(format!("{} is not paused", clean(&product))),
        ('R', Some(_)) => Wanted::Action(Action::ResumeBudget { product }),
        _ => return None,
    })
}

fn on_topic(model: &Model, key: char) -> Option<Wanted> {
    let selected = model.selected()?;
    let topic = model.shown_topics().into_iter().find(|topic| topic_key(topic) == selected)?;
    let (product, name) = (topic.product_id.clone(), topic.name.clone());
    let dead = topic.by_state.get(&TopicJobState::Dead).copied().unwrap_or(0);
    Some(match (key, &topic.paused) {
        ('P', Some(_)) => Wanted::Not(format!("{} is already paused", clean(&name))),
        ('P', None) => Wanted::Action(Action::PauseTopic { product, topic: name }),
        ('R', None) => Wanted::Not(format!("{} is not paused", clean(&name))),
        ('R', Some(_)) => Wanted::Action(Action::ResumeTopic { product, topic: name }),
        ('t', _) if dead == 0 => Wanted::Not(format!("{} has no dead jobs", clean(&name))),
        ('t', _) => Wanted::Action(Action::RetryDead { product, topic: name, dead }),
        _ => return None,
    })
}
