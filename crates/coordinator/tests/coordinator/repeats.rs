//! A submit that was acknowledged and is sent again finds its job, whatever has become of the fleet and its rules.

use crate::common::{Fleet, operator};
use giga_coordinator::{Error, NewItem, SubmitAnswer};
use giga_domain::manifest::{Draft, parse_markdown};
use giga_domain::{JobId, ProductId, ProductSettings, ProfileContent};

fn demo() -> ProductId {
    "demo".parse().unwrap()
}

async fn another_owns(fleet: &Fleet, repo: &str) {
    let owns = ProductSettings { repos: vec![repo.to_owned()], ..ProductSettings::default() };
    fleet.coordinator.set_product("owner".parse().unwrap(), owns, None, operator()).await.unwrap();
}

fn item(front_matter: &str) -> NewItem {
    let text = format!("---\n{front_matter}\n---\nDo it.\n");
    let (manifest, body) = parse_markdown(text.as_bytes()).unwrap();
    NewItem { product: demo(), manifest, body }
}

fn ids(answers: &[SubmitAnswer]) -> Vec<(JobId, bool)> {
    answers.iter().map(|answer| (answer.job.id, answer.created)).collect()
}

#[tokio::test]
async fn one_job_is_found_again_though_its_repository_has_another_owner_and_nobody_can_run_it() {
    let fleet = Fleet::by_hand().await;
    let text = "name: one\nrepo: hello\ncapabilities: [gpu]\nidempotencyKey: ticket-1";
    let first = fleet.try_submit(text).await.unwrap();
    another_owns(&fleet, "hello").await;
    let again = fleet.try_submit(text).await.unwrap();
    assert_eq!((again.job.id, again.created), (first.job.id, false));
    another_owns(&fleet, "other").await;
    fleet.set_flag("strict", true).await;
    let again = fleet.try_submit(text).await.unwrap();
    assert_eq!((again.job.id, again.created), (first.job.id, false));

    // What would be a new job is judged as ever.
    let other = fleet.try_submit(&text.replace("ticket-1", "ticket-2")).await;
    assert!(matches!(other, Err(Error::Unroutable(_))), "{other:?}");
    another_owns(&fleet, "hello").await;
    let other = fleet.try_submit(&text.replace("ticket-1", "ticket-2")).await;
    assert!(matches!(other, Err(Error::ForeignRepo(_))), "{other:?}");
    let elsewhere = fleet.try_submit_for("third", text).await;
    assert!(matches!(elsewhere, Err(Error::ForeignRepo(_))), "a key is a product's own: {elsewhere:?}");
    let changed = fleet.try_submit(&text.replace("name: one", "name: two")).await.unwrap_err();
    assert!(changed.to_string().contains("ticket-1"), "{changed}");
}

#[tokio::test]
async fn many_jobs_and_children_are_found_again_and_new_ones_beside_them_are_judged() {
    let fleet = Fleet::by_hand().await;
    let parent = fleet.submit("name: all\nkind: composite").await.id;
    let of = |key: &str| item(&format!("name: {key}\nrepo: hello\nidempotencyKey: {key}"));
    let many = vec![of("a"), of("b")];
    let children = vec![of("c")];
    let first = fleet.coordinator.submit_many(many.clone(), operator()).await.unwrap();
    let born = fleet.coordinator.submit_children(parent, children.clone(), operator()).await.unwrap();
    another_owns(&fleet, "hello").await;
    fleet.set_flag("strict", true).await;
    let again = fleet.coordinator.submit_many(many.clone(), operator()).await.unwrap();
    assert_eq!(ids(&again), [(first[0].job.id, false), (first[1].job.id, false)]);
    let again = fleet.coordinator.submit_children(parent, children, operator()).await.unwrap();
    assert_eq!(ids(&again), [(born[0].job.id, false)]);

    let more = many.into_iter().chain([of("d")]).collect();
    let refused = fleet.coordinator.submit_many(more, operator()).await;
    let Err(Error::At { field, error }) = &refused else { panic!("{refused:?}") };
    assert_eq!(field, "jobs[2].repo");
    assert!(matches!(**error, Error::ForeignRepo(_)), "{error}");
}

#[tokio::test]
async fn what_was_written_counts_and_not_what_its_profile_would_make_of_it_now() {
    let fleet = Fleet::by_hand().await;
    let profile = |engine: &str| {
        let defaults = serde_json::json!({ "engine": engine }).as_object().unwrap().clone();
        ProfileContent { persona: "You code.".to_owned(), defaults }
    };
    let add = |content| fleet.coordinator.add_profile(demo(), "coder".to_owned(), content, operator());
    add(profile("shell")).await.unwrap();
    let text = "---\nname: one\npersona: coder\nscript: ./fix.sh\n---\nDo it.\n";
    let resolve = |key| {
        let draft = Draft::from_markdown(text.as_bytes()).unwrap();
        let product = demo();
        let coordinator = fleet.coordinator.clone();
        async move { coordinator.resolve(&product, draft, Some(key)).await }
    };
    let submit = |(mut manifest, body): (giga_domain::manifest::Manifest, String), key: &str| {
        manifest.idempotency_key = Some(key.to_owned());
        let request = giga_coordinator::SubmitRequest { product: demo(), manifest, body, actor: operator() };
        fleet.coordinator.submit(request)
    };
    let first = submit(resolve("ticket-1").await.unwrap(), "ticket-1").await.unwrap();
    // A script beside another engine is refused.
    add(profile("claude")).await.unwrap();
    let again = submit(resolve("ticket-1").await.unwrap(), "ticket-1").await.unwrap();
    assert_eq!((again.job.id, again.created), (first.job.id, false));
    assert!(matches!(resolve("ticket-2").await, Err(Error::Manifest(_))));
}
