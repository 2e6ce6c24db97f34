//! New jobs: all or none, once.

use std::time::Duration;

use giga_domain::topic::{TopicHead, TopicJob, TopicStage, TopicState};
use giga_domain::{Epoch, Priority};
use giga_ports::StoreError;
use giga_ports::topics::Enqueued;

use super::TopicWorld;
use super::world::{ONE_RETRY, mail, topic};

fn created(job: &giga_ports::topics::NewTopicJob) -> Enqueued {
    Enqueued::Created { id: job.id, due: None }
}

pub async fn created_and_readable(world: &TopicWorld) {
    let new = world.job(|job| {
        job.priority = Priority::High;
        job.idempotency_key = Some("order-1".into());
    });
    assert_eq!(world.store.enqueue(vec![new.clone()]).await.unwrap(), [created(&new)]);
    let head = TopicHead {
        state: TopicState::Ready,
        epoch: Epoch::ZERO,
        attempts: 0,
        retry: ONE_RETRY,
        last_error: None,
    };
    let expected = TopicJob {
        id: new.id,
        key: mail(),
        priority: Priority::High,
        payload: new.payload,
        idempotency_key: Some("order-1".into()),
        created_at: world.now(),
        head,
    };
    assert_eq!(world.get(new.id).await, expected);
    assert_eq!(world.store.job(world.job(|_| ()).id).await.unwrap(), None);
}

pub async fn nothing_enqueued_is_nothing_made(world: &TopicWorld) {
    assert_eq!(world.store.enqueue(Vec::new()).await.unwrap(), []);
    assert_eq!(world.store.topics().await.unwrap(), []);
}

pub async fn a_payload_comes_back_byte_for_byte(world: &TopicWorld) {
    for payload in [Vec::new(), vec![0; 3], (0..=255).collect(), vec![7; 200_000]] {
        let new = world.job(|job| job.payload.clone_from(&payload));
        world.store.enqueue(vec![new.clone()]).await.unwrap();
        assert_eq!(world.get(new.id).await.payload, payload);
        assert_eq!(world.claim_one().await.payload, payload);
    }
}

pub async fn a_repeated_call_makes_each_job_once(world: &TopicWorld) {
    let mut jobs = world.jobs(3);
    jobs[1].idempotency_key = Some("order-1".into());
    jobs[2].run_at = Some(world.now().plus(Duration::from_secs(5)));
    let first = world.store.enqueue(jobs.clone()).await.unwrap();
    assert_eq!(first[2], Enqueued::Created { id: jobs[2].id, due: jobs[2].run_at });
    assert_eq!(world.store.enqueue(jobs.clone()).await.unwrap(), first);
    let counts = world.counts(&mail()).await;
    assert_eq!(counts, [(TopicStage::Scheduled, 1), (TopicStage::Ready, 2)].into());
    // Also after the jobs have moved on, and in a call with others.
    let held = world.claim(1).await;
    let more = world.job(|_| ());
    jobs.push(more.clone());
    let again = world.store.enqueue(jobs).await.unwrap();
    assert_eq!((&again[..3], again[3]), (&first[..], created(&more)));
    assert_eq!(world.stage(held[0].id).await, TopicStage::Running);
}

pub async fn a_key_makes_one_job(world: &TopicWorld) {
    let first = world.job(|job| job.idempotency_key = Some("order-1".into()));
    let again = world.job(|job| {
        job.idempotency_key = Some("order-1".into());
        job.payload.clone_from(&first.payload);
    });
    world.store.enqueue(vec![first.clone()]).await.unwrap();
    let other = world.job(|_| ());
    let answers = world.store.enqueue(vec![again.clone(), other.clone()]).await.unwrap();
    assert_eq!(answers, [Enqueued::Existing(first.id), created(&other)]);
    assert_eq!(world.store.job(again.id).await.unwrap(), None);
    // A finished job still has its key.
    let held = world.claim_one().await;
    world.settle(&held, giga_domain::topic::Outcome::Success).await;
    assert_eq!(world.store.enqueue(vec![again]).await.unwrap(), [Enqueued::Existing(first.id)]);
}

pub async fn a_key_with_another_payload_is_refused(world: &TopicWorld) {
    let first = world.job(|job| job.idempotency_key = Some("order-1".into()));
    world.store.enqueue(vec![first.clone()]).await.unwrap();
    let fine = world.job(|_| ());
    let other = world.job(|job| job.idempotency_key = Some("order-1".into()));
    let refused = world.store.enqueue(vec![fine.clone(), other]).await.unwrap_err();
    assert!(
        matches!(&refused, StoreError::KeyReused { key, job } if key == "order-1" && *job == first.id),
        "{refused}"
    );
    assert_eq!(world.store.job(fine.id).await.unwrap(), None, "nothing of a refused call stays");
    assert_eq!(world.counts(&mail()).await, [(TopicStage::Ready, 1)].into());
}

pub async fn a_key_belongs_to_its_topic(world: &TopicWorld) {
    let first = world.job(|job| job.idempotency_key = Some("order-1".into()));
    let elsewhere = world.job(|job| {
        job.key = topic("print");
        job.idempotency_key = Some("order-1".into());
    });
    let answers = world.store.enqueue(vec![first.clone(), elsewhere.clone()]).await.unwrap();
    assert_eq!(answers, [created(&first), created(&elsewhere)]);
}

pub async fn one_key_twice_in_one_call(world: &TopicWorld) {
    let key = |job: &mut giga_ports::topics::NewTopicJob| {
        job.idempotency_key = Some("order-1".into());
        job.payload = b"same".to_vec();
    };
    let (one, two) = (world.job(key), world.job(key));
    let answers = world.store.enqueue(vec![one.clone(), two]).await.unwrap();
    assert_eq!(answers, [created(&one), Enqueued::Existing(one.id)]);
    let (three, four) = (
        world.job(|job| job.idempotency_key = Some("order-2".into())),
        world.job(|job| job.idempotency_key = Some("order-2".into())),
    );
    let refused = world.store.enqueue(vec![three.clone(), four]).await.unwrap_err();
    assert!(matches!(refused, StoreError::KeyReused { job, .. } if job == three.id), "{refused}");
    assert_eq!(world.counts(&mail()).await, [(TopicStage::Ready, 1)].into());
}

pub async fn a_later_run_at_schedules(world: &TopicWorld) {
    let due = world.now().plus(Duration::from_secs(5));
    let later = world.job(|job| job.run_at = Some(due));
    let at_once = world.job(|job| job.run_at = Some(world.now()));
    let answers = world.store.enqueue(vec![later.clone(), at_once.clone()]).await.unwrap();
    assert_eq!(answers, [Enqueued::Created { id: later.id, due: Some(due) }, created(&at_once)]);
    assert_eq!(world.get(later.id).await.head.state, TopicState::Scheduled { due });
    let claimed = world.claim(5).await;
    assert_eq!(super::world::ids(&claimed), [at_once.id]);
}
