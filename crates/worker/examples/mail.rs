//! A whole worker to copy: enqueues a few jobs, works on them, and drains when it is asked to stop.
//!
//! ```text
//! giga serve &
//! GIGA_TOKEN=$(cat ~/.local/share/gigafactory/admin.token) GIGA_PRODUCT=demo \
//!     cargo run -p giga-worker --example mail
//! ```
#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::time::Duration;

use giga_worker::{Client, Config, Job, JobError, Permanent, Priority, Retry, Task, Worker};

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let url = std::env::var("GIGA_URL").unwrap_or_else(|_| "http://127.0.0.1:7717".to_owned());
    let mut config = Config::new(url, std::env::var("GIGA_TOKEN")?);
    if let Ok(product) = std::env::var("GIGA_PRODUCT") {
        config = config.product(product);
    }
    let client = Client::connect(config).await?;

    // The key makes it safe to run this twice: the same mail is the same job.
    let hello = Job::new("mail", "ana@example.org").key("hello-ana").priority(Priority::High);
    let answer = client.enqueue(hello).await?;
    println!("enqueued {} (seen before: {})", answer.job_id, answer.existing);
    let retry = Retry { max: 2, backoff: Duration::from_millis(200) };
    let more = ["bo@example.org", "nobody", "busy@example.org"].map(|to| Job::new("mail", to).retry(retry));
    client.enqueue_many(more).await?;

    println!("working; Ctrl-C stops");
    let summary =
        Worker::new(client).handle("mail", send_mail).concurrency(10).run(tokio::signal::ctrl_c()).await?;
    println!("{summary:?}");
    Ok(())
}

async fn send_mail(task: Task) -> Result<(), JobError> {
    // Bytes that are no text will not become text by trying again.
    let to = std::str::from_utf8(&task.payload).map_err(Permanent)?;
    if !to.contains('@') {
        return Err(JobError::permanent(format!("`{to}` is no address")));
    }
    if to.starts_with("busy") && task.attempt < 3 {
        return Err(JobError::new("the mailbox is busy"));
    }
    // Work that takes a while stops early when the job is no longer ours.
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(100)) => {}
        () = task.lost().cancelled() => return Ok(()),
    }
    println!("sent to {to} (job {}, attempt {})", task.job_id, task.attempt);
    Ok(())
}
