//! Whatever happens in whatever order on whatever size of screen: it never panics, and never shows nonsense.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use giga_api::wire::{FleetMetrics, JobPage};
use giga_domain::Usd;
use giga_tui::model::{Column, Group};
use giga_tui::msg::{Action, Answer, Failure, Fetch, Got, Msg};
use giga_tui::update;
use proptest::prelude::*;

use crate::fixture::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z -]{0,12}",
        any::<String>(),
        Just("\u{1b}[2J\u{202e}漢字\u{200d}👩‍👩‍👧\u{0}".to_owned()),
        Just("x".repeat(300)),
    ]
}

fn key() -> impl Strategy<Value = KeyEvent> {
    let common: Vec<char> = "123456jkgGhl/:?pqsdrSxXACPRtynNfewu ".chars().collect();
    let code = prop_oneof![
        8 => proptest::sample::select(common).prop_map(KeyCode::Char),
        2 => any::<char>().prop_map(KeyCode::Char),
        4 => proptest::sample::select(vec![
            KeyCode::Enter, KeyCode::Esc, KeyCode::Tab, KeyCode::BackTab, KeyCode::Backspace, KeyCode::Up, KeyCode::Down,
            KeyCode::Left, KeyCode::Right, KeyCode::PageUp, KeyCode::PageDown, KeyCode::Home, KeyCode::End, KeyCode::F(1),
            KeyCode::Null,
        ]),
    ];
    let held = proptest::sample::select(vec![
        KeyModifiers::NONE,
        KeyModifiers::NONE,
        KeyModifiers::CONTROL,
        KeyModifiers::SHIFT,
    ]);
    (code, held).prop_map(|(code, held)| KeyEvent::new(code, held))
}

fn any_job() -> impl Strategy<Value = giga_api::wire::Job> {
    let stage = proptest::sample::select(vec![
        "queued",
        "blocked",
        "assigned",
        "building",
        "review",
        "testing",
        "shipped",
        "failed",
        "dead_letter",
        "cancelled",
    ]);
    (0..40usize, text(), stage, text()).prop_map(|(number, name, stage, other)| {
        let mut made = job(number, &name, stage);
        made.created_at = other;
        made
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    let jobs = || proptest::collection::vec(any_job(), 0..30);
    let column = proptest::sample::select(Column::ALL.to_vec());
    prop_oneof![
        Just(Answer::Metrics(read(metrics()))),
        Just(Answer::Metrics(read(empty_metrics()))),
        (any::<u32>(), any::<u32>()).prop_map(|(used, seats)| {
            let mut odd: FleetMetrics = read(metrics());
            (odd.factories.seats_used, odd.factories.seats, odd.factories.utilisation) =
                (used, seats, f64::NAN);
            odd.oldest_queued_ms = Some(u64::from(used) * 1_000_000);
            Answer::Metrics(odd)
        }),
        Just(Answer::Factories(read(factories()))),
        Just(Answer::Factories(Vec::new())),
        Just(Answer::Alerts(read(alerts()))),
        Just(Answer::Alerts(Vec::new())),
        Just(Answer::Budgets(read(budgets()))),
        (any::<i64>(), any::<i64>()).prop_map(|(spent, limit)| {
            let mut odd: Vec<giga_api::wire::Budget> = read(budgets());
            odd[0].periods[0].spent_usd = Usd::from_micros(spent);
            odd[0].periods[0].ceiling_usd = Some(Usd::from_micros(limit));
            Answer::Budgets(odd)
        }),
        Just(Answer::Topics(read(topics()))),
        (column, jobs()).prop_map(|(column, jobs)| Answer::Column(column, jobs)),
        (0..4u64, any::<bool>(), jobs(), any::<bool>()).prop_map(|(generation, first, jobs, more)| {
            let page = JobPage { jobs, next_cursor: more.then(|| "c".to_owned()) };
            Answer::Jobs { generation, first, page }
        }),
        (0..4u64, jobs()).prop_map(|(generation, jobs)| Answer::Rows {
            generation,
            asked: vec![id(1), id(2)],
            jobs
        }),
        any_job().prop_map(|job| Answer::Job(Box::new(job))),
        (0..10usize).prop_map(|number| Answer::Events { id: id(number), events: events(number) }),
        (0..10usize).prop_map(|number| Answer::Runs { id: id(number), runs: read(runs()) }),
        (0..10usize).prop_map(|number| Answer::Explain { id: id(number), explain: read(explanation()) }),
        (0..10usize, 0..3u64, 0..50u64, text()).prop_map(|(number, epoch, offset, text)| Answer::Log {
            id: id(number),
            piece: log(epoch, offset, &text)
        }),
        (text(), any_job()).prop_map(|(text, job)| Answer::Found { text, jobs: vec![job] }),
    ]
}

fn failure() -> impl Strategy<Value = Failure> {
    prop_oneof![Just(Failure::Unreachable), Just(Failure::Missing), Just(Failure::Refused)]
}

fn msg() -> impl Strategy<Value = Msg> {
    prop_oneof![
        10 => key().prop_map(Msg::Key),
        1 => (0..130u16, 0..50u16).prop_map(|(columns, rows)| Msg::Resize(columns, rows)),
        1 => any::<i32>().prop_map(|seconds| Msg::Tick(giga_domain::Timestamp::from_millis(i64::from(seconds) * 1000))),
        1 => text().prop_map(Msg::Paste),
        1 => Just(Msg::Open),
        1 => text().prop_map(Msg::Lost),
        1 => (0..10usize, 1..9u64).prop_map(|(number, seq)| {
            Msg::News(Box::new(event(number, seq, "job.assigned", Some("queued"), Some("assigned"))))
        }),
        6 => (proptest::option::weighted(0.1, Just("demo".to_owned())), answer())
            .prop_map(|(product, answer)| Msg::Got(Box::new(Got { product, answer }))),
        1 => (text(), failure()).prop_map(|(error, failure)| Msg::Failed {
            fetch: Fetch::Jobs { generation: 0, group: Group::All, name: String::new(), cursor: Some("c".to_owned()) },
            error,
            failure,
        }),
        1 => text().prop_map(|text| Msg::Acted {
            action: Action::ResumeBudget { product: text.clone() },
            outcome: Ok(text),
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_makes_it_fall(
        role in proptest::sample::select(vec!["admin", "viewer"]),
        size in (0..130u16, 0..50u16),
        full in any::<bool>(),
        msgs in proptest::collection::vec(msg(), 1..60),
    ) {
        let mut model = model(role, size);
        if full {
            fill(&mut model);
        }
        for msg in msgs {
            update(&mut model, msg);
            let shown = frame(&model);
            for nonsense in ["NaN", "undefined", "\u{1b}", "\u{202e}"] {
                prop_assert!(!shown.contains(nonsense), "{nonsense:?} in\n{shown}");
            }
        }
    }
}
