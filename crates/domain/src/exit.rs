//! How a process ended, in words that are found again in a failure's detail.
//!
//! Whoever runs the process writes them; whoever shows the failure puts them first, because "exited with code 3" says
//! more than "crashed".

use crate::{FailReason, Failure};

const CODE: &str = "exited with code ";
const SIGNAL: &str = "was ended by signal ";

/// `None` for both where nobody knows.
pub fn exit_words(code: Option<i32>, signal: Option<i32>) -> String {
    match (code, signal) {
        (Some(code), _) => format!("{CODE}{code}"),
        (None, Some(signal)) => format!("{SIGNAL}{signal}"),
        (None, None) => "ended in an unknown way".to_owned(),
    }
}

impl Failure {
    /// A few words for it: how its process ended where that is all there is to say, else the reason.
    pub fn headline(&self) -> &str {
        headline(self.reason, self.detail.as_deref())
    }

    /// The same with all that is known.
    pub fn words(&self) -> String {
        words(self.reason, self.detail.as_deref())
    }
}

/// See [`Failure::headline`].
pub fn headline(reason: FailReason, detail: Option<&str>) -> &str {
    let ended = detail.filter(|_| reason == FailReason::Crash).and_then(|detail| {
        let number = detail.strip_prefix(CODE).or_else(|| detail.strip_prefix(SIGNAL))?;
        let rest = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '-');
        Some(&detail[..detail.len() - rest.len()])
    });
    ended.unwrap_or(reason.label())
}

/// See [`Failure::words`].
pub fn words(reason: FailReason, detail: Option<&str>) -> String {
    let headline = headline(reason, detail);
    match detail {
        Some(detail) if detail.starts_with(headline) => detail.to_owned(),
        Some(detail) => format!("{headline}: {detail}"),
        None => headline.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_it_ended_stands_first() {
        let check = |reason, detail: &str, short: &str, long: &str| {
            let failure = Failure { reason, detail: Some(detail.to_owned()) };
            assert_eq!((failure.headline(), failure.words().as_str()), (short, long));
        };
        let boom = format!("{}: boom", exit_words(Some(3), None));
        check(FailReason::Crash, &boom, "exited with code 3", "exited with code 3: boom");
        let killed = exit_words(None, Some(9));
        check(FailReason::Crash, &killed, "was ended by signal 9", "was ended by signal 9");
        check(FailReason::Crash, "it broke", "crashed", "crashed: it broke");
        let verify = format!("`make test`: {}", exit_words(Some(2), None));
        let long = "verification failed: `make test`: exited with code 2";
        check(FailReason::VerifyFailed, &verify, "verification failed", long);
        let silent = Failure { reason: FailReason::Timeout, detail: None };
        assert_eq!(silent.words(), "timed out");
    }
}
