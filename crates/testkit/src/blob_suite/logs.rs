//! Logs: they grow at their end, whoever adds to them and however often.

use std::sync::atomic::{AtomicBool, Ordering};

use giga_domain::{Epoch, JobId, Timestamp};
use giga_ports::{BlobError, Logs};

use super::BlobFixture;

const E: Epoch = Epoch(1);

fn id() -> JobId {
    JobId::from_parts(Timestamp::from_millis(1), 1)
}

/// What a run writes: lines that say where they are.
fn lines(count: usize) -> Vec<u8> {
    (0..count).flat_map(|number| format!("line {number:06}\n").into_bytes()).collect()
}

async fn whole(logs: &dyn Logs) -> Vec<u8> {
    logs.read(id(), E, 0, usize::MAX / 2).await.unwrap().bytes
}

pub async fn one_grows_at_its_end_and_a_repeated_piece_adds_nothing(world: &impl BlobFixture) {
    let ((_, logs), (_, other)) = (world.open(), world.open());
    assert_eq!(logs.append(id(), E, 0, b"hello ").await.unwrap(), 6);
    assert_eq!(logs.append(id(), E, 0, b"hello ").await.unwrap(), 6, "a lost reply");
    assert_eq!(other.append(id(), E, 0, b"hello ").await.unwrap(), 6, "a lost reply, elsewhere");
    assert_eq!(other.append(id(), E, 3, b"lo world").await.unwrap(), 11, "an overlap");
    assert_eq!(logs.append(id(), E, 6, b"world!").await.unwrap(), 12, "behind what another one added");
    let slice = logs.read(id(), E, 6, 3).await.unwrap();
    assert_eq!((slice.bytes.as_slice(), slice.total), (b"wor".as_slice(), 12));
    assert_eq!(whole(&*other).await, b"hello world!");
    assert!(logs.read(id(), E, 99, 3).await.unwrap().bytes.is_empty());
    assert_eq!(logs.read(id(), Epoch(2), 0, 3).await.unwrap().total, 0, "another run, another log");
    assert_eq!(logs.append(id(), Epoch(2), 0, b"").await.unwrap(), 0, "nothing is nothing");
    assert_eq!(logs.append(id(), Epoch(3), 0, b"kept").await.unwrap(), 4);
    assert_eq!(logs.append(id(), Epoch(3), 4, b"too late").await.unwrap(), 12);
    logs.cut(id(), Epoch(3), 4).await.unwrap();
    logs.cut(id(), Epoch(3), 4).await.unwrap();
    assert_eq!(other.read(id(), Epoch(3), 0, 100).await.unwrap().bytes, b"kept", "the end was taken back");
}

pub async fn a_gap_is_refused_and_says_where_to_go_on(world: &impl BlobFixture) {
    let (_, logs) = world.open();
    logs.append(id(), E, 0, b"abc").await.unwrap();
    let gap = logs.append(id(), E, 7, b"x").await.unwrap_err();
    assert!(matches!(gap, BlobError::Gap { expected: 3, given: 7 }), "{gap}");
    assert_eq!(whole(&*logs).await, b"abc");
}

pub async fn removing_takes_every_run_and_can_be_repeated(world: &impl BlobFixture) {
    let (_, logs) = world.open();
    let other = JobId::from_parts(Timestamp::from_millis(1), 2);
    logs.append(other, E, 0, b"y").await.unwrap();
    for epoch in 1..4 {
        logs.append(id(), Epoch(epoch), 0, b"x").await.unwrap();
    }
    for _ in 0..2 {
        logs.remove(id()).await.unwrap();
        for epoch in 1..4 {
            assert_eq!(logs.read(id(), Epoch(epoch), 0, 9).await.unwrap().total, 0);
        }
    }
    assert_eq!(logs.read(other, E, 0, 9).await.unwrap().bytes, b"y");
}

pub async fn many_small_pieces_read_as_one(world: &impl BlobFixture) {
    let ((_, logs), (_, reader)) = (world.open(), world.open());
    let text = lines(100);
    for (number, line) in text.chunks(12).enumerate() {
        let length = logs.append(id(), E, number as u64 * 12, line).await.unwrap();
        assert_eq!(length, (number as u64 + 1) * 12);
    }
    assert!(whole(&*reader).await == text);
    for (offset, limit) in [(0, 1), (5, 40), (383, 3), (384, 12), (1_190, 99)] {
        let end = text.len().min(offset + limit);
        let slice = reader.read(id(), E, offset as u64, limit).await.unwrap();
        assert_eq!((slice.bytes.as_slice(), slice.total), (&text[offset..end], 1_200), "from {offset}");
    }
    assert_eq!(reader.append(id(), E, 0, &text).await.unwrap(), 1_200, "all of it again");
    assert_eq!(whole(&*logs).await.len(), 1_200);
}

/// As when a holder's connection moves from one coordinator to the next and both have some of its calls.
pub async fn two_coordinators_write_one_log(world: &impl BlobFixture) {
    let ((_, one), (_, other)) = (world.open(), world.open());
    let text = lines(120);
    let write = |logs: std::sync::Arc<dyn Logs>, size: usize| {
        let text = text.clone();
        async move {
            let mut at = 0;
            while at < text.len() {
                let end = text.len().min(at + size);
                // It may be told more than it sent, because the other one was faster.
                at = logs.append(id(), E, at as u64, &text[at..end]).await.unwrap() as usize;
            }
        }
    };
    let (first, second) = (tokio::spawn(write(one.clone(), 17)), tokio::spawn(write(other.clone(), 31)));
    first.await.unwrap();
    second.await.unwrap();
    let (_, reader) = world.open();
    assert!(whole(&*reader).await == text, "bytes were lost, doubled or moved");
    assert_eq!(reader.append(id(), E, text.len() as u64, b"!").await.unwrap(), text.len() as u64 + 1);
}

pub async fn readers_see_a_beginning_of_it_at_any_time(world: &impl BlobFixture) {
    let ((_, logs), (_, reader)) = (world.open(), world.open());
    let text = lines(80);
    let done = AtomicBool::new(false);
    let write = async {
        for (number, line) in text.chunks(12).enumerate() {
            logs.append(id(), E, number as u64 * 12, line).await.unwrap();
        }
        done.store(true, Ordering::SeqCst);
    };
    let read = async {
        let mut longest = 0;
        loop {
            let last = done.load(Ordering::SeqCst);
            let seen = whole(&*reader).await;
            assert!(text.starts_with(&seen), "a reader saw what was never written");
            assert!(seen.len() >= longest, "{} bytes after {longest}", seen.len());
            longest = seen.len();
            if last {
                break assert_eq!(longest, text.len());
            }
        }
    };
    tokio::join!(write, read);
}

pub async fn one_who_looked_earlier_takes_nothing_away(world: &impl BlobFixture) {
    let ((_, early), (_, late)) = (world.open(), world.open());
    assert_eq!(early.append(id(), E, 0, b"").await.unwrap(), 0, "it has seen an empty log");
    assert_eq!(late.append(id(), E, 0, b"hello world").await.unwrap(), 11);
    let reported = early.append(id(), E, 0, b"hello").await.unwrap();
    assert_eq!(late.read(id(), E, 0, 99).await.unwrap().bytes, b"hello world");
    assert_eq!(late.append(id(), E, 11, b"!").await.unwrap(), 12, "where it was told to go on");
    assert_eq!(reported, 11);
}
