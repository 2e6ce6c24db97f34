//! Asking the coordinator. Each kind of question has a lane: while one is under way or was just answered, the next
//! one waits, and of those that wait only the last is asked. So a storm of events costs two questions a second.

use std::collections::HashMap;
use std::time::Duration;

use giga_api::client::{Client, ClientError, JobQuery};
use giga_api::wire::Job;
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;

use crate::model::Group;
use crate::msg::{Answer, Failure, Fetch, Got, Msg};

/// Without an answer for so long, nobody is there.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long a piece of a log is waited for.
const LOG_WAIT: Duration = Duration::from_secs(20);
/// Jobs of a page, and of a column of the board.
const PAGE: usize = 100;
const COLUMN: usize = 50;
/// Parts of ids are looked for in so many of the newest jobs.
const LOOKED_THROUGH: usize = 500;

#[derive(Debug)]
pub(crate) enum Inbox {
    Msg(Msg),
    /// The next question of this lane may be asked.
    Free(String),
}

pub(crate) struct Desk {
    client: Client,
    out: Sender<Inbox>,
    /// Lanes that are taken, with what waits in them.
    lanes: HashMap<String, Option<(Fetch, Option<String>)>>,
    tasks: JoinSet<()>,
}

impl Desk {
    pub(crate) fn new(client: Client, out: Sender<Inbox>) -> Self {
        Self { client, out, lanes: HashMap::new(), tasks: JoinSet::new() }
    }

    pub(crate) fn ask(&mut self, fetch: Fetch, product: Option<String>) {
        let lane = lane(&fetch);
        let product = product.filter(|_| !fetch.of_one_job());
        if let Some(waiting) = self.lanes.get_mut(&lane) {
            *waiting = Some((fetch, product));
            return;
        }
        self.lanes.insert(lane.clone(), None);
        let client = narrowed(&self.client, product.as_deref());
        let out = self.out.clone();
        self.tasks.spawn(async move {
            let began = tokio::time::Instant::now();
            let msg = answer(&client, fetch.clone(), product).await;
            let _ = out.send(Inbox::Msg(msg)).await;
            tokio::time::sleep_until(began + pace(&fetch)).await;
            let _ = out.send(Inbox::Free(lane)).await;
        });
    }

    pub(crate) fn free(&mut self, lane: &str) {
        // What has ended needs no keeping.
        while self.tasks.try_join_next().is_some() {}
        if let Some(Some((fetch, product))) = self.lanes.remove(lane) {
            self.ask(fetch, product);
        }
    }

    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }
}

pub(crate) fn narrowed(client: &Client, product: Option<&str>) -> Client {
    product.map_or_else(|| client.clone(), |product| client.for_product(product))
}

fn lane(fetch: &Fetch) -> String {
    match fetch {
        Fetch::Metrics => "metrics".to_owned(),
        Fetch::Factories => "factories".to_owned(),
        Fetch::Alerts => "alerts".to_owned(),
        Fetch::Budgets => "budgets".to_owned(),
        Fetch::Topics => "topics".to_owned(),
        Fetch::Column(column) => format!("column {}", column.title()),
        Fetch::Jobs { cursor: None, .. } => "jobs".to_owned(),
        Fetch::Jobs { cursor: Some(_), .. } => "more jobs".to_owned(),
        // Each asks for other rows.
        Fetch::Rows { ids, .. } => format!("rows {}", ids.join(",")),
        Fetch::Job(id) => format!("job {id}"),
        Fetch::Events { id, .. } => format!("events {id}"),
        Fetch::Runs(id) => format!("runs {id}"),
        Fetch::Explain(id) => format!("explain {id}"),
        // What is there already does not wait behind what is yet to come.
        Fetch::Log { id, wait, .. } => format!("log {id} {wait}"),
        Fetch::Find(_) => "find".to_owned(),
    }
}

/// From one question of a lane to the next.
fn pace(fetch: &Fetch) -> Duration {
    Duration::from_millis(match fetch {
        Fetch::Alerts => 3_000,
        Fetch::Log { .. } => 200,
        Fetch::Find(_) | Fetch::Jobs { cursor: Some(_), .. } => 0,
        _ => 500,
    })
}

async fn answer(client: &Client, fetch: Fetch, product: Option<String>) -> Msg {
    let patience = match fetch {
        Fetch::Log { wait: true, .. } => LOG_WAIT + PATIENCE,
        _ => PATIENCE,
    };
    match tokio::time::timeout(patience, perform(client, fetch.clone())).await {
        Ok(Ok(answer)) => Msg::Got(Box::new(Got { product, answer })),
        Ok(Err(error)) => {
            let failure = match &error {
                ClientError::Unreachable { .. } => Failure::Unreachable,
                ClientError::Problem(problem) if problem.status == 404 => Failure::Missing,
                _ => Failure::Refused,
            };
            Msg::Failed { fetch, error: describe(&error), failure }
        }
        Err(_) => {
            let error = format!("no answer within {} s", patience.as_secs());
            Msg::Failed { fetch, error, failure: Failure::Unreachable }
        }
    }
}

async fn perform(client: &Client, fetch: Fetch) -> Result<Answer, ClientError> {
    Ok(match fetch {
        Fetch::Metrics => Answer::Metrics(client.metrics().await?.value),
        Fetch::Factories => Answer::Factories(client.factories().await?.value.factories),
        Fetch::Alerts => Answer::Alerts(client.alerts().await?.value.alerts),
        Fetch::Budgets => Answer::Budgets(client.budgets().await?.value.budgets),
        Fetch::Topics => Answer::Topics(client.topics().await?.value),
        Fetch::Column(column) => {
            let query = JobQuery { stages: column.stages(), limit: Some(COLUMN), ..JobQuery::default() };
            Answer::Column(column, client.jobs(&query).await?.value.jobs)
        }
        Fetch::Jobs { generation, group, name, cursor } => {
            let first = cursor.is_none();
            let query = JobQuery { limit: Some(PAGE), cursor, ..query(group, name) };
            Answer::Jobs { generation, first, page: client.jobs(&query).await?.value }
        }
        Fetch::Rows { generation, group, name, ids } => {
            let query = JobQuery { ids: ids.clone(), limit: Some(ids.len().max(1)), ..query(group, name) };
            let jobs = client.jobs(&query).await?.value.jobs;
            Answer::Rows { generation, asked: ids, jobs }
        }
        Fetch::Job(id) => Answer::Job(Box::new(client.job(&id).await?.value)),
        Fetch::Events { id, mut after } => {
            let mut events = Vec::new();
            loop {
                let page = client.job_events(&id, Some(after)).await?.value;
                events.extend(page.events);
                match page.next_after {
                    Some(next) if next > after => after = next,
                    _ => break,
                }
            }
            Answer::Events { id, events }
        }
        Fetch::Runs(id) => Answer::Runs { runs: client.runs(&id).await?.value.runs, id },
        Fetch::Explain(id) => Answer::Explain { explain: client.explain(&id).await?.value, id },
        Fetch::Log { id, epoch, offset, wait } => {
            let wait = if wait { LOG_WAIT } else { Duration::ZERO };
            Answer::Log { piece: client.log(&id, epoch, offset, wait).await?.value, id }
        }
        Fetch::Find(text) => {
            let jobs = find(client, &text).await?;
            Answer::Found { text, jobs }
        }
    })
}

fn query(group: Group, name: String) -> JobQuery {
    JobQuery {
        stages: group.stages(),
        name: Some(name).filter(|name| !name.is_empty()),
        ..JobQuery::default()
    }
}

/// By its whole id, by its name (the newest of that name), by the beginning or end of its id, or by a part of its
/// name: all that it could be by the first of these that fits any.
async fn find(client: &Client, meant: &str) -> Result<Vec<Job>, ClientError> {
    let upper = meant.to_ascii_uppercase();
    if upper.parse::<giga_domain::JobId>().is_ok() {
        return match client.job(&upper).await {
            Ok(job) => Ok(vec![job.value]),
            Err(ClientError::Problem(problem)) if problem.status == 404 => Ok(Vec::new()),
            Err(error) => Err(error),
        };
    }
    let named = JobQuery { name: Some(meant.to_owned()), limit: Some(LOOKED_THROUGH), ..JobQuery::default() };
    let named = client.jobs(&named).await?.value.jobs;
    if let Some(job) = named.iter().find(|job| job.name == meant) {
        return Ok(vec![job.clone()]);
    }
    if meant.len() < 4 {
        return Ok(named);
    }
    let newest = JobQuery { limit: Some(LOOKED_THROUGH), ..JobQuery::default() };
    let newest = client.jobs(&newest).await?.value.jobs;
    let by_id = newest.into_iter().filter(|job| job.id.starts_with(&upper) || job.id.ends_with(&upper));
    let by_id: Vec<Job> = by_id.collect();
    Ok(if by_id.is_empty() { named } else { by_id })
}

/// What went wrong, with what to do about it.
pub(crate) fn describe(error: &ClientError) -> String {
    match error {
        ClientError::Problem(problem) => {
            let more = problem.errors.iter().map(|error| error.message.as_str());
            let more: Vec<&str> = more.filter(|message| !problem.detail.contains(message)).collect();
            let mut text = problem.detail.clone();
            if !more.is_empty() {
                text = format!("{text}: {}", more.join("; "));
            }
            let remedy = match problem.status {
                401 => "; the token is no longer good: giga config show says which it is",
                403 => "; an admin can make a token that may: giga token create --role …",
                412 => "; somebody changed it meanwhile, look again",
                _ => "",
            };
            format!("{text}{remedy}")
        }
        ClientError::Unreachable { reason, .. } => reason.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use giga_api::client::ClientOptions;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use tokio::sync::mpsc;

    use super::*;

    /// Answers everything with no factories, and counts.
    async fn server(asked: Arc<AtomicUsize>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                asked.fetch_add(1, Ordering::SeqCst);
                let mut request = [0; 4096];
                let _ = stream.read(&mut request).await;
                let answer =
                    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 16\r\n\r\n{\"factories\":[]}";
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        url
    }

    #[tokio::test]
    async fn a_storm_of_questions_is_one_now_and_one_after() {
        let asked = Arc::new(AtomicUsize::new(0));
        let options = ClientOptions { url: server(asked.clone()).await, ..ClientOptions::default() };
        let (out, mut inbox) = mpsc::channel(1_024);
        let mut desk = Desk::new(Client::new(options).unwrap(), out);
        for _ in 0..100 {
            desk.ask(Fetch::Factories, None);
        }
        let (mut answers, mut free) = (0, 0);
        while free < 2 {
            match inbox.recv().await.unwrap() {
                Inbox::Msg(Msg::Got(_)) => answers += 1,
                Inbox::Msg(other) => panic!("{other:?}"),
                Inbox::Free(lane) => {
                    free += 1;
                    desk.free(&lane);
                }
            }
        }
        assert_eq!((answers, asked.load(Ordering::SeqCst), desk.lanes.len()), (2, 2, 0));
    }

    /// Says what was asked, and answers with a job's log; who wants to wait is not answered.
    async fn log_server(asked: mpsc::UnboundedSender<String>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let length = stream.read(&mut request).await.unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..length]).to_lowercase();
                let waits = request.contains("wait=20s");
                let _ = asked.send(request);
                if waits {
                    held.push(stream);
                    continue;
                }
                let body =
                    r#"{"leaseEpoch":1,"offset":0,"nextOffset":3,"total":3,"complete":false,"text":"one"}"#;
                let length = body.len();
                let answer =
                    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        url
    }

    fn log(wait: bool) -> Fetch {
        Fetch::Log { id: "01M7GDPAG63TBXR8ZP4H300007".to_owned(), epoch: None, offset: 0, wait }
    }

    #[tokio::test]
    async fn a_log_that_is_opened_again_does_not_wait_for_what_was_waited_for() {
        let (tell, mut asked) = mpsc::unbounded_channel();
        let options = ClientOptions { url: log_server(tell).await, ..ClientOptions::default() };
        let (out, mut inbox) = mpsc::channel(1_024);
        let mut desk = Desk::new(Client::new(options).unwrap(), out);
        desk.ask(log(true), None);
        asked.recv().await.unwrap();
        desk.ask(log(false), None);
        let answered = tokio::time::timeout(PATIENCE, inbox.recv()).await.expect("answered at once");
        assert!(matches!(&answered, Some(Inbox::Msg(Msg::Got(_)))), "{answered:?}");
    }

    #[tokio::test]
    async fn what_is_asked_by_id_is_asked_whatever_product_is_shown() {
        let (tell, mut asked) = mpsc::unbounded_channel();
        let options = ClientOptions { url: log_server(tell).await, ..ClientOptions::default() };
        let (out, _inbox) = mpsc::channel(1_024);
        let mut desk = Desk::new(Client::new(options).unwrap(), out);
        let id = || "01M7GDPAG63TBXR8ZP4H300007".to_owned();
        let of_a_job = [
            Fetch::Job(id()),
            Fetch::Events { id: id(), after: 0 },
            Fetch::Runs(id()),
            Fetch::Explain(id()),
            log(false),
        ];
        for fetch in of_a_job {
            desk.ask(fetch.clone(), Some("shop".to_owned()));
            let request = asked.recv().await.unwrap();
            assert!(!request.contains("x-product-id"), "{fetch:?}: {request}");
        }
        desk.ask(Fetch::Metrics, Some("shop".to_owned()));
        let request = asked.recv().await.unwrap();
        assert!(request.contains("x-product-id: shop"), "{request}");
    }

    /// Has jobs whose ids begin alike, and names nothing.
    async fn job_server() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let job = |id: &str, name: &str| {
            serde_json::json!({"id": id, "productId": "demo", "name": name, "kind": "agent", "stage": "queued",
                "priority": "normal", "rev": 1, "leaseEpoch": 0, "capabilities": [], "deps": [], "depsMode": "all",
                "attempts": 0, "dispatchSeq": 1, "createdAt": "2026-12-01T08:40:00Z",
                "updatedAt": "2026-12-01T08:40:00Z", "enqueuedAt": "2026-12-01T08:40:00Z"})
        };
        let jobs = [job("01M7GDPAG63TBXR8ZP4H300001", "one"), job("01M7GDPAG63TBXR8ZP4H300002", "two")];
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut request = vec![0; 4096];
                let length = stream.read(&mut request).await.unwrap_or(0);
                let named = String::from_utf8_lossy(&request[..length]).contains("name=");
                let body = serde_json::json!({"jobs": if named { &[][..] } else { &jobs[..] }}).to_string();
                let length = body.len();
                let answer =
                    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
                let _ = stream.write_all(answer.as_bytes()).await;
            }
        });
        url
    }

    #[tokio::test]
    async fn a_part_of_an_id_finds_all_that_it_could_be() {
        let client =
            Client::new(ClientOptions { url: job_server().await, ..ClientOptions::default() }).unwrap();
        for (meant, names) in
            [("01m7g", &["one", "two"][..]), ("00002", &["two"]), ("01m", &[]), ("zzzz", &[])]
        {
            let found = find(&client, meant).await.unwrap();
            assert_eq!(found.iter().map(|job| job.name.as_str()).collect::<Vec<_>>(), names, "{meant}");
        }
    }

    #[tokio::test]
    async fn nobody_there_is_a_loss_and_not_an_empty_fleet() {
        // A port that was free a moment ago.
        let url = {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            format!("http://{}", listener.local_addr().unwrap())
        };
        let client = Client::new(ClientOptions { url, ..ClientOptions::default() }).unwrap();
        let msg = answer(&client, Fetch::Factories, None).await;
        assert!(matches!(&msg, Msg::Failed { failure: Failure::Unreachable, .. }), "{msg:?}");
    }
}
