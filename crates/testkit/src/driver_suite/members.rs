//! Members come, are found again, and go: whatever is asked for twice, and whoever was ended in between.

use super::{CREDENTIAL, DriverFixture, to_start, to_stop};

async fn count(world: &impl DriverFixture, factory: &str) -> usize {
    world.count(&factory.parse().unwrap()).await
}

pub async fn one_that_is_started_is_there_until_it_is_stopped(world: &impl DriverFixture) {
    let driver = world.open();
    let handle = driver.start(&to_start(world, "gpu-1")).await.unwrap();
    assert!(!handle.is_empty() && !handle.contains(CREDENTIAL), "{handle}");
    assert_eq!(count(world, "gpu-1").await, 1);
    let order = to_stop(world, "gpu-1", Some(&handle));
    assert_ne!(driver.is_alive(&order).await.unwrap(), Some(false));
    driver.stop(&order).await.unwrap();
    assert_eq!(count(world, "gpu-1").await, 0);
    assert_ne!(driver.is_alive(&order).await.unwrap(), Some(true));
}

pub async fn a_start_that_comes_twice_starts_one(world: &impl DriverFixture) {
    let driver = world.open();
    let order = to_start(world, "gpu-1");
    let first = driver.start(&order).await.unwrap();
    assert_eq!(driver.start(&order).await.unwrap(), first);
    assert_eq!(count(world, "gpu-1").await, 1);
    driver.stop(&to_stop(world, "gpu-1", Some(&first))).await.unwrap();
    assert_eq!(count(world, "gpu-1").await, 0);
}

pub async fn two_that_start_the_same_at_once_start_one(world: &impl DriverFixture) {
    let (one, other) = (world.open(), world.open());
    let order = to_start(world, "gpu-1");
    let (first, second) = tokio::join!(one.start(&order), other.start(&order));
    let handles: Vec<String> = [first, second].into_iter().flatten().collect();
    assert!(!handles.is_empty(), "one of them at least");
    assert!(handles.iter().all(|handle| *handle == handles[0]), "{handles:?}");
    assert_eq!(count(world, "gpu-1").await, 1);
    one.stop(&to_stop(world, "gpu-1", Some(&handles[0]))).await.unwrap();
}

pub async fn a_coordinator_that_comes_back_finds_what_the_one_before_started(world: &impl DriverFixture) {
    let order = to_start(world, "gpu-1");
    let handle = world.open().start(&order).await.unwrap();
    let driver = world.open();
    assert_eq!(driver.start(&order).await.unwrap(), handle, "asked for again");
    assert_eq!(count(world, "gpu-1").await, 1);
    let order = to_stop(world, "gpu-1", Some(&handle));
    assert_ne!(driver.is_alive(&order).await.unwrap(), Some(false));
    driver.stop(&order).await.unwrap();
    assert_eq!(count(world, "gpu-1").await, 0);
}

/// The coordinator was ended between the start and the note of its handle.
pub async fn one_whose_handle_was_never_noted_is_found_and_stopped(world: &impl DriverFixture) {
    world.open().start(&to_start(world, "gpu-1")).await.unwrap();
    let driver = world.open();
    let order = to_stop(world, "gpu-1", None);
    assert_ne!(driver.is_alive(&order).await.unwrap(), Some(false));
    driver.stop(&order).await.unwrap();
    assert_eq!(count(world, "gpu-1").await, 0);
}

pub async fn what_is_gone_or_never_was_can_be_stopped(world: &impl DriverFixture) {
    let driver = world.open();
    driver.stop(&to_stop(world, "gpu-1", None)).await.unwrap();
    let handle = driver.start(&to_start(world, "gpu-1")).await.unwrap();
    let order = to_stop(world, "gpu-1", Some(&handle));
    for _ in 0..2 {
        driver.stop(&order).await.unwrap();
    }
    assert_eq!(count(world, "gpu-1").await, 0);
}

pub async fn one_that_ended_by_itself_is_seen_to_be_gone(world: &impl DriverFixture) {
    let driver = world.open();
    let handle = driver.start(&to_start(world, "gpu-1")).await.unwrap();
    world.end(&"gpu-1".parse().unwrap()).await;
    let order = to_stop(world, "gpu-1", Some(&handle));
    assert_ne!(driver.is_alive(&order).await.unwrap(), Some(true));
    driver.stop(&order).await.unwrap();
    assert_eq!(count(world, "gpu-1").await, 0);
}

pub async fn a_stop_meets_nobody_else(world: &impl DriverFixture) {
    let driver = world.open();
    let names = ["gpu-1", "gpu-10", "gpu-1.a", "Gpu-1"];
    let mut handles = Vec::new();
    for name in names {
        handles.push(driver.start(&to_start(world, name)).await.unwrap());
    }
    driver.stop(&to_stop(world, "gpu-1", Some(&handles[0]))).await.unwrap();
    assert_eq!(count(world, "gpu-1").await, 0);
    for (name, handle) in names.iter().zip(&handles).skip(1) {
        assert_eq!(count(world, name).await, 1, "{name}");
        driver.stop(&to_stop(world, name, Some(handle))).await.unwrap();
    }
}
