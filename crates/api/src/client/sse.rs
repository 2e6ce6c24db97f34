//! Server-sent events from bytes that may be cut anywhere.
//!
//! Only what the coordinator sends: `id`, `event`, `data` and comments. It never keeps more of an event than
//! [`MOST_BYTES`], so that a broken server cannot fill the memory.

const MOST_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) id: Option<String>,
    pub(super) event: String,
    pub(super) data: String,
}

#[derive(Debug, Default)]
pub(super) struct Parser {
    line: Vec<u8>,
    after_cr: bool,
    message: Message,
    has_data: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Parser {
    /// The messages that these bytes complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Result<Vec<Message>, TooLong> {
        let mut complete = Vec::new();
        for &byte in bytes {
            // A line ends with \n, \r or \r\n; the \n of the last belongs to the \r before it.
            let second_half = std::mem::replace(&mut self.after_cr, byte == b'\r') && byte == b'\n';
            match byte {
                b'\n' if second_half => {}
                b'\n' | b'\r' => complete.extend(self.end_line()),
                _ if self.line.len() + self.message.data.len() < MOST_BYTES => self.line.push(byte),
                _ => return Err(TooLong),
            }
        }
        Ok(complete)
    }

    fn end_line(&mut self) -> Option<Message> {
        let line = std::mem::take(&mut self.line);
        let line = String::from_utf8_lossy(&line);
        if line.is_empty() {
            let message = std::mem::take(&mut self.message);
            return std::mem::take(&mut self.has_data).then_some(message);
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => self.message.id = Some(value.to_owned()),
            "event" => value.clone_into(&mut self.message.event),
            "data" => {
                if self.has_data {
                    self.message.data.push('\n');
                }
                self.message.data.push_str(value);
                self.has_data = true;
            }
            // Comments (an empty field) keep the connection alive; `retry` and unknown fields are not for us.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(id: &str, event: &str, data: &str) -> Message {
        let id = (!id.is_empty()).then(|| id.to_owned());
        Message { id, event: event.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn every_cut_gives_the_same_messages() {
        let text = ": hello\n\nid: 7\nevent: job.assigned\ndata: {\"a\":\"é\"}\n\nid:8\r\ndata:x\r\ndata: y\r\n\r\nretry: 5\n\n";
        let wanted = vec![message("7", "job.assigned", "{\"a\":\"é\"}"), message("8", "", "x\ny")];
        for cut in 0..=text.len() {
            let mut parser = Parser::default();
            let mut got = parser.feed(&text.as_bytes()[..cut]).unwrap();
            got.extend(parser.feed(&text.as_bytes()[cut..]).unwrap());
            assert_eq!(got, wanted, "cut at {cut}");
        }
    }

    #[test]
    fn an_unfinished_message_is_not_told() {
        let mut parser = Parser::default();
        assert_eq!(parser.feed(b"id: 1\ndata: half\n").unwrap(), []);
        assert_eq!(parser.feed(b"\n").unwrap(), [message("1", "", "half")]);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let mut parser = Parser::default();
        assert_eq!(parser.feed(&vec![b'x'; MOST_BYTES + 1]), Err(TooLong));
    }
}
