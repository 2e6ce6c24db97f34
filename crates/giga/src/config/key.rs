//! The one table of settings: name in giga.toml, flag, variable, meaning.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Url,
    TokenFile,
    Product,
    Output,
    Data,
    Listen,
    Store,
    Log,
    LogFormat,
}

impl Key {
    pub(crate) const ALL: [Self; 9] = [
        Self::Url,
        Self::TokenFile,
        Self::Product,
        Self::Output,
        Self::Data,
        Self::Listen,
        Self::Store,
        Self::Log,
        Self::LogFormat,
    ];

    pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:7717";
    /// The token itself comes only from here: a flag would show it to everyone who lists processes, and a file in
    /// a project would be committed.
    pub(crate) const TOKEN_VARIABLE: &str = "GIGA_TOKEN";

    pub(crate) const fn name(self) -> &'static str {
        self.row().0
    }

    pub(crate) const fn flag(self) -> &'static str {
        self.row().1
    }

    pub(crate) const fn variable(self) -> &'static str {
        self.row().2
    }

    const fn row(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Url => ("url", "--url", "GIGA_URL"),
            Self::TokenFile => ("token-file", "--token-file", "GIGA_TOKEN_FILE"),
            Self::Product => ("product", "--product", "GIGA_PRODUCT"),
            Self::Output => ("output", "--output", "GIGA_OUTPUT"),
            Self::Data => ("data", "--data", "GIGA_DATA"),
            Self::Listen => ("listen", "--listen", "GIGA_LISTEN"),
            Self::Store => ("store", "--store", "GIGA_STORE"),
            Self::Log => ("log", "--log", "GIGA_LOG"),
            Self::LogFormat => ("log-format", "--log-format", "GIGA_LOG_FORMAT"),
        }
    }

    /// A relative path in giga.toml is relative to that file.
    pub(crate) const fn is_path(self) -> bool {
        matches!(self, Self::TokenFile | Self::Data)
    }
}
