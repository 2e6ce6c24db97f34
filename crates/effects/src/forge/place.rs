//! Where a repository is: host and path, from the spellings that git has for it.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Lower case, without a port: the same repository is reached by several.
    pub(crate) host: String,
    /// Without slashes at its ends and without `.git`.
    pub(crate) path: String,
}

impl Place {
    /// `https://host/path`, `ssh://user@host/path`, `git@host:path`; `None` for a plain name.
    pub(crate) fn of_url(url: &str) -> Option<Self> {
        if let Some((scheme, rest)) = url.split_once("://") {
            let (authority, path) = rest.split_once('/')?;
            return matches!(scheme, "https" | "http" | "ssh").then(|| Self::new(authority, path))?;
        }
        let (authority, path) = url.split_once(':')?;
        authority.contains('@').then(|| Self::new(authority, path))?
    }

    /// `host/path`.
    pub(crate) fn of_origin(origin: &str) -> Option<Self> {
        let (authority, path) = origin.split_once('/')?;
        Self::new(authority, path)
    }

    fn new(authority: &str, path: &str) -> Option<Self> {
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let host = match host.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => host,
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let path = path.trim_matches('/');
        let path = path.strip_suffix(".git").unwrap_or(path);
        let legal = !host.is_empty() && !path.is_empty();
        legal.then(|| Self { host: host.to_ascii_lowercase(), path: path.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_leads_to_the_same_place() {
        let app = Place { host: "github.com".to_owned(), path: "acme/app".to_owned() };
        for url in [
            "https://github.com/acme/app",
            "https://github.com/acme/app.git",
            "https://GitHub.com:443/acme/app/",
            "git@github.com:acme/app.git",
            "ssh://git@github.com:22/acme/app.git",
        ] {
            assert_eq!(Place::of_url(url), Some(app.clone()), "{url}");
        }
        assert_eq!(Place::of_origin("github.com/acme/app.git"), Some(app));
        for none in ["app", "acme/app", "file:///srv/app.git", "host:path", "https://host", "https:///x", ""]
        {
            assert_eq!(Place::of_url(none), None, "{none}");
        }
    }
}
