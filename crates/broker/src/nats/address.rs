//! From a URL to where NATS is and who we are there.
//!
//! The client library would write addresses to its log, so the credentials are taken out of them first.

use async_nats::{ConnectOptions, ServerAddr};
use giga_ports::BrokerError;
use percent_encoding::percent_decode_str;

use super::NatsKey;

const FORM: &str = "the NATS URL is malformed; it looks like `nats://HOST:PORT`, `nats://USER:PASSWORD@HOST:PORT`, \
                    `nats://TOKEN@HOST:PORT`, or the same with `tls://`; servers of one cluster are separated by commas";

/// Servers of one cluster are separated by commas; the first that has credentials speaks for all.
pub(super) fn parse(
    url: &str,
    key: Option<&NatsKey>,
) -> Result<(Vec<ServerAddr>, ConnectOptions), BrokerError> {
    let mut credentials = None;
    let mut servers = Vec::new();
    for part in url.split(',') {
        // What the parser says could repeat a piece of the URL.
        let malformed = || BrokerError::because(FORM);
        let address: ServerAddr = part.trim().parse().map_err(|_| malformed())?;
        if address.host().is_empty() || address.is_websocket() {
            return Err(malformed());
        }
        if let Some(user) = address.username() {
            credentials.get_or_insert((decoded(user), address.password().map(decoded)));
        }
        let mut bare = address.into_inner();
        bare.set_username("").and_then(|()| bare.set_password(None)).map_err(|()| malformed())?;
        servers.push(ServerAddr::from_url(bare).map_err(|_| malformed())?);
    }
    let options = match (key, credentials) {
        (Some(_), Some(_)) => {
            return Err(BrokerError::because(
                "the NATS URL has credentials, and there is a key as well: remove one of them",
            ));
        }
        (Some(key), None) => ConnectOptions::with_nkey(key.seed().to_owned()),
        (None, None) => ConnectOptions::new(),
        (None, Some((user, Some(password)))) => ConnectOptions::with_user_and_password(user, password),
        (None, Some((token, None))) => ConnectOptions::with_token(token),
    };
    Ok((servers, options))
}

/// `%40` is an `@`. What is no such escape stays as it is.
fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_not_part_of_the_address() {
        let (servers, _) = parse("nats://ana:hunter2@one:4333,tls://two", None).unwrap();
        let text = format!("{servers:?}");
        assert!(!text.contains("ana") && !text.contains("hunter2"), "{text}");
        let hosts: Vec<_> =
            servers.iter().map(|server| (server.host(), server.port(), server.tls_required())).collect();
        assert_eq!(hosts, [("one", 4333, false), ("two", 4222, true)]);
    }

    #[test]
    fn a_malformed_url_is_refused_without_repeating_it() {
        for url in
            ["nats://ana:hunter2@host:port", "nats://", "nats://ana:hunter2@a,http://b", "ws://hunter2@a"]
        {
            let Err(error) = parse(url, None) else { panic!("{url} was taken") };
            assert!(!error.to_string().contains("hunter2"), "{error}");
            assert!(error.to_string().contains("nats://USER:PASSWORD@HOST:PORT"), "{error}");
        }
    }

    #[test]
    fn a_key_and_credentials_are_one_too_many() {
        let key = NatsKey::from_random([1; 32]).unwrap();
        assert!(parse("nats://host", Some(&key)).is_ok());
        let Err(error) = parse("nats://ana:hunter2@host", Some(&key)) else { panic!("both were taken") };
        assert!(error.to_string().contains("remove one of them"), "{error}");
    }

    #[test]
    fn escapes_are_undone() {
        assert_eq!(decoded("p%40ss%2Fword"), "p@ss/word");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%zz%4"), "%zz%4");
    }
}
