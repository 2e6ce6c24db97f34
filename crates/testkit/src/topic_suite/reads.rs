//! Lists and counts.

use giga_domain::topic::{Outcome, TopicStage};
use giga_domain::{Epoch, JobId, Priority};
use giga_ports::topics::TopicCounts;

use super::TopicWorld;
use super::world::{LEASE, failure, mail, topic};

async fn listed(world: &TopicWorld, stage: TopicStage, before: Option<JobId>, limit: usize) -> Vec<JobId> {
    let jobs = world.store.list(&mail(), stage, before, limit).await.unwrap();
    assert!(jobs.iter().all(|job| job.head.state.stage() == stage && job.key == mail()));
    jobs.iter().map(|job| job.id).collect()
}

/// Some jobs in every stage, of every priority.
async fn populated(world: &TopicWorld) {
    for round in 0_u8..20 {
        let priority = Priority::from_rank(round % 4).unwrap();
        let jobs = (0..3).map(|_| world.job(|job| job.priority = priority));
        world.store.enqueue(jobs.collect()).await.unwrap();
        let outcome = match round % 5 {
            0 => Outcome::Success,
            1 => failure(true),
            2 => failure(false),
            3 => continue,
            _ => Outcome::Release,
        };
        for held in world.claim(2).await {
            world.settle(&held, outcome.clone()).await;
        }
        world.claim(u32::from(round % 2)).await;
        world.store.enqueue(vec![world.job(|job| job.key = topic("print"))]).await.unwrap();
    }
}

pub async fn pages_cover_every_stage_newest_first(world: &TopicWorld) {
    populated(world).await;
    let mut seen = 0;
    for stage in TopicStage::ALL {
        let all = listed(world, stage, None, 1_000).await;
        assert!(all.len() > 2, "{stage} has too few to page through");
        assert!(all.windows(2).all(|pair| pair[0] > pair[1]), "{stage} is not newest first");
        let (mut pages, mut before) = (Vec::new(), None);
        loop {
            let page = listed(world, stage, before, 2).await;
            before = page.last().copied();
            if page.is_empty() {
                break;
            }
            pages.extend(page);
        }
        assert_eq!(pages, all, "{stage}");
        seen += all.len();
    }
    assert_eq!(seen, 60, "every job is in one stage");
    assert_eq!(world.store.list(&topic("nobody"), TopicStage::Ready, None, 9).await.unwrap(), []);
}

pub async fn topics_come_by_product_and_name(world: &TopicWorld) {
    for (product, name) in [("zoo", "mail"), ("demo", "print"), ("demo", "mail")] {
        let new = world.job(|job| {
            job.key.product = product.parse().unwrap();
            job.key.topic = name.parse().unwrap();
        });
        world.store.enqueue(vec![new]).await.unwrap();
    }
    let counts = world.store.topics().await.unwrap();
    let names: Vec<String> = counts.iter().map(|counts| counts.key.to_string()).collect();
    assert_eq!(names, ["demo/mail", "demo/print", "zoo/mail"]);
    assert!(counts.iter().all(|counts| counts.by_stage == [0, 1, 0, 0, 0]));
}

pub async fn an_empty_topic_is_still_known(world: &TopicWorld) {
    world.ready(1).await;
    let held = world.claim_one().await;
    world.settle(&held, Outcome::Success).await;
    world.advance(LEASE);
    assert_eq!(world.store.retire(world.now(), 10).await.unwrap(), 1);
    let empty = TopicCounts { key: mail(), by_stage: [0; 5] };
    assert_eq!(world.store.topics().await.unwrap(), [empty]);
}

pub async fn counts_are_exact(world: &TopicWorld) {
    populated(world).await;
    world.advance(LEASE);
    world.store.expire(2).await.unwrap();
    world.store.promote(3).await.unwrap();
    world.store.retry_dead(mail(), Vec::new(), 2).await.unwrap();
    assert_eq!(world.counts(&mail()).await.values().sum::<u64>(), 60);
    assert_eq!(world.counts(&topic("print")).await, [(TopicStage::Ready, 16)].into());
    world.store.retire(world.now(), 5).await.unwrap();
    assert_eq!(world.counts(&mail()).await.values().sum::<u64>(), 55);
}

pub async fn products_are_found_for_many_jobs_at_once(world: &TopicWorld) {
    let mut jobs = world.jobs(1_000);
    jobs[7].key.product = "zoo".parse().unwrap();
    world.store.enqueue(jobs.clone()).await.unwrap();
    let mut asked: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
    // One that there is not, and one that is asked for twice.
    asked.push(world.job(|_| ()).id);
    asked.push(asked[3]);
    let found = world.store.owners_of(&asked).await.unwrap();
    assert_eq!(found.len(), jobs.len());
    assert!(jobs.iter().all(|job| found[&job.id].product == job.key.product));
    assert!(world.store.owners_of(&[]).await.unwrap().is_empty());
    assert!(found.values().all(|owner| owner.worker.is_none() && owner.epoch == Epoch(0)));
    let claimed = world.claim_one().await;
    let owner = &world.store.owners_of(&[claimed.id]).await.unwrap()[&claimed.id];
    assert_eq!((owner.epoch, owner.worker.as_ref()), (claimed.epoch, Some(&claimed.worker)));
}

pub async fn another_process_sees_everything(world: &TopicWorld) {
    world.ready(2).await;
    world.claim(1).await;
    for handle in world.handles().await {
        assert_eq!(handle.topics().await.unwrap()[0].by_stage, [0, 1, 1, 0, 0]);
        let running = handle.list(&mail(), TopicStage::Running, None, 9).await.unwrap();
        assert_eq!(running.len(), 1);
    }
}
