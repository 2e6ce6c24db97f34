//! Files: all of their bytes or none.

use std::ops::Range;

use futures::{StreamExt, TryStreamExt, stream};
use giga_ports::blobs::{ByteStream, FileLabels, in_one_piece};
use giga_ports::{Artifacts, BlobError};

use super::BlobFixture;

/// More than two parts of an upload, and no whole number of them.
const LARGE: usize = 20 * 1024 * 1024 + 3;

pub fn labels() -> FileLabels {
    FileLabels {
        content_type: "text/html".to_owned(),
        content_disposition: "attachment; filename=\"a.html\"".to_owned(),
    }
}

async fn put(artifacts: &dyn Artifacts, key: &str, bytes: impl Into<Vec<u8>>) -> u64 {
    artifacts.put(key, &labels(), in_one_piece(bytes.into())).await.unwrap()
}

async fn get(artifacts: &dyn Artifacts, key: &str, range: Range<u64>) -> Result<Vec<u8>, BlobError> {
    let pieces: Vec<_> = artifacts.get(key, range).await?.try_collect().await?;
    Ok(pieces.concat())
}

async fn is_gone(artifacts: &dyn Artifacts, key: &str) -> bool {
    let gone = |error: &BlobError| matches!(error, BlobError::NotFound(_));
    artifacts.get(key, 0..1).await.as_ref().err().is_some_and(gone)
        && artifacts.get(key, 0..0).await.as_ref().err().is_some_and(gone)
}

pub async fn what_is_put_comes_back_until_it_is_deleted(world: &impl BlobFixture) {
    let ((one, _), (other, _)) = (world.open(), world.open());
    assert!(is_gone(&*one, "job/1/report.txt").await);
    assert_eq!(put(&*one, "job/1/report.txt", "first").await, 5);
    assert_eq!(put(&*one, "job/1/report.txt", "fine").await, 4, "a key can be used again");
    assert_eq!(get(&*other, "job/1/report.txt", 0..4).await.unwrap(), b"fine");
    for _ in 0..2 {
        other.delete("job/1/report.txt").await.unwrap();
        assert!(is_gone(&*one, "job/1/report.txt").await);
    }
}

pub async fn any_stretch_of_a_file_can_be_read(world: &impl BlobFixture) {
    let (artifacts, _) = world.open();
    put(&*artifacts, "a", "0123456789").await;
    for range in [0..10, 0..1, 3..7, 9..10, 4..4] {
        let expected = &b"0123456789"[range.start as usize..range.end as usize];
        assert_eq!(get(&*artifacts, "a", range).await.unwrap(), expected);
    }
}

pub async fn an_empty_file_is_a_file(world: &impl BlobFixture) {
    let (artifacts, _) = world.open();
    let nothing: ByteStream = stream::empty().boxed();
    assert_eq!(artifacts.put("a/empty", &labels(), nothing).await.unwrap(), 0);
    assert_eq!(get(&*artifacts, "a/empty", 0..0).await.unwrap(), b"");
    artifacts.delete("a/empty").await.unwrap();
    assert!(is_gone(&*artifacts, "a/empty").await);
}

/// Bytes that differ from one place to the next, in pieces of no round size.
fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|place| (place % 251) as u8 ^ (place >> 16) as u8).collect()
}

fn in_pieces(bytes: &[u8]) -> ByteStream {
    let pieces: Vec<Vec<u8>> = bytes.chunks(123_457).map(<[u8]>::to_vec).collect();
    // One that may not be asked again after its end, as those of servers may not.
    stream::unfold(pieces.into_iter(), |mut pieces| async move {
        let piece = pieces.next()?;
        Some((Ok(piece.into()), pieces))
    })
    .boxed()
}

pub async fn a_large_file_goes_in_parts_and_comes_back_whole(world: &impl BlobFixture) {
    let (artifacts, _) = world.open();
    let bytes = pattern(LARGE);
    assert_eq!(artifacts.put("a/large", &labels(), in_pieces(&bytes)).await.unwrap(), LARGE as u64);
    let whole = get(&*artifacts, "a/large", 0..LARGE as u64).await.unwrap();
    assert!(whole == bytes, "it came back otherwise");
    let across = 8 * 1024 * 1024 - 2..8 * 1024 * 1024 + 2_u64;
    let expected = &bytes[across.start as usize..across.end as usize];
    assert_eq!(get(&*artifacts, "a/large", across).await.unwrap(), expected);
}

pub async fn one_that_breaks_off_leaves_nothing(world: &impl BlobFixture) {
    let (artifacts, _) = world.open();
    for length in [10, LARGE] {
        let broken = stream::iter([Err(BlobError::BrokeOff("the cable".to_owned()))]);
        let bytes = in_pieces(&pattern(length)).chain(broken).boxed();
        let refused = artifacts.put("a/broken", &labels(), bytes).await.unwrap_err();
        assert!(matches!(refused, BlobError::BrokeOff(_)), "{refused}");
        assert!(is_gone(&*artifacts, "a/broken").await);
    }
}

pub async fn a_folder_goes_with_all_that_is_in_it_and_with_nothing_else(world: &impl BlobFixture) {
    let (artifacts, _) = world.open();
    for key in ["one/1/a", "one/2/b", "one-more/1/a"] {
        put(&*artifacts, key, "x").await;
    }
    for _ in 0..2 {
        artifacts.delete_all("one").await.unwrap();
        assert!(is_gone(&*artifacts, "one/1/a").await && is_gone(&*artifacts, "one/2/b").await);
        assert_eq!(get(&*artifacts, "one-more/1/a", 0..1).await.unwrap(), b"x");
    }
}

pub async fn a_key_may_have_any_letters(world: &impl BlobFixture) {
    let (artifacts, _) = world.open();
    let keys = ["a/größe", "a/b c", "a/100%", "a/x?y=z&w", "a/#1", "../a", "a/+"];
    for key in keys {
        put(&*artifacts, key, key).await;
    }
    for key in keys {
        let got = get(&*artifacts, key, 0..key.len() as u64).await.unwrap();
        assert_eq!(String::from_utf8(got).unwrap(), key);
    }
}

pub async fn a_look_leaves_nothing_behind(world: &impl BlobFixture) {
    let (artifacts, _) = world.open();
    put(&*artifacts, "a", "x").await;
    artifacts.check().await.unwrap();
    assert!(is_gone(&*artifacts, "check").await);
    assert_eq!(get(&*artifacts, "a", 0..1).await.unwrap(), b"x");
}
