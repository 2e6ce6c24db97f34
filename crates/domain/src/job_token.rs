//! Job tokens: `gigaj_<job>_<epoch>_<43 of the seal><6 checksum>`, for what runs inside a job.
//!
//! Nothing is kept of them: the seal is a keyed hash of job and epoch, so whoever has the key can tell a real one. Being
//! real is not enough: a token is good only while its epoch holds the job, which the store knows and this module never
//! does.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::token::{MalformedToken, TokenSecret, base62, checksum};
use crate::{Epoch, JobId};

const PREFIX: &str = "gigaj_";
const SEAL_CHARS: usize = 43;
const CHECK_CHARS: usize = 6;

/// Which job and epoch a token says it is for. Whether that is true, [`Self::is_sealed_by`] tells.
#[derive(Clone, PartialEq, Eq)]
pub struct JobToken {
    pub job: JobId,
    pub epoch: Epoch,
    seal: String,
}

impl JobToken {
    pub fn new(key: &[u8; 32], job: JobId, epoch: Epoch) -> Self {
        Self { job, epoch, seal: seal(key, job, epoch) }
    }

    /// Is it meant to be one?
    pub fn looks_like(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Checks form and checksum only.
    pub fn parse(text: &str) -> Result<Self, MalformedToken> {
        let parts = || {
            let (head, check) = text.split_at_checked(text.len().checked_sub(CHECK_CHARS)?)?;
            let mut parts = head.strip_prefix(PREFIX)?.split('_');
            let (job, epoch, seal) = (parts.next()?, parts.next()?, parts.next()?);
            // One way to write a number, so that a token has one text.
            let number: u64 = epoch.parse().ok().filter(|number: &u64| number.to_string() == epoch)?;
            let whole = parts.next().is_none() && seal.len() == SEAL_CHARS && checksum(head) == check;
            whole.then_some(())?;
            Some(Self { job: job.parse().ok()?, epoch: Epoch(number), seal: seal.to_owned() })
        };
        parts().filter(|token| token.secret().reveal() == text).ok_or(MalformedToken)
    }

    /// In constant time.
    pub fn is_sealed_by(&self, key: &[u8; 32]) -> bool {
        seal(key, self.job, self.epoch).as_bytes().ct_eq(self.seal.as_bytes()).into()
    }

    pub fn secret(&self) -> TokenSecret {
        let head = format!("{PREFIX}{}_{}_{}", self.job, self.epoch, self.seal);
        let check = checksum(&head);
        TokenSecret::of_text(head + &check)
    }
}

fn seal(key: &[u8; 32], job: JobId, epoch: Epoch) -> String {
    base62(mac(key, &format!("job-token/{job}/{epoch}")))
}

/// HMAC-SHA256 of a text. What is signed for one purpose begins with another word than what is signed for the next.
pub fn mac(key: &[u8; 32], text: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

impl std::fmt::Debug for JobToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JobToken({}, {}, …)", self.job, self.epoch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Timestamp;

    fn job() -> JobId {
        JobId::from_parts(Timestamp::from_millis(1_700_000_000_000), 7)
    }

    #[test]
    fn a_token_is_good_for_its_own_job_epoch_and_key_only() {
        let token = JobToken::new(&[1; 32], job(), Epoch(3));
        let text = token.secret().reveal().to_owned();
        let read = JobToken::parse(&text).unwrap();
        assert_eq!(read, token);
        assert!(read.is_sealed_by(&[1; 32]));
        assert!(!read.is_sealed_by(&[2; 32]));
        for stolen in [
            JobToken { epoch: Epoch(4), ..token.clone() },
            JobToken { job: JobId::from_parts(Timestamp::from_millis(2), 7), ..token.clone() },
        ] {
            let stolen = JobToken::parse(stolen.secret().reveal()).unwrap();
            assert!(!stolen.is_sealed_by(&[1; 32]), "{stolen:?}");
        }
        assert!(!format!("{token:?}").contains(&token.seal[..8]));
    }

    #[test]
    fn what_is_mangled_is_told_from_what_is_over() {
        let text = JobToken::new(&[1; 32], job(), Epoch(3)).secret().reveal().to_owned();
        let spelled = text.replacen("_3_", "_03_", 1);
        let head = &spelled[..spelled.len() - CHECK_CHARS];
        let another_text = format!("{head}{}", checksum(head));
        for wrong in [&text[1..], &text[..text.len() - 1], "gigaj_", "", "gigaj_a_1_b", "ü", &another_text] {
            assert_eq!(JobToken::parse(wrong), Err(MalformedToken), "{wrong}");
        }
        assert!(TokenSecret::parse(&text).is_err(), "it is not one of the tokens that the store keeps");
    }
}
