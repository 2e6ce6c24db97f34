//! Webhooks as the Standard Webhooks specification has them: id, time and signature beside a JSON body.
//!
//! The id is the effect's own, so a repetition can be recognised; the signature covers id, time and body.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use giga_domain::{Effect, EffectOutcome, SigningKey, Timestamp, Webhook};
use hmac::{Hmac, KeyInit as _, Mac as _};
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use sha2::Sha256;

use crate::http::{Answer, Failure, Http};

/// Of an answer nobody needs more.
const ANSWER_BYTES: usize = 4 * 1024;

/// `v1,` and the signature in base64.
pub fn signature(secret: &SigningKey, id: &str, seconds: i64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(&secret.0).expect("a key may have any length");
    mac.update(format!("{id}.{seconds}.").as_bytes());
    mac.update(body);
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

pub(crate) async fn deliver(
    http: &Http,
    effect: &Effect,
    webhook: &Webhook,
    now: Timestamp,
) -> EffectOutcome {
    let body = effect.payload.to_string().into_bytes();
    let headers = headers(effect, webhook, now, &body);
    match http.send(Method::POST, &webhook.url, headers, Some(body), ANSWER_BYTES).await {
        Ok(answer) => judge(&answer, now),
        Err(Failure::Refused(detail)) => EffectOutcome::Refused { detail },
        Err(Failure::Failed(detail)) => EffectOutcome::Failed { detail, after: None },
    }
}

fn headers(effect: &Effect, webhook: &Webhook, now: Timestamp, body: &[u8]) -> HeaderMap {
    let seconds = now.as_millis().div_euclid(1_000);
    let signature = signature(&webhook.secret, effect.id.as_str(), seconds, body);
    let value = |text: &str| HeaderValue::from_str(text).expect("ids, numbers and base64 are ASCII");
    HeaderMap::from_iter([
        (CONTENT_TYPE, HeaderValue::from_static("application/json")),
        ("webhook-id".parse().expect("a header's name"), value(effect.id.as_str())),
        ("webhook-timestamp".parse().expect("a header's name"), value(&seconds.to_string())),
        ("webhook-signature".parse().expect("a header's name"), value(&signature)),
    ])
}

fn judge(answer: &Answer, now: Timestamp) -> EffectOutcome {
    let detail = answer.summary();
    match answer.status.as_u16() {
        200..=299 => EffectOutcome::Delivered { detail },
        300..=399 => {
            EffectOutcome::Failed { detail: format!("{detail}; redirects are never followed"), after: None }
        }
        410 => EffectOutcome::Refused { detail: format!("{detail}; the receiver is gone for good") },
        429 | 503 => EffectOutcome::Failed { detail, after: answer.retry_after(now) },
        _ => EffectOutcome::Failed { detail, after: None },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with another implementation.
    #[test]
    fn the_signature_is_the_one_of_the_specification() {
        let secret = SigningKey([7; 32]);
        assert_eq!(signature(&secret, "wh:1:2", 1_614_265_330, br#"{"test": 2432232314}"#), SIGNED_ELSEWHERE);
        let other = signature(&secret, "wh:1:3", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_ne!(other, SIGNED_ELSEWHERE);
    }

    const SIGNED_ELSEWHERE: &str = "v1,xCeuODs7zLjcVZO2xq2j4EFu1E/B2+iUyE2ooY2Penw=";
}
