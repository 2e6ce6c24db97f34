//! The server's accounts: one for the coordinators, one for each factory.
//!
//! An account per factory, and not only a user with permissions: NATS does not check where a request asks its answer to
//! go. A user who may acknowledge could name `$JS.API.STREAM.DELETE.…` as the place for the confirmation, and the server
//! itself would send it there. What crosses accounts is answered in the account that asked.
//!
//! The exports are for all factories at once: which account imports what is only the configuration's to say.

use giga_domain::FactoryId;

use super::NatsPublicKey;
use super::streams::{OFFERS, token};

const COORDINATORS: &str = "giga";

/// A block for the server's configuration. It holds no secret.
pub fn server_accounts(coordinator: &NatsPublicKey, factories: &[(FactoryId, NatsPublicKey)]) -> String {
    let (next, ack) = (next("*"), ack("*"));
    let mut text = format!(
        "accounts {{\n  {COORDINATORS} {{\n    jetstream: enabled\n    users = [{{ nkey: {coordinator} }}]\n    \
         exports = [\n      {{ service: \"{next}\", response_type: stream }}\n      {{ service: \"{ack}\" }}\n    ]\n  \
         }}\n"
    );
    for (factory, key) in factories {
        text.push_str(&account(factory, key));
    }
    text.push_str("}\n");
    text
}

fn account(factory: &FactoryId, key: &NatsPublicKey) -> String {
    let token = token(factory);
    let (next, ack) = (next(&token), ack(&token));
    format!(
        "  \"{COORDINATORS}-factory-{token}\" {{\n    users = [\n      {{\n        nkey: {key}\n        \
         permissions {{\n          publish: [\"{next}\", \"{ack}\"]\n          subscribe: [\"_INBOX.>\"]\n        \
         }}\n      }}\n    ]\n    imports = [\n      \
         {{ service: {{ account: {COORDINATORS}, subject: \"{next}\" }} }}\n      \
         {{ service: {{ account: {COORDINATORS}, subject: \"{ack}\" }} }}\n    ]\n  }}\n"
    )
}

/// To ask a consumer for the next offers.
fn next(consumer: &str) -> String {
    format!("$JS.API.CONSUMER.MSG.NEXT.{OFFERS}.{consumer}")
}

/// To acknowledge what a consumer delivered.
fn ack(consumer: &str) -> String {
    format!("$JS.ACK.{OFFERS}.{consumer}.>")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NatsKey;

    #[test]
    fn each_factory_reaches_its_own_consumer_and_no_other() {
        let key = |byte| NatsKey::from_random([byte; 32]).unwrap().public();
        let fleet = [("mac-1.local".parse().unwrap(), key(2)), ("ci".parse().unwrap(), key(3))];
        let text = server_accounts(&key(1), &fleet);
        let block = |name: &str| {
            let start = text.find(&format!("\"giga-factory-{name}\" {{")).unwrap();
            text[start..].split("\n  }\n").next().unwrap().to_owned()
        };
        let mac = block("mac-1=local");
        assert!(mac.contains(&key(2).to_string()) && !mac.contains(&key(3).to_string()), "{mac}");
        let subjects: Vec<&str> = mac.split('"').filter(|word| word.contains("GIGA_OFFERS")).collect();
        assert_eq!(subjects.len(), 4, "{mac}");
        assert!(subjects.iter().all(|subject| subject.contains(".GIGA_OFFERS.mac-1=local")), "{mac}");
        assert!(!block("ci").contains("mac-1"), "{text}");
    }
}
