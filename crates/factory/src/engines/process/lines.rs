//! Lines of a stream that may never end one.
//!
//! Holds no more of a line than its limit: the rest is read, counted as a sign of life, and thrown away.

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

#[derive(Debug, PartialEq, Eq)]
pub(in crate::engines) struct Line {
    /// Without the line end; what is no UTF-8 is replaced.
    pub(in crate::engines) text: String,
    /// Bytes that were thrown away.
    pub(in crate::engines) lost: u64,
}

pub(super) struct Lines<R> {
    reader: BufReader<R>,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(stream: R, limit: usize) -> Self {
        Self { reader: BufReader::with_capacity(64 * 1024, stream), limit }
    }

    /// `alive` is called whenever bytes came. A stream that breaks has ended.
    pub(super) async fn next(&mut self, mut alive: impl FnMut()) -> Option<Line> {
        let mut kept: Vec<u8> = Vec::new();
        let mut lost = 0;
        loop {
            let chunk = self.reader.fill_buf().await.unwrap_or_default();
            if chunk.is_empty() {
                return (!kept.is_empty() || lost > 0).then(|| line(&kept, lost));
            }
            alive();
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let piece = &chunk[..end.unwrap_or(chunk.len())];
            let room = piece.len().min(self.limit.saturating_sub(kept.len()));
            kept.extend_from_slice(&piece[..room]);
            lost += (piece.len() - room) as u64;
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                return Some(line(&kept, lost));
            }
        }
    }
}

fn line(bytes: &[u8], lost: u64) -> Line {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    Line { text: String::from_utf8_lossy(bytes).into_owned(), lost }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8], limit: usize) -> Vec<(String, u64)> {
        let mut lines = Lines::new(bytes, limit);
        let mut all = Vec::new();
        while let Some(line) = lines.next(|| ()).await {
            all.push((line.text, line.lost));
        }
        all
    }

    #[tokio::test]
    async fn lines_end_with_any_end() {
        let lines = read(b"a\r\n\nb\nrest", 100).await;
        assert_eq!(lines, [("a".into(), 0), (String::new(), 0), ("b".into(), 0), ("rest".into(), 0)]);
    }

    #[tokio::test]
    async fn a_long_line_is_cut_and_the_next_is_whole() {
        let lines = read(b"0123456789\nnext\n", 4).await;
        assert_eq!(lines, [("0123".into(), 6), ("next".into(), 0)]);
    }

    #[tokio::test]
    async fn bytes_that_are_no_text_are_replaced() {
        let lines = read(b"a\xff\xfeb\n", 100).await;
        assert_eq!(lines, [("a\u{fffd}\u{fffd}b".into(), 0)]);
    }
}
