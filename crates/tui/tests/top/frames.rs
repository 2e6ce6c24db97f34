//! What people see, golden. Read the snapshots: a frame that is hard to read there is hard to read on a screen.

use giga_api::wire::TopicList;
use giga_tui::model::Model;
use giga_tui::msg::{Answer, Msg};
use giga_tui::update;
use insta::assert_snapshot;

use crate::fixture::*;

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (120, 40);

fn admin() -> Model {
    fleet("admin", SMALL)
}

#[test]
fn board() {
    assert_snapshot!("board_80", frame(&admin()));
    assert_snapshot!("board_120", frame(&fleet("admin", LARGE)));
    let mut model = fleet("admin", (60, 20));
    press(&mut model, "lll");
    assert_snapshot!("board_60", frame(&model));
}

#[test]
fn factories() {
    let mut model = admin();
    press(&mut model, "2");
    assert_snapshot!("factories", frame(&model));
    press(&mut model, "jj<Enter>");
    assert_snapshot!("factory_stale", frame(&model));
    press(&mut model, "<Esc>g/mac<Enter><Enter>");
    assert_snapshot!("factory", frame(&model));
}

#[test]
fn alerts() {
    let mut model = admin();
    press(&mut model, "3j");
    assert_snapshot!("alerts", frame(&model));
}

#[test]
fn jobs() {
    let mut model = admin();
    press(&mut model, "4");
    assert_snapshot!("jobs_80", frame(&model));
    press(&mut model, "/n");
    assert_snapshot!("jobs_filtering", frame(&model));
    let mut large = fleet("admin", LARGE);
    press(&mut large, "4");
    assert_snapshot!("jobs_120", frame(&large));
}

fn opened(number: usize, keys: &str) -> Model {
    let mut model = admin();
    press(&mut model, &format!(":job {}<Enter>", id(number)));
    let job = crate::fixture::jobs().into_iter().find(|job| job.id == id(number)).unwrap();
    got(&mut model, Answer::Job(Box::new(job)));
    got(&mut model, Answer::Events { id: id(number), events: events(number) });
    press(&mut model, keys);
    model
}

#[test]
fn a_job() {
    assert_snapshot!("job_events", frame(&opened(7, "")));
    let mut model = opened(7, "l");
    let text = "building\n\u{1b}[32mok\u{1b}[0m one\nerror: no such thing\n漢字 too\n50%\r100%\ndone";
    got(&mut model, Answer::Log { id: id(7), piece: log(1, 0, text) });
    press(&mut model, "/error<Enter>");
    assert_snapshot!("job_log", frame(&model));
    let mut model = opened(9, "w");
    got(&mut model, Answer::Explain { id: id(9), explain: read(explanation()) });
    assert_snapshot!("job_explain", frame(&model));
    let mut model = opened(5, "u");
    got(&mut model, Answer::Runs { id: id(5), runs: read(runs()) });
    assert_snapshot!("job_runs", frame(&model));
    assert_snapshot!("job_failed", frame(&opened(3, "")));
}

#[test]
fn budgets() {
    let mut model = admin();
    press(&mut model, "5");
    assert_snapshot!("budgets", frame(&model));
}

#[test]
fn topics() {
    let mut model = admin();
    press(&mut model, "6j");
    assert_snapshot!("topics", frame(&model));
}

#[test]
fn what_is_over_it() {
    let mut model = opened(5, "");
    press(&mut model, "?");
    assert_snapshot!("help_job", frame(&model));
    press(&mut model, "<Esc>x");
    assert_snapshot!("confirm_cancel", frame(&model));
    press(&mut model, "nC");
    press(&mut model, "the test's missing");
    assert_snapshot!("ask_for_changes", frame(&model));
    let mut model = admin();
    press(&mut model, "5P");
    assert_snapshot!("confirm_pause", frame(&model));
    press(&mut model, "n:fac");
    assert_snapshot!("jump", frame(&model));
}

#[test]
fn a_lost_connection_is_said_and_nothing_is_passed_off_as_new() {
    let mut model = admin();
    press(&mut model, "4");
    update(&mut model, Msg::Lost("the connection was closed".to_owned()));
    update(&mut model, Msg::Tick(now().plus(std::time::Duration::from_secs(12))));
    assert_snapshot!("lost", frame(&model));
}

#[test]
fn read_only() {
    let mut model = fleet("viewer", SMALL);
    press(&mut model, "2d");
    assert_snapshot!("read_only", frame(&model));
    press(&mut model, "?");
    assert_snapshot!("read_only_help", frame(&model));
}

#[test]
fn an_empty_fleet_says_what_to_do_next() {
    let mut model = model("admin", SMALL);
    assert_snapshot!("before_the_first_answer", frame(&model));
    update(&mut model, Msg::Open);
    got(&mut model, Answer::Metrics(read(empty_metrics())));
    got(&mut model, Answer::Factories(Vec::new()));
    got(&mut model, Answer::Alerts(Vec::new()));
    got(&mut model, Answer::Budgets(Vec::new()));
    got(&mut model, Answer::Topics(TopicList { paused: None, topics: Vec::new() }));
    let page = giga_api::wire::JobPage { jobs: Vec::new(), next_cursor: None };
    got(&mut model, Answer::Jobs { generation: 0, first: true, page });
    let frames: Vec<String> = "123456"
        .chars()
        .map(|tab| {
            press(&mut model, &tab.to_string());
            frame(&model)
                .lines()
                .filter(|line| !line.trim_matches(['"', ' ']).is_empty())
                .collect::<Vec<_>>()
                .join("\n")
        })
        .collect();
    assert_snapshot!("empty_fleet", frames.join("\n\n"));
}

#[test]
fn a_screen_that_is_too_small_says_so() {
    let model = fleet("admin", (39, 24));
    assert!(frame(&model).contains("too small: needs at least 40×10"));
    let model = fleet("admin", (40, 10));
    assert!(!frame(&model).contains("too small"));
}

#[test]
fn without_colours_the_selection_and_a_loss_are_still_seen() {
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    use ratatui::style::{Color, Modifier};
    let mut model = admin();
    press(&mut model, "4j");
    let area = Rect::new(0, 0, 80, 24);
    let mut buffer = Buffer::empty(area);
    giga_tui::view::draw(&model, false, area, &mut buffer);
    assert!(buffer.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(buffer.content.iter().any(|cell| cell.modifier.contains(Modifier::REVERSED)));
    giga_tui::view::draw(&model, true, area, &mut buffer);
    assert!(buffer.content.iter().any(|cell| cell.fg == Color::Red));
}

#[test]
fn however_long_a_name_is_the_way_to_answer_is_on_the_screen() {
    let name = "long-name-".repeat(20);
    for size in [(40, 10), SMALL, LARGE] {
        let mut model = fleet("admin", size);
        press(&mut model, "4");
        let page = giga_api::wire::JobPage { jobs: vec![job(12, &name, "review")], next_cursor: None };
        let generation = model.jobs.generation;
        got(&mut model, Answer::Jobs { generation, first: true, page });
        press(&mut model, "x");
        let shown = frame(&model);
        assert!(shown.contains("cancel long") && shown.contains("…? y "), "{shown}");
        assert!(shown.contains("any other key"), "{shown}");
        // What is typed is seen, its end at least.
        press(&mut model, "n<Enter>C");
        press(&mut model, &format!("{}the end", "so long a text ".repeat(20)));
        assert!(frame(&model).contains("the end▏"), "{}", frame(&model));
    }
    let mut model = fleet("admin", (40, 10));
    got(
        &mut model,
        Answer::Budgets({
            let mut budgets: Vec<giga_api::wire::Budget> = read(crate::fixture::budgets());
            budgets[0].product_id.clone_from(&name);
            budgets
        }),
    );
    press(&mut model, "5P");
    let shown = frame(&model);
    assert!(shown.contains("? y ") && shown.contains("s stops") && shown.contains("other: no"), "{shown}");
}

#[test]
fn what_was_true_before_a_loss_has_no_colour() {
    use ratatui::buffer::Buffer;
    use ratatui::layout::Rect;
    use ratatui::style::Color;
    let mut model = admin();
    update(&mut model, Msg::Lost("closed".to_owned()));
    let area = Rect::new(0, 0, 80, 24);
    let mut buffer = Buffer::empty(area);
    giga_tui::view::draw(&model, true, area, &mut buffer);
    for y in [0].into_iter().chain(2..22) {
        for x in 0..80 {
            assert_eq!(buffer[(x, y)].fg, Color::DarkGray, "{x},{y}");
        }
    }
}
