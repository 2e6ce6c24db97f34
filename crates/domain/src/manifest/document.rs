//! Cuts a Markdown document into front matter and body.
//!
//! Never changes a byte of the body: it is the prompt, and what the author wrote is what the engine reads.

use super::error::{ManifestError, quoted};
use crate::limits;

const EXAMPLE: &str =
    "the smallest manifest has the four lines `---`, `name: fix-greeting`, `---`, `Fix the greeting.`";

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document<'a> {
    /// From the opening `---` line up to the closing one, which is left out.
    pub(super) front: &'a str,
    pub(super) body: &'a str,
}

pub(super) fn split(bytes: &[u8]) -> Result<Document<'_>, ManifestError> {
    if bytes.len() > limits::MANIFEST_BYTES {
        let message = format!(
            "the manifest has {} bytes; with its body it may have at most {} (1 MiB)",
            bytes.len(),
            limits::MANIFEST_BYTES
        );
        return Err(ManifestError::whole(None, message));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        let line = bytes[..at].split(|byte| *byte == b'\n').count();
        let message = format!(
            "the manifest must be UTF-8 text; byte {at} (0x{:02x}) is not part of any character",
            bytes[at]
        );
        ManifestError::whole(Some(line), message)
    })?;
    // Some editors put a byte order mark first; it belongs to the file, not to the manifest.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = lines(text);
    match lines.next() {
        Some((_, "---")) => {}
        None => return Err(ManifestError::whole(None, format!("the manifest is empty; {EXAMPLE}"))),
        Some((_, first)) => {
            let message = format!("the first line must be `---`, it is {}; {EXAMPLE}", quoted(first));
            return Err(ManifestError::whole(Some(1), message));
        }
    }
    for (start, line) in lines {
        if line == "---" {
            let after = text[start..].find('\n').map_or(text.len(), |newline| start + newline + 1);
            return Ok(Document { front: &text[..start], body: &text[after..] });
        }
    }
    Err(ManifestError::whole(
        Some(1),
        format!(
            "the front matter that starts here has no end; close it with a line that is only `---`; {EXAMPLE}"
        ),
    ))
}

/// Each line with the offset at which it starts, without its line end.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let at = start;
        start += line.len();
        let line = line.strip_suffix('\n').unwrap_or(line);
        (at, line.strip_suffix('\r').unwrap_or(line))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn refused(bytes: &[u8]) -> String {
        split(bytes).unwrap_err().to_string()
    }

    #[test]
    fn the_body_is_kept_byte_for_byte() {
        for body in [
            "",
            "\n",
            "no final newline",
            "  leading\r\n\r\ntrailing  \t\n\n\n",
            "---\nmore\n---\n",
            "\u{feff}a second mark",
            "nul \0 inside",
        ] {
            for (open, close) in [("---\n", "---\n"), ("---\r\n", "---\r\n"), ("\u{feff}---\n", "---\r\n")] {
                let text = format!("{open}name: x\n{close}{body}");
                let document = split(text.as_bytes()).unwrap();
                assert_eq!(document.body, body, "{text:?}");
            }
        }
        assert_eq!(split(b"---\nname: x\n---").unwrap().body, "", "the closing line may be the last");
    }

    #[test]
    fn only_a_whole_line_closes() {
        let document = split(b"---\na: 1\n--- \n ---\n----\n---\nbody").unwrap();
        assert_eq!(document.front, "---\na: 1\n--- \n ---\n----\n");
        assert_eq!(document.body, "body");
    }

    #[test]
    fn what_is_not_a_document_is_explained() {
        assert!(refused(b"").contains("empty"));
        assert!(refused(b"# Title\n").contains("name: fix-greeting"));
        assert!(refused(b"---\nname: x\n").contains("no end"));
        assert!(
            refused(b"---\nname: \xff\n---\n")
                .starts_with("line 2: the manifest must be UTF-8 text; byte 10 (0xff)")
        );
        let most = [b"---\nname: x\n---\n".as_slice(), &vec![b'x'; limits::MANIFEST_BYTES - 16]].concat();
        assert!(split(&most).is_ok());
        assert!(refused(&[most.as_slice(), b"x"].concat()).contains("1048577 bytes"));
    }

    proptest! {
        #[test]
        fn any_body_survives(body in any::<String>()) {
            let text = format!("---\nname: x\n---\n{body}");
            prop_assert_eq!(split(text.as_bytes()).unwrap().body, body);
        }
    }
}
