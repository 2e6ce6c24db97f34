//! What keys do.

use giga_api::wire::{JobPage, OperatorAction};
use giga_tui::model::{Group, Model, Page, Part, Tab};
use giga_tui::msg::{Action, Answer, Effect, Fetch, Msg};
use giga_tui::update;

use crate::fixture::*;

fn admin() -> Model {
    fleet("admin", (80, 24))
}

fn acts(effects: &[Effect]) -> Vec<Action> {
    effects
        .iter()
        .filter_map(|effect| if let Effect::Act(action) = effect { Some(action.clone()) } else { None })
        .collect()
}

fn note(model: &Model) -> String {
    model.note.as_ref().map(|note| note.text.clone()).unwrap_or_default()
}

#[test]
fn tabs_are_reached_by_number_and_in_turn() {
    let mut model = admin();
    for (key, tab) in ["1", "2", "3", "4", "5", "6"].into_iter().zip(Tab::ALL) {
        press(&mut model, key);
        assert_eq!(model.tab, tab);
    }
    press(&mut model, "<Tab>");
    assert_eq!(model.tab, Tab::Board);
    press(&mut model, "<BackTab>");
    assert_eq!(model.tab, Tab::Topics);
}

#[test]
fn a_filter_works_while_it_is_typed_and_esc_clears_it() {
    let mut model = admin();
    press(&mut model, "2/MAC");
    assert_eq!(model.keys(), ["mac-1"]);
    press(&mut model, "<Enter>");
    assert_eq!(model.keys(), ["mac-1"], "it stays");
    press(&mut model, "<Esc>");
    assert_eq!(model.keys().len(), 3);
    press(&mut model, "/zzz<Esc>");
    assert_eq!((model.keys().len(), model.prompt.is_none()), (3, true));
}

#[test]
fn a_filter_of_jobs_is_a_question_to_the_coordinator() {
    let mut model = admin();
    press(&mut model, "4");
    let effects = press(&mut model, "/fi");
    let asked = effects.iter().rev().find_map(|effect| match effect {
        Effect::Fetch(Fetch::Jobs { name, cursor: None, generation, .. }) => {
            Some((name.clone(), *generation))
        }
        _ => None,
    });
    assert_eq!(asked, Some(("fi".to_owned(), model.jobs.generation)));
    // Meanwhile what is here is filtered by itself; an answer to an older question changes nothing.
    assert_eq!(model.keys(), [id(5), id(1)]);
    let late = JobPage { jobs: vec![job(99, "other", "queued")], next_cursor: None };
    let generation = model.jobs.generation;
    got(&mut model, Answer::Jobs { generation: generation - 1, first: true, page: late });
    assert_eq!(model.keys(), [id(5), id(1)]);
    let page = JobPage { jobs: vec![job(5, "fix-greeting", "review")], next_cursor: None };
    got(&mut model, Answer::Jobs { generation, first: true, page });
    assert_eq!(model.keys(), [id(5)]);
}

#[test]
fn stages_cycle() {
    let mut model = admin();
    press(&mut model, "4");
    let mut seen = vec![model.jobs.group.name()];
    for _ in 0..7 {
        let effects = press(&mut model, "s");
        seen.push(model.jobs.group.name());
        let asked = effects.iter().any(
            |effect| matches!(effect, Effect::Fetch(Fetch::Jobs { group, .. }) if *group == model.jobs.group),
        );
        assert!(asked);
    }
    assert_eq!(seen, ["all", "live", "waiting", "running", "review", "ended", "failed", "all"]);
}

#[test]
fn jumps() {
    let mut model = admin();
    press(&mut model, ":budgets<Enter>");
    assert_eq!(model.tab, Tab::Budgets);
    press(&mut model, ":al<Enter>");
    assert_eq!(model.tab, Tab::Alerts, "what begins one word is that word");
    press(&mut model, ":fa<Tab>");
    assert_eq!(model.prompt.as_ref().map(|prompt| prompt.text.as_str()), Some("factories"));
    press(&mut model, "<Esc>:factory li<Tab><Enter>");
    assert!(matches!(model.page(), Some(Page::Factory { id, .. }) if id == "linux-2"));
    press(&mut model, ":job fix-g<Tab><Enter>");
    assert_eq!(model.job_page().map(|page| page.id.clone()), Some(id(5)));
    press(&mut model, &format!(":job {}<Enter>", id(7).to_lowercase()));
    assert_eq!(model.job_page().map(|page| page.id.clone()), Some(id(7)));
    let effects = press(&mut model, ":job elsewhere<Enter>");
    assert!(effects.contains(&Effect::Fetch(Fetch::Find("elsewhere".to_owned()))));
    got(&mut model, Answer::Found { text: "elsewhere".to_owned(), jobs: Vec::new() });
    assert!(note(&model).contains("there is no job `elsewhere`"), "{}", note(&model));
    let jobs = (20..25).map(|number| job(number, &format!("job-{number}"), "queued")).collect();
    got(&mut model, Answer::Found { text: "01m7".to_owned(), jobs });
    assert_eq!(
        note(&model),
        "`01m7` matches job-20 (…300020), job-21 (…300021), job-22 (…300022) and 2 more"
    );
    assert_eq!(model.job_page().map(|page| page.id.clone()), Some(id(7)), "none of them is opened");
    press(&mut model, ":nowhere<Enter>");
    assert!(note(&model).contains("there is no `:nowhere`"), "{}", note(&model));
    assert_eq!(press(&mut model, ":q<Enter>"), [Effect::Quit]);
}

#[test]
fn what_destroys_is_asked_for_and_only_y_does_it() {
    let mut model = admin();
    press(&mut model, "4/fix-greeting<Enter>");
    let wanted = Action::Job {
        act: OperatorAction::Cancel,
        id: id(5),
        name: "fix-greeting".to_owned(),
        meant: "fix-greeting".to_owned(),
    };
    for no in ["n", "Y", "<Enter>", "<Esc>", "x", "<A-y>", "<C-y>"] {
        assert_eq!(acts(&press(&mut model, "x")), []);
        assert_eq!(model.ask, Some(wanted.clone()));
        assert!(frame(&model).contains("giga job cancel fix-greeting"));
        assert_eq!(acts(&press(&mut model, no)), [], "{no}");
        assert_eq!(model.ask, None, "{no}");
    }
    assert_eq!(acts(&press(&mut model, "xy")), std::slice::from_ref(&wanted));
    update(&mut model, Msg::Acted { action: wanted, outcome: Err("it is already final".to_owned()) });
    assert!(frame(&model).contains("it is already final"));
}

#[test]
fn an_action_that_cannot_be_says_why() {
    let mut model = admin();
    press(&mut model, "4/long-build<Enter>");
    press(&mut model, "r");
    assert_eq!(
        (model.ask.clone(), note(&model)),
        (None, "long-build is running: only a failed job or one in review can be requeued".to_owned())
    );
    press(&mut model, "<Esc>/first<Enter>x");
    assert_eq!(
        (model.ask.clone(), note(&model)),
        (None, "first is shipped: it has already finished".to_owned())
    );
}

#[test]
fn the_command_line_names_a_job_so_that_it_is_that_one() {
    let mut model = admin();
    // A name with a space, and one that another job has too.
    press(&mut model, "4");
    let generation = model.jobs.generation;
    got(
        &mut model,
        Answer::Jobs {
            generation,
            first: true,
            page: JobPage {
                jobs: vec![
                    job(12, "twice", "queued"),
                    job(11, "twice", "failed"),
                    job(10, "two words", "failed"),
                ],
                next_cursor: None,
            },
        },
    );
    press(&mut model, "jr");
    assert_eq!(model.ask.as_ref().unwrap().line(), format!("giga job requeue {}", id(11)));
    press(&mut model, "njr");
    assert_eq!(model.ask.as_ref().unwrap().line(), format!("giga job requeue {}", id(10)));
}

#[test]
fn reviews() {
    let mut model = admin();
    press(&mut model, "4/fix-greeting<Enter><Enter>");
    let approved = acts(&press(&mut model, "Ay"));
    assert!(
        matches!(&approved[..], [Action::Approve { epoch: Some(1), .. }]),
        "bound to what was looked at: {approved:?}"
    );
    assert_eq!(acts(&press(&mut model, "C<Enter>")), [], "without words nothing is asked for");
    let asked = acts(&press(&mut model, "the test's missing<Enter>"));
    assert_eq!(asked[0].line(), r"giga review fix-greeting --request-changes -m 'the test'\''s missing'");
    assert_eq!(acts(&press(&mut model, "Cnever mind<Esc>")), []);
}

#[test]
fn questions_are_answered_and_engines_talked_to() {
    let mut model = admin();
    press(&mut model, "4/fix-greeting<Enter><Enter>");
    assert_eq!(acts(&press(&mut model, "i")), []);
    assert!(note(&model).ends_with("it asks nothing"), "{}", note(&model));
    let told = acts(&press(&mut model, "m<Enter>it's urgent<Enter>"));
    assert_eq!(told[0].line(), r"giga job say fix-greeting 'it'\''s urgent'", "never without words");

    let mut asking = model.job_page().and_then(|page| page.job.clone()).unwrap();
    let at = "2026-11-15T16:00:00Z";
    asking.needs_input = true;
    asking.open_questions = vec![read(serde_json::json!({
        "number": 2, "kind": "question", "state": "open", "text": "Which port?", "options": ["8080", "9090"],
        "leaseEpoch": 1, "askedAt": at, "parkAt": at, "deadline": at,
    }))];
    got(&mut model, Answer::Job(Box::new(asking)));
    let shown = frame(&model);
    assert!(shown.contains(", needs input") && shown.contains("asks: Which port? (8080 | 9090)"), "{shown}");
    press(&mut model, "i90");
    assert!(frame(&model).contains("answer: 90"), "{}", frame(&model));
    assert!(frame(&model).contains("giga job answer fix-greeting --question 2 90"));
    let answered = acts(&press(&mut model, "90<Enter>"));
    assert_eq!(answered[0].line(), "giga job answer fix-greeting --question 2 9090");
    assert_eq!(acts(&press(&mut model, "i8080<Esc>")), []);
}

#[test]
fn budgets_topics_and_factories_are_steered() {
    let mut model = admin();
    let line = |effects: &[Effect]| acts(effects).first().map(Action::line).unwrap_or_default();
    assert_eq!(line(&press(&mut model, "5Py")), "giga budget pause demo");
    assert_eq!(line(&press(&mut model, "P<A-s>")), "");
    assert_eq!(line(&press(&mut model, "Ps")), "giga budget pause demo --stop-running");
    assert_eq!(line(&press(&mut model, "GR")), "giga budget resume shop", "what gives back is not asked for");
    assert_eq!(line(&press(&mut model, "6Py")), "giga topic pause mail --product demo");
    assert_eq!(line(&press(&mut model, "ty")), "giga topic retry mail --product demo");
    assert_eq!(line(&press(&mut model, "jR")), "giga topic resume thumbnails --product shop");
    assert_eq!(line(&press(&mut model, "t")), "");
    assert_eq!(note(&model), "thumbnails has no dead jobs");
    assert_eq!(line(&press(&mut model, "2d")), "giga factory drain linux-2 --undo");
    assert_eq!(line(&press(&mut model, "jdy")), "giga factory drain mac-1");
}

#[test]
fn who_may_only_look_is_told_so_by_every_key_that_acts() {
    for role in ["viewer", "submitter"] {
        let mut model = fleet(role, (80, 24));
        for keys in [
            "2d",
            "4x",
            "5P",
            "5GR",
            "6P",
            "6t",
            "4/broken<Enter>r",
            "<Esc>4/fix<Enter><Enter>A",
            "C",
            "X",
            "m",
            "r",
            "x",
        ] {
            let effects = press(&mut model, keys);
            assert_eq!(acts(&effects), [], "{role} {keys}");
            assert!(model.ask.is_none() && model.prompt.is_none(), "{role} {keys}");
            assert!(note(&model).contains("read-only"), "{role} {keys}: {}", note(&model));
            assert!(!frame(&model).contains("drain:"), "{role} {keys}");
        }
    }
}

#[test]
fn alerts_lead_where_they_point() {
    let mut model = admin();
    press(&mut model, "4/nightly<Enter>3<Enter>");
    assert_eq!((model.tab, model.jobs.group), (Tab::Jobs, Group::Failed), "dead letters are worst");
    assert_eq!(model.filter(), Some(""), "all of them, whatever was looked for before");
    press(&mut model, "3j<Enter>");
    assert!(matches!(model.page(), Some(Page::Factory { id, .. }) if id == "old-3"));
    press(&mut model, "3j<Enter>");
    assert_eq!(model.job_page().map(|page| page.id.clone()), Some(id(9)));
    press(&mut model, "3G<Enter>");
    assert_eq!((model.tab, model.selected()), (Tab::Budgets, Some("demo".to_owned())));
}

#[test]
fn pages_open_and_close() {
    let mut model = admin();
    press(&mut model, "2j<Enter>");
    assert!(matches!(model.page(), Some(Page::Factory { id, .. }) if id == "mac-1"));
    press(&mut model, "<Enter>");
    assert_eq!(model.job_page().map(|page| page.id.clone()), Some(id(7)));
    press(&mut model, "<Tab>");
    assert_eq!(model.job_page().map(|page| page.part), Some(Part::Log));
    press(&mut model, "<Esc>");
    assert!(matches!(model.page(), Some(Page::Factory { .. })));
    press(&mut model, "<Backspace>");
    assert!(model.page().is_none());
    assert_eq!(model.tab, Tab::Factories);
}

#[test]
fn the_product_is_cycled_and_nothing_of_another_stays() {
    let mut model = admin();
    let effects = press(&mut model, "p");
    assert_eq!(model.product.as_deref(), Some("demo"));
    assert!(model.metrics.is_none() && model.jobs.rows.is_empty() && model.board.columns.is_empty());
    assert!(effects.contains(&Effect::Fetch(Fetch::Metrics)));
    // An answer that was asked for before is of all products.
    update(
        &mut model,
        Msg::Got(Box::new(giga_tui::msg::Got { product: None, answer: Answer::Metrics(read(metrics())) })),
    );
    assert!(model.metrics.is_none());
    press(&mut model, "ppp");
    assert_eq!(model.product, None);
}

#[test]
fn what_is_pasted_is_never_taken_for_keys() {
    let mut model = admin();
    press(&mut model, "4/fix-greeting<Enter>");
    assert_eq!(update(&mut model, Msg::Paste("xy\nq".to_owned())), []);
    assert!(model.ask.is_none() && model.prompt.is_none());
    press(&mut model, "<Esc>/");
    update(&mut model, Msg::Paste("fix-\u{1b}[31m".to_owned()));
    assert_eq!(model.filter(), Some("fix-[31m"));
}

#[test]
fn quitting() {
    let mut model = admin();
    assert_eq!(press(&mut model, "q"), [Effect::Quit]);
    assert_eq!(press(&mut model, "<C-c>"), [Effect::Quit]);
    assert_eq!(press(&mut model, "<C-z>"), [Effect::Suspend]);
    press(&mut model, "/q");
    assert_eq!(model.filter(), Some("q"), "while typing it is a letter");
    assert_eq!(press(&mut model, "<C-z>"), [Effect::Suspend]);
    assert_eq!(model.filter(), Some("q"), "what was typed is there when somebody comes back");
    press(&mut model, "<C-c>");
    assert!(model.prompt.is_none(), "leaves what is typed, and nothing else");
}
