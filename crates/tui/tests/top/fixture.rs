//! A fleet as the coordinator would tell of it.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use giga_api::wire::{Event, Job, JobPage, LogPiece, Priority};
use giga_domain::Timestamp;
use giga_tui::model::{Column, Model, Who};
use giga_tui::msg::{Answer, Effect, Got, Msg};
use giga_tui::{update, view};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) const NOW: &str = "2026-12-01T09:00:00Z";

pub(crate) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

pub(crate) fn read<T: DeserializeOwned>(json: Value) -> T {
    serde_json::from_value(json).unwrap()
}

/// Ids that sort as the numbers do.
pub(crate) fn id(number: usize) -> String {
    format!("01M7GDPAG63TBXR8ZP4H3{number:05}")
}

pub(crate) fn job(number: usize, name: &str, stage: &str) -> Job {
    let held = matches!(stage, "assigned" | "building");
    let mut job = json!({
        "id": id(number), "productId": "demo", "name": name, "kind": "agent", "stage": stage, "priority": "normal",
        "rev": 1, "leaseEpoch": 1, "repo": "https://git.example/team/hello.git", "capabilities": [], "deps": [],
        "depsMode": "all", "attempts": 1, "dispatchSeq": 1, "createdAt": "2026-12-01T08:40:00Z",
        "updatedAt": "2026-12-01T08:57:00Z", "enqueuedAt": "2026-12-01T08:40:00Z",
    });
    if held {
        job["lease"] = json!({"factoryId": "mac-1", "grantedAt": "2026-12-01T08:58:30Z",
            "expiresAt": "2026-12-01T09:01:00Z", "reservedUsd": 1.0, "spentUsd": 0.42, "spentTokens": 1200});
    }
    if stage == "failed" {
        job["failure"] = json!({"reason": "verify_failed", "detail": "cargo test ended with 101"});
    }
    if stage == "review" {
        job["gate"] = json!({"quorum": 2});
        job["approvals"] = json!(["ana"]);
        job["result"] = json!({"leaseEpoch": 1, "branch": "giga/job/x/1", "commit": "abcdef0123456789"});
    }
    read(job)
}

pub(crate) fn jobs() -> Vec<Job> {
    let mut jobs = vec![
        job(9, "nightly-report", "queued"),
        job(8, "漢字 in a name \u{1b}[31m\u{202e}evil", "queued"),
        job(7, "long-build", "building"),
        job(6, "lint-all", "assigned"),
        job(5, "fix-greeting", "review"),
        job(4, "ready-to-ship", "testing"),
        job(3, "broken", "failed"),
        job(2, "gone-for-good", "dead_letter"),
        job(1, "first", "shipped"),
    ];
    "shop".clone_into(&mut jobs[0].product_id);
    jobs[0].priority = Priority::Critical;
    jobs[1].priority = Priority::Low;
    jobs
}

pub(crate) fn model(role: &str, size: (u16, u16)) -> Model {
    let who = Who { role: role.parse().unwrap(), label: "ana".to_owned(), products: Vec::new() };
    Model::new(who, None, size, now())
}

pub(crate) fn got(model: &mut Model, answer: Answer) -> Vec<Effect> {
    let product = model.product.clone();
    update(model, Msg::Got(Box::new(Got { product, answer })))
}

/// A fleet with something in every stage.
pub(crate) fn fleet(role: &str, size: (u16, u16)) -> Model {
    let mut model = model(role, size);
    fill(&mut model);
    model
}

pub(crate) fn fill(model: &mut Model) {
    update(model, Msg::Open);
    got(model, Answer::Metrics(read(metrics())));
    got(model, Answer::Factories(read(factories())));
    got(model, Answer::Alerts(read(alerts())));
    got(model, Answer::Budgets(read(budgets())));
    got(model, Answer::Topics(read(topics())));
    for column in Column::ALL {
        let jobs = jobs().into_iter().filter(|job| Column::of(job.stage) == Some(column)).collect();
        got(model, Answer::Column(column, jobs));
    }
    let page = JobPage { jobs: jobs(), next_cursor: Some("more".to_owned()) };
    let generation = model.jobs.generation;
    got(model, Answer::Jobs { generation, first: true, page });
}

pub(crate) fn metrics() -> Value {
    json!({
        "products": [
            {"productId": "demo", "byStage": {"queued": 1, "assigned": 1, "building": 1, "review": 1, "testing": 1,
                "failed": 1, "dead_letter": 1, "shipped": 41}},
            {"productId": "shop", "byStage": {"queued": 1},
                "budget": {"spentUsd": 3.0, "reservedUsd": 0.0, "paused": true}},
        ],
        "factories": {"live": 2, "stale": 1, "draining": 1, "seats": 8, "seatsUsed": 3, "utilisation": 0.375},
        "oldestQueuedMs": 1_200_000, "feedHead": 120, "store": {"commits": 1, "commands": 1, "retries": 0},
    })
}

pub(crate) fn empty_metrics() -> Value {
    json!({
        "products": [],
        "factories": {"live": 0, "stale": 0, "draining": 0, "seats": 0, "seatsUsed": 0, "utilisation": 0.0},
        "feedHead": 0, "store": {"commits": 0, "commands": 0, "retries": 0},
    })
}

fn factory(id: &str, live: bool, state: &str, running: &[usize]) -> Value {
    json!({
        "id": id, "state": state, "live": live, "health": "ok", "capabilities": ["engine:shell", "os:linux", "has:git"],
        "advertised": ["engine:shell", "os:linux", "has:git", "secret:prod"], "products": [], "canClone": true,
        "repos": [{"name": "hello"}, {"name": "notes"}], "seatLimit": 4, "seatsUsed": running.len(), "load": 1.25,
        "delivery": "stream", "actualDelivery": if live { "stream" } else { "poll" },
        "running": running.iter().map(|number| crate::fixture::id(*number)).collect::<Vec<_>>(),
        "enrolledAt": "2026-11-28T09:00:00Z", "lastSeenAt": "2026-12-01T08:59:55Z",
    })
}

pub(crate) fn factories() -> Value {
    json!([
        factory("mac-1", true, "active", &[7, 6]),
        factory("linux-2", true, "draining", &[77]),
        factory("old-3", false, "active", &[]),
    ])
}

pub(crate) fn alerts() -> Value {
    json!([
        {"code": "dead_letters", "severity": "critical", "title": "Dead letters",
            "message": "1 job of demo used up its retries", "productId": "demo",
            "remedy": {"message": "find out what they have in common before you submit them again",
                "command": "giga job list --stage dead_letter"}},
        {"code": "stale_factory", "severity": "warning", "title": "Factory offline",
            "message": "factory old-3 is offline; its jobs went elsewhere when their leases ended, and nothing is lost",
            "factoryId": "old-3", "since": "2026-11-28T09:00:00Z",
            "remedy": {"message": "check its machine; remove it if it will not come back",
                "command": "giga factory show old-3"}},
        {"code": "starvation", "severity": "warning", "title": "Waiting too long",
            "message": "job nightly-report has been waiting for 20 minutes",
            "jobId": id(9), "productId": "shop", "since": "2026-12-01T08:40:00Z"},
        {"code": "budget_near", "severity": "info", "title": "Budget near limit",
            "message": "demo has used 84% of its day", "productId": "demo", "since": "2026-12-01T08:30:00Z"},
    ])
}

fn period(name: &str, spent: f64, limit: Option<f64>) -> Value {
    let mut period = json!({"period": name, "spentUsd": spent, "tokens": 0, "until": "2026-12-02T00:00:00Z"});
    if let Some(limit) = limit {
        period["ceilingUsd"] = json!(limit);
        period["leftUsd"] = json!((limit - spent - 1.0).max(0.0));
    }
    period
}

pub(crate) fn budgets() -> Value {
    json!([
        {"productId": "demo", "rev": 1, "ceilings": {"day": 5.0, "month": 50.0}, "jobUsd": 1.0, "reservedUsd": 1.0,
            "leftUsd": 0.8, "tightest": "day",
            "periods": [period("day", 3.2, Some(5.0)), period("week", 9.0, None), period("month", 12.0, Some(50.0)), period("total", 40.5, None)]},
        {"productId": "free", "rev": 0, "ceilings": {}, "reservedUsd": 0.0,
            "periods": [period("day", 0.0, None), period("week", 0.0, None), period("month", 0.0, None), period("total", 0.0, None)]},
        {"productId": "shop", "rev": 1, "ceilings": {}, "reservedUsd": 0.0,
            "paused": {"at": "2026-12-01T08:00:00Z", "cause": "operator", "by": "token ana", "reason": "too many retries"},
            "periods": [period("day", 3.0, None), period("week", 3.0, None), period("month", 3.0, None), period("total", 3.0, None)]},
    ])
}

pub(crate) fn topics() -> Value {
    json!({"topics": [
        {"productId": "demo", "name": "mail", "byState": {"ready": 12, "running": 3, "dead": 2, "done": 4000}, "workers": 2, "inFlight": 3},
        {"productId": "shop", "name": "thumbnails", "byState": {"ready": 7}, "workers": 0, "inFlight": 0,
            "paused": {"since": "2026-12-01T08:00:00Z", "by": "token bo"}},
    ]})
}

pub(crate) fn event(number: usize, seq: u64, kind: &str, from: Option<&str>, to: Option<&str>) -> Event {
    read(json!({
        "pos": 100 + seq, "productId": "demo", "jobId": id(number), "seq": seq, "at": format!("2026-12-01T08:5{seq}:00Z"),
        "type": kind, "from": from, "to": to, "cause": "claimed by mac-1", "actor": "factory mac-1", "data": {},
    }))
}

pub(crate) fn events(number: usize) -> Vec<Event> {
    vec![
        event(number, 1, "job.submitted", None, Some("queued")),
        event(number, 2, "job.targeted", None, None),
        event(number, 3, "job.assigned", Some("queued"), Some("assigned")),
        event(number, 4, "job.started", Some("assigned"), Some("building")),
    ]
}

pub(crate) fn explanation() -> Value {
    json!({
        "summary": "queued: two factories could run it, and both are full",
        "blockers": [{"code": "seats", "message": "every seat that could run it is taken"}],
        "remedies": [
            {"message": "wait for long-build to end"},
            {"message": "end the drain of linux-2", "command": "giga factory drain linux-2 --undo"},
        ],
        "factories": [
            {"factoryId": "mac-1", "feasible": true, "score": 0.82, "terms": {"capabilityFit": 0.4, "affinity": 0.52, "load": -0.1}},
            {"factoryId": "linux-2", "feasible": false, "rejectedBy": {"filter": "draining", "detail": "takes nothing new"}, "terms": {}},
        ],
    })
}

pub(crate) fn runs() -> Value {
    json!([
        {"jobId": id(5), "leaseEpoch": 1, "factoryId": "mac-1", "engine": "shell", "assignedAt": "2026-12-01T08:40:00Z",
            "startedAt": "2026-12-01T08:40:01Z", "endedAt": "2026-12-01T08:42:31Z", "outcome": "failed",
            "failure": {"reason": "verify_failed", "detail": "cargo test ended with 101"},
            "report": {"costUsd": 0.42, "tokens": 1200, "checks": [{"command": "cargo test", "passed": false}]}},
        {"jobId": id(5), "leaseEpoch": 2, "factoryId": "linux-2", "engine": "shell", "assignedAt": "2026-12-01T08:50:00Z",
            "startedAt": "2026-12-01T08:50:01Z", "endedAt": "2026-12-01T08:51:01Z", "outcome": "succeeded",
            "report": {"summary": "greeting fixed", "branch": "giga/job/x/2", "commit": "abcdef0123456789", "costUsd": 0.5,
                "linesAdded": 12, "linesRemoved": 3, "checks": [{"command": "cargo test", "passed": true}]}},
    ])
}

pub(crate) fn log(epoch: u64, offset: u64, text: &str) -> LogPiece {
    let end = offset + text.len() as u64;
    LogPiece {
        lease_epoch: epoch,
        offset,
        next_offset: end,
        total: end,
        complete: false,
        text: text.to_owned(),
    }
}

/// Keys as they would be typed; names in angle brackets: `<Enter>`, `<C-c>`, `<A-y>`.
pub(crate) fn press(model: &mut Model, keys: &str) -> Vec<Effect> {
    let mut effects = Vec::new();
    let mut rest = keys;
    while let Some(c) = rest.chars().next() {
        let (code, held, used) = match rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
            Some((name, _)) => {
                let held = match name.get(..2) {
                    Some("C-") => KeyModifiers::CONTROL,
                    Some("A-") => KeyModifiers::ALT,
                    _ => KeyModifiers::NONE,
                };
                (named(name), held, name.len() + 2)
            }
            None => (KeyCode::Char(c), KeyModifiers::NONE, c.len_utf8()),
        };
        effects.extend(update(model, Msg::Key(KeyEvent::new(code, held))));
        rest = &rest[used..];
    }
    effects
}

fn named(name: &str) -> KeyCode {
    match name {
        "Enter" => KeyCode::Enter,
        "Esc" => KeyCode::Esc,
        "Tab" => KeyCode::Tab,
        "BackTab" => KeyCode::BackTab,
        "Backspace" => KeyCode::Backspace,
        "Down" => KeyCode::Down,
        "Right" => KeyCode::Right,
        "Left" => KeyCode::Left,
        "PgDn" => KeyCode::PageDown,
        other => KeyCode::Char(other.chars().nth(2).unwrap()),
    }
}

pub(crate) fn frame(model: &Model) -> String {
    if model.size.0 == 0 || model.size.1 == 0 {
        // The backend for tests cannot print a screen without cells.
        let area = Rect::new(0, 0, model.size.0, model.size.1);
        view::draw(model, true, area, &mut Buffer::empty(area));
        return String::new();
    }
    let mut terminal = Terminal::new(TestBackend::new(model.size.0, model.size.1)).unwrap();
    terminal.draw(|frame| view::draw(model, true, frame.area(), frame.buffer_mut())).unwrap();
    terminal.backend().to_string()
}
