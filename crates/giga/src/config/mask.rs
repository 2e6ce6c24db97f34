//! What may be shown of values that hold secrets.

/// A URL without its password. Alone before the `@`, NATS takes it for a token.
pub(crate) fn mask_url(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let authority = match authority.rsplit_once('@') {
        Some((user, host)) => match user.split_once(':') {
            Some((user, _)) => format!("{user}:***@{host}"),
            None if matches!(scheme, "nats" | "tls") => format!("***@{host}"),
            None => format!("{user}@{host}"),
        },
        None => authority.to_owned(),
    };
    let tail = match tail.split_once('?') {
        Some((path, query)) => {
            let pairs = query.split('&').map(|pair| match pair.split_once('=') {
                Some((name, _)) if name.eq_ignore_ascii_case("password") => format!("{name}=***"),
                _ => pair.to_owned(),
            });
            format!("{path}?{}", pairs.collect::<Vec<_>>().join("&"))
        }
        None => tail.to_owned(),
    };
    format!("{scheme}://{authority}{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_do_not_show() {
        assert_eq!(mask_url("postgres://giga:pa:ss@db/giga"), "postgres://giga:***@db/giga");
        assert_eq!(mask_url("postgres://giga:p@ss@db/giga"), "postgres://giga:***@db/giga");
        assert_eq!(
            mask_url("postgres://db/giga?sslmode=x&password=s"),
            "postgres://db/giga?sslmode=x&password=***"
        );
        assert_eq!(mask_url("postgres://giga@db"), "postgres://giga@db");
        assert_eq!(mask_url("sqlite:/a/b.db"), "sqlite:/a/b.db");
        assert_eq!(mask_url("nats://s3cr3t@host:4222"), "nats://***@host:4222");
    }
}
