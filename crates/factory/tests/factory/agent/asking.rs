//! Runs that wait for people by themselves: nobody sees it in their output, and silence is no sign of trouble then.

use std::time::Duration;

use giga_api::client::{Client, ClientOptions};
use giga_api::wire::{AskRequest, FailReason, QuestionKind, Stage};
use giga_factory::engines::Watchdog;

use super::world::{Factory, World};

/// Ended by the clock that does not stand still: by then the other one would have bitten three times.
#[tokio::test(flavor = "multi_thread")]
async fn the_watchdog_of_silence_stands_still_while_people_are_asked() {
    let world = World::start().await;
    let mut config = world.config("a");
    config.watchdog =
        Watchdog { idle: Duration::from_secs(1), wall: Duration::from_secs(4), ..config.watchdog };
    let factory = Factory::start(config);
    let asked = world.path().join("asked");
    let script = |asked: &str| format!("until [ -e {asked} ]; do echo .; sleep 0.1; done\nexec sleep 60");
    let silent = "retry: {max: 0}";
    let job = world.submit("silent", silent, &script(&asked.display().to_string())).await;
    world.until_stage(&job, Stage::Building).await;
    let request = AskRequest {
        lease_epoch: world.job(&job).await.lease_epoch,
        text: "Which port?".to_owned(),
        kind: QuestionKind::Question,
        options: Vec::new(),
        default: None,
        key: None,
        deadline: None,
    };
    // As what runs inside the job would, with a token of its holder.
    let token = std::fs::read_to_string(world.base("a").join("factory.token")).unwrap();
    let (url, token) = (world.url.clone(), Some(token.trim().to_owned()));
    let holder = Client::new(ClientOptions { url, token, ..ClientOptions::default() }).unwrap();
    holder.ask_people(&job, &request).await.unwrap();
    std::fs::write(&asked, "").unwrap();
    world.until(&job, |job| job.stage == Stage::DeadLetter || job.stage == Stage::Failed).await;
    let failure = world.runs(&job).await[0].failure.clone().unwrap();
    assert_eq!(failure.reason, FailReason::Timeout);
    assert!(
        failure.detail.as_deref().is_some_and(|detail| detail.contains("still going after 4s")),
        "{failure:?}"
    );
    factory.drain().await;
}
