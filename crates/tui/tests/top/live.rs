//! What news do.

use std::time::Duration;

use giga_api::wire::JobPage;
use giga_tui::model::{Column, Model, Part};
use giga_tui::msg::{Action, Answer, Effect, Failure, Fetch, Msg};
use giga_tui::update;

use crate::fixture::*;

fn admin() -> Model {
    fleet("admin", (80, 24))
}

fn page(numbers: impl IntoIterator<Item = usize>, next: Option<&str>) -> JobPage {
    let jobs = numbers.into_iter().map(|number| job(number, &format!("job-{number}"), "queued")).collect();
    JobPage { jobs, next_cursor: next.map(str::to_owned) }
}

fn head(model: &mut Model, page: JobPage) -> Vec<Effect> {
    let generation = model.jobs.generation;
    got(model, Answer::Jobs { generation, first: true, page })
}

#[test]
fn the_selected_job_stays_selected_and_where_it_is() {
    let mut model = admin();
    press(&mut model, "4");
    head(&mut model, page((100..200).rev(), Some("c")));
    press(&mut model, &"j".repeat(30));
    let selected = model.selected().unwrap();
    let line = |model: &Model| frame(model).lines().position(|line| line.contains('›')).unwrap();
    let before = line(&model);
    head(&mut model, page((103..203).rev(), Some("c")));
    assert_eq!((model.selected(), line(&model)), (Some(selected.clone()), before), "three came above it");
    assert!(frame(&model).contains("newer"));
    // Its own stage changes in place, at once.
    let number: usize = selected[21..].parse().unwrap();
    update(
        &mut model,
        Msg::News(Box::new(event(number, 9, "job.assigned", Some("queued"), Some("assigned")))),
    );
    assert_eq!((model.selected(), line(&model)), (Some(selected), before));
    let row = frame(&model).lines().nth(before).unwrap().to_owned();
    assert!(row.contains("starting"), "{row}");
}

#[test]
fn jobs_are_fetched_by_the_page_as_somebody_scrolls() {
    let mut model = admin();
    press(&mut model, "4");
    let more = |effects: &[Effect]| {
        effects.iter().any(|effect| matches!(effect, Effect::Fetch(Fetch::Jobs { cursor: Some(cursor), .. }) if cursor == "c1"))
    };
    assert!(
        !more(&head(&mut model, page((200..300).rev(), Some("c1")))),
        "not before anybody comes near its end"
    );
    assert!(!more(&press(&mut model, "j")));
    let effects = press(&mut model, "G");
    assert!(more(&effects));
    assert!(!more(&press(&mut model, "k")), "it is under way");
    let generation = model.jobs.generation;
    got(&mut model, Answer::Jobs { generation, first: false, page: page((150..200).rev(), None) });
    assert_eq!(model.keys().len(), 150);
    // The first page again says nothing about what is below it.
    head(&mut model, page((201..301).rev(), Some("c1")));
    assert_eq!((model.keys().len(), model.jobs.next.clone()), (151, None));
    // After so many new ones that the pages do not meet, what is below is asked for again.
    head(&mut model, page((900..1000).rev(), Some("c9")));
    assert_eq!((model.keys().len(), model.jobs.next.as_deref()), (100, Some("c9")));
}

#[test]
fn rows_below_the_first_page_are_asked_for_by_id_once_a_second() {
    let mut model = admin();
    press(&mut model, "4");
    head(&mut model, page((1..4).rev(), None));
    for seq in 1..=50 {
        update(
            &mut model,
            Msg::News(Box::new(event(2, seq, "job.assigned", Some("queued"), Some("assigned")))),
        );
    }
    let effects = update(&mut model, Msg::Tick(now().plus(Duration::from_secs(1))));
    let rows: Vec<_> = effects
        .iter()
        .filter(|effect| matches!(effect, Effect::Fetch(Fetch::Rows { ids, .. }) if *ids == [id(2)]))
        .collect();
    assert_eq!(rows.len(), 1);
    let generation = model.jobs.generation;
    got(&mut model, Answer::Rows { generation, asked: vec![id(2)], jobs: Vec::new() });
    assert_eq!(model.keys(), [id(3), id(1)], "it does not fit the question any more");
}

#[test]
fn news_ask_only_for_what_is_in_sight() {
    let mut model = admin();
    let news = |model: &mut Model| {
        update(model, Msg::News(Box::new(event(7, 5, "job.reported", Some("building"), Some("review")))))
    };
    let fetches = |effects: Vec<Effect>| {
        effects
            .into_iter()
            .filter_map(|effect| if let Effect::Fetch(fetch) = effect { Some(fetch) } else { None })
            .collect::<Vec<_>>()
    };
    let head = [Fetch::Metrics, Fetch::Alerts];
    assert_eq!(
        fetches(news(&mut model)),
        [&head[..], &[Fetch::Column(Column::Running), Fetch::Column(Column::Review)]].concat()
    );
    press(&mut model, "3");
    assert_eq!(fetches(news(&mut model)), head);
    press(&mut model, "2");
    assert_eq!(
        fetches(news(&mut model)),
        [&head[..], &[Fetch::Factories, Fetch::Column(Column::Running)]].concat()
    );
    press(&mut model, "5");
    assert_eq!(fetches(news(&mut model)), [&head[..], &[Fetch::Budgets]].concat());
    press(&mut model, "6");
    assert_eq!(fetches(news(&mut model)), head);
    // Nothing at all happens by itself before the floor.
    assert_eq!(fetches(update(&mut model, Msg::Tick(now().plus(Duration::from_secs(9))))), []);
    let floor = fetches(update(&mut model, Msg::Tick(now().plus(Duration::from_secs(10)))));
    assert_eq!(floor, [Fetch::Metrics, Fetch::Alerts, Fetch::Factories, Fetch::Topics]);
}

#[test]
fn a_loss_is_told_from_its_beginning_and_its_end_refreshes_everything() {
    let mut model = admin();
    update(&mut model, Msg::Lost("closed".to_owned()));
    update(&mut model, Msg::Tick(now().plus(Duration::from_secs(70))));
    update(&mut model, Msg::Lost("still away".to_owned()));
    assert!(frame(&model).contains("connection lost, reconnecting (1m)  still away"), "{}", frame(&model));
    assert_eq!(
        update(&mut model, Msg::Tick(now().plus(Duration::from_secs(100)))),
        [],
        "nobody is asked who is not there"
    );
    let effects = update(&mut model, Msg::Open);
    assert!(
        effects.contains(&Effect::Fetch(Fetch::Metrics))
            && effects.contains(&Effect::Fetch(Fetch::Column(Column::Queued)))
    );
    assert!(frame(&model).contains("reconnected") && frame(&model).contains("● live"));
}

#[test]
fn a_coordinator_that_does_not_answer_is_a_loss_even_while_the_feed_is_silent() {
    let mut model = admin();
    update(
        &mut model,
        Msg::Failed {
            fetch: Fetch::Metrics,
            error: "no answer within 8 s".to_owned(),
            failure: Failure::Unreachable,
        },
    );
    assert!(frame(&model).contains("connection lost"), "{}", frame(&model));
    got(&mut model, Answer::Metrics(read(metrics())));
    assert!(!frame(&model).contains("connection lost"));
    // A refusal is no loss: somebody is there.
    update(
        &mut model,
        Msg::Failed {
            fetch: Fetch::Budgets,
            error: "this token may not".to_owned(),
            failure: Failure::Refused,
        },
    );
    assert!(!frame(&model).contains("connection lost") && frame(&model).contains("this token may not"));
}

#[test]
fn a_log_is_followed_until_its_run_is_over_and_another_begins() {
    let mut model = admin();
    press(&mut model, ":job long-build<Enter>l");
    let asks = |effects: &[Effect]| {
        effects.iter().find_map(|effect| match effect {
            Effect::Fetch(Fetch::Log { epoch, offset, .. }) => Some((*epoch, *offset)),
            _ => None,
        })
    };
    let effects = got(&mut model, Answer::Log { id: id(7), piece: log(1, 0, "one\n") });
    assert_eq!(asks(&effects), Some((Some(1), 4)));
    let mut last = log(1, 4, "two\n");
    last.complete = true;
    let effects = got(&mut model, Answer::Log { id: id(7), piece: last });
    assert_eq!(asks(&effects), None);
    let mut again = job(7, "long-build", "building");
    again.lease_epoch = 2;
    let effects = got(&mut model, Answer::Job(Box::new(again)));
    assert_eq!(asks(&effects), Some((None, 0)));
    // Who looks elsewhere is not read to.
    press(&mut model, "e");
    let effects = got(&mut model, Answer::Log { id: id(7), piece: log(2, 0, "anew\n") });
    assert_eq!((asks(&effects), model.job_page().map(|page| page.part)), (None, Some(Part::Events)));
}

#[test]
fn a_job_that_is_gone_says_so() {
    let mut model = admin();
    press(&mut model, &format!(":job {}<Enter>", id(7)));
    update(
        &mut model,
        Msg::Failed {
            fetch: Fetch::Job(id(7)),
            error: "there is no such job".to_owned(),
            failure: Failure::Missing,
        },
    );
    assert!(frame(&model).contains("there is no such job"), "{}", frame(&model));
}

#[test]
fn a_lease_that_is_renewed_in_silence_is_seen_to_be() {
    let mut model = admin();
    press(&mut model, ":job long-build<Enter>");
    assert_eq!(model.job_page().map(|page| page.part), Some(Part::Events));
    let effects = update(&mut model, Msg::Tick(now().plus(Duration::from_secs(10))));
    assert!(effects.contains(&Effect::Fetch(Fetch::Job(id(7)))), "{effects:?}");
}

#[test]
fn what_became_of_an_action_is_said_before_and_after_the_connection_is_back() {
    let mut model = admin();
    update(&mut model, Msg::Lost("closed".to_owned()));
    press(&mut model, "5Py");
    let action = Action::PauseBudget { product: "demo".to_owned(), stop_running: false };
    let outcome = Err("nobody answered: it may or may not have been done".to_owned());
    update(&mut model, Msg::Acted { action, outcome });
    let shown = frame(&model);
    assert!(shown.contains("it may or may not have been done") && shown.contains("○ lost"), "{shown}");
    update(&mut model, Msg::Open);
    assert!(frame(&model).contains("it may or may not have been done"), "{}", frame(&model));
    press(&mut model, "j");
    assert!(!frame(&model).contains("may or may not"), "until the next key");
}

#[test]
fn a_no_that_may_not_last_is_said_and_asked_again_at_the_floor() {
    let mut model = admin();
    press(&mut model, ":job long-build<Enter>l");
    let log = Fetch::Log { id: id(7), epoch: None, offset: 0, wait: false };
    let refused =
        |fetch: &Fetch, failure| Msg::Failed { fetch: fetch.clone(), error: "too busy".to_owned(), failure };
    update(&mut model, refused(&log, Failure::Refused));
    update(&mut model, refused(&Fetch::Job(id(7)), Failure::Refused));
    let shown = frame(&model);
    assert!(shown.contains("too busy") && shown.contains("loading"), "{shown}");
    assert!(shown.contains("long-build"), "what is known of it stays: {shown}");
    let effects = update(&mut model, Msg::Tick(now().plus(Duration::from_secs(10))));
    assert!(effects.contains(&Effect::Fetch(log.clone())), "{effects:?}");
    update(&mut model, refused(&log, Failure::Missing));
    assert!(!frame(&model).contains("loading"), "{}", frame(&model));

    // A list too, which news alone would make fresh.
    press(&mut model, "2");
    let running = Fetch::Column(Column::Running);
    update(&mut model, refused(&running, Failure::Refused));
    let effects = update(&mut model, Msg::Tick(now().plus(Duration::from_secs(20))));
    assert!(effects.contains(&Effect::Fetch(running.clone())), "{effects:?}");
    let effects = update(&mut model, Msg::Tick(now().plus(Duration::from_secs(30))));
    assert!(!effects.contains(&Effect::Fetch(running)), "{effects:?}");
}

#[test]
fn a_page_of_jobs_that_fails_is_not_asked_for_in_a_circle() {
    let mut model = admin();
    press(&mut model, "4");
    head(&mut model, page((200..300).rev(), Some("c1")));
    let asked = |effects: Vec<Effect>| {
        effects.into_iter().find_map(|effect| match effect {
            Effect::Fetch(fetch @ Fetch::Jobs { cursor: Some(_), .. }) => Some(fetch),
            _ => None,
        })
    };
    let fetch = asked(press(&mut model, "G")).unwrap();
    for failure in [Failure::Refused, Failure::Unreachable] {
        let failed = Msg::Failed { fetch: fetch.clone(), error: "no".to_owned(), failure };
        assert_eq!(asked(update(&mut model, failed)), None, "{failure:?}");
    }
    let again = asked(update(&mut model, Msg::Tick(now().plus(Duration::from_secs(10)))));
    assert_eq!(again, Some(fetch));
}

#[test]
fn an_open_job_is_followed_whatever_product_is_shown() {
    let mut model = admin();
    press(&mut model, ":job long-build<Enter>pp");
    assert_eq!(model.product.as_deref(), Some("free"));
    let news = Msg::News(Box::new(event(7, 5, "job.reported", Some("building"), Some("review"))));
    let effects = update(&mut model, news);
    assert!(effects.contains(&Effect::Fetch(Fetch::Job(id(7)))), "{effects:?}");
}
