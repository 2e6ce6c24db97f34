//! Acknowledged means durable: a coordinator is killed in the middle of a thousand submits.

use std::collections::HashMap;

use giga_api::client::{Client, ClientOptions, Idempotency, JobQuery};
use giga_testkit::postgres::TestDatabase;
use tokio::task::JoinSet;

use crate::world::{Home, Server, manifest};

const JOBS: usize = 1_000;
/// So many answers, then the power goes.
const ANSWERED: usize = 250;

fn client(home: &Home, server: &Server) -> Client {
    let token = std::fs::read_to_string(home.data().join("admin.token")).unwrap();
    let options = ClientOptions {
        url: server.url.clone(),
        token: Some(token.trim().to_owned()),
        ..ClientOptions::default()
    };
    Client::new(options).unwrap()
}

/// Every other job has a key and may be repeated; the rest is sent once and never again.
fn idempotency(number: usize) -> Idempotency {
    if number.is_multiple_of(2) { Idempotency::Key(format!("key-{number}")) } else { Idempotency::Nothing }
}

async fn submit(client: Client, number: usize) -> (usize, Option<String>) {
    let text = manifest(&format!("job-{number}"), "").into_bytes();
    let answer = client.submit(text, &idempotency(number)).await;
    (number, answer.ok().map(|answer| answer.value.job.id))
}

async fn jobs_by_name(client: &Client) -> HashMap<String, Vec<String>> {
    let mut jobs: HashMap<String, Vec<String>> = HashMap::new();
    let mut query = JobQuery { limit: Some(500), ..JobQuery::default() };
    loop {
        let page = client.jobs(&query).await.unwrap().value;
        for job in page.jobs {
            jobs.entry(job.name).or_default().push(job.id);
        }
        match page.next_cursor {
            Some(cursor) => query.cursor = Some(cursor),
            None => return jobs,
        }
    }
}

async fn killed_in_the_middle(store: Option<&str>) {
    let home = Home::new();
    let args: Vec<&str> = store.map(|url| vec!["--store", url]).unwrap_or_default();
    let server = home.start_with(&args);
    let before = client(&home, &server);

    let mut submits = JoinSet::new();
    for number in 0..JOBS {
        submits.spawn(submit(before.clone(), number));
    }
    let mut answered: HashMap<usize, String> = HashMap::new();
    let mut lost = Vec::new();
    let mut server = Some(server);
    while let Some(done) = submits.join_next().await {
        match done.unwrap() {
            (number, Some(id)) => drop(answered.insert(number, id)),
            (number, None) => lost.push(number),
        }
        if answered.len() >= ANSWERED
            && let Some(server) = server.take()
        {
            server.kill9();
        }
    }
    assert!(!lost.is_empty(), "it was killed in the middle, not after the end");

    let server = home.start_with(&args);
    let after = client(&home, &server);
    let jobs = jobs_by_name(&after).await;
    for (number, id) in &answered {
        assert_eq!(
            jobs.get(&format!("job-{number}")),
            Some(&vec![id.clone()]),
            "acknowledged, so there, once"
        );
    }
    assert!(jobs.values().all(|ids| ids.len() == 1), "none twice");

    // What had a key can be sent again, whether it had arrived or not.
    let mut again = JoinSet::new();
    for number in lost.into_iter().filter(|number| idempotency(*number) != Idempotency::Nothing) {
        again.spawn(submit(after.clone(), number));
    }
    for (number, id) in again.join_all().await {
        let id = id.expect("the coordinator is back");
        if let Some(arrived) = jobs.get(&format!("job-{number}")) {
            assert_eq!(*arrived, [id], "the first sending made it");
        }
    }
    let jobs = jobs_by_name(&after).await;
    assert!(jobs.values().all(|ids| ids.len() == 1), "still none twice");
    assert!((0..JOBS).step_by(2).all(|number| jobs.contains_key(&format!("job-{number}"))));
}

#[tokio::test(flavor = "multi_thread")]
async fn on_sqlite() {
    killed_in_the_middle(None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_postgres() {
    let database = TestDatabase::new().await;
    killed_in_the_middle(Some(database.url())).await;
}
