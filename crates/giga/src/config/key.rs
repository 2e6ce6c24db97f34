//! The one table of settings: name in giga.toml, flag, variable. Those of trackers and forges come from their kinds.

use giga_effects::{FORGES, ForgeKind, SettingNames, TRACKERS, TrackerKind};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Url,
    TokenFile,
    AllowPlainHttp,
    CaCert,
    Product,
    Output,
    Data,
    Listen,
    MetricsListen,
    MaxConnections,
    TlsCert,
    TlsKeyFile,
    TlsAcme,
    TlsAcmeDirectory,
    OidcIssuer,
    OidcClientId,
    OidcClientSecretFile,
    OidcScopes,
    OidcGroupsClaim,
    OidcGrants,
    OidcSession,
    PublicUrl,
    Store,
    Broker,
    NatsKeyFile,
    ServiceBusConnectionFile,
    Artifacts,
    SecretsKeyFile,
    Log,
    LogFormat,
    Factories,
    Factory,
    Base,
    Seats,
    Capabilities,
    CostPerHour,
    Repos,
    UpdateCheckouts,
    GitAllow,
    CheckpointEvery,
    EngineIdle,
    EngineWall,
    Sandbox,
    SandboxRead,
    SandboxWrite,
    SandboxMemory,
    SandboxProcesses,
    SandboxOpenFiles,
    SandboxFileSize,
    SandboxDisk,
    Network,
    NetworkHosts,
    Commands,
    EffectsAllow,
    /// A setting of one kind of forge, where it does not share it with the tracker of its name.
    Forge(&'static ForgeKind, ForgeKey),
    /// A setting of one kind of tracker.
    Tracker(&'static TrackerKind, TrackerKey),
    TrackerCloseOnShip,
}

/// What is set for each kind of tracker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrackerKey {
    Api,
    TokenFile,
    Repos,
}

impl TrackerKey {
    pub(crate) const ALL: [Self; 3] = [Self::Api, Self::TokenFile, Self::Repos];

    const fn names(self, kind: &'static TrackerKind) -> SettingNames {
        match self {
            Self::Api => kind.settings.api,
            Self::TokenFile => kind.settings.token_file,
            Self::Repos => kind.settings.repos,
        }
    }
}

/// What is set for each kind of forge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForgeKey {
    Api,
    TokenFile,
    Repos,
    SecretFile,
}

impl ForgeKey {
    pub(crate) const ALL: [Self; 4] = [Self::Api, Self::TokenFile, Self::Repos, Self::SecretFile];

    const fn names(self, kind: &'static ForgeKind) -> SettingNames {
        match self {
            Self::Api => kind.settings.api,
            Self::TokenFile => kind.settings.token_file,
            Self::Repos => kind.settings.repos,
            Self::SecretFile => kind.secret_file,
        }
    }
}

impl Key {
    const PLAIN: [Self; 55] = [
        Self::Url,
        Self::TokenFile,
        Self::AllowPlainHttp,
        Self::CaCert,
        Self::Product,
        Self::Output,
        Self::Data,
        Self::Listen,
        Self::MetricsListen,
        Self::MaxConnections,
        Self::TlsCert,
        Self::TlsKeyFile,
        Self::TlsAcme,
        Self::TlsAcmeDirectory,
        Self::OidcIssuer,
        Self::OidcClientId,
        Self::OidcClientSecretFile,
        Self::OidcScopes,
        Self::OidcGroupsClaim,
        Self::OidcGrants,
        Self::OidcSession,
        Self::PublicUrl,
        Self::Store,
        Self::Broker,
        Self::NatsKeyFile,
        Self::ServiceBusConnectionFile,
        Self::Artifacts,
        Self::SecretsKeyFile,
        Self::Log,
        Self::LogFormat,
        Self::Factories,
        Self::Factory,
        Self::Base,
        Self::Seats,
        Self::Capabilities,
        Self::CostPerHour,
        Self::Repos,
        Self::UpdateCheckouts,
        Self::GitAllow,
        Self::CheckpointEvery,
        Self::EngineIdle,
        Self::EngineWall,
        Self::Sandbox,
        Self::SandboxRead,
        Self::SandboxWrite,
        Self::SandboxMemory,
        Self::SandboxProcesses,
        Self::SandboxOpenFiles,
        Self::SandboxFileSize,
        Self::SandboxDisk,
        Self::Network,
        Self::NetworkHosts,
        Self::Commands,
        Self::EffectsAllow,
        Self::TrackerCloseOnShip,
    ];

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        Self::PLAIN.into_iter().chain(Self::of_trackers()).chain(Self::of_forges())
    }

    pub(crate) fn of_trackers() -> impl Iterator<Item = Self> {
        TRACKERS.iter().flat_map(|kind| TrackerKey::ALL.map(|key| Self::Tracker(kind, key)))
    }

    pub(crate) fn of_forges() -> impl Iterator<Item = Self> {
        let own = |kind: &&ForgeKind, key: &ForgeKey| *key == ForgeKey::SecretFile || !kind.shares_tracker;
        let keys = FORGES.iter().flat_map(|kind| ForgeKey::ALL.map(|key| (kind, key)));
        keys.filter(move |(kind, key)| own(kind, key)).map(|(kind, key)| Self::Forge(kind, key))
    }

    pub(crate) const DEFAULT_LISTEN: &str = "127.0.0.1:7717";
    /// The token itself comes only from here: a flag would show it to everyone who lists processes, and a file in
    /// a project would be committed.
    pub(crate) const TOKEN_VARIABLE: &str = "GIGA_TOKEN";
    /// A table of giga.toml, and not a setting of one value: what the engines of a factory are.
    pub(crate) const ENGINES: &str = "engines";

    pub(crate) const fn name(self) -> &'static str {
        self.row().0
    }

    pub(crate) const fn flag(self) -> &'static str {
        self.row().1
    }

    pub(crate) const fn variable(self) -> &'static str {
        self.row().2
    }

    const fn row(self) -> SettingNames {
        match self {
            Self::Url => ("url", "--url", "GIGA_URL"),
            Self::TokenFile => ("token-file", "--token-file", "GIGA_TOKEN_FILE"),
            Self::AllowPlainHttp => ("allow-plain-http", "--allow-plain-http", "GIGA_ALLOW_PLAIN_HTTP"),
            Self::CaCert => ("ca-cert", "--ca-cert", "GIGA_CA_CERT"),
            Self::Product => ("product", "--product", "GIGA_PRODUCT"),
            Self::Output => ("output", "--output", "GIGA_OUTPUT"),
            Self::Data => ("data", "--data", "GIGA_DATA"),
            Self::Listen => ("listen", "--listen", "GIGA_LISTEN"),
            Self::MetricsListen => ("metrics-listen", "--metrics-listen", "GIGA_METRICS_LISTEN"),
            Self::MaxConnections => ("max-connections", "--max-connections", "GIGA_MAX_CONNECTIONS"),
            Self::TlsCert => ("tls-cert", "--tls-cert", "GIGA_TLS_CERT"),
            Self::TlsKeyFile => ("tls-key", "--tls-key", "GIGA_TLS_KEY"),
            Self::TlsAcme => ("tls-acme", "--tls-acme", "GIGA_TLS_ACME"),
            Self::TlsAcmeDirectory => {
                ("tls-acme-directory", "--tls-acme-directory", "GIGA_TLS_ACME_DIRECTORY")
            }
            Self::OidcIssuer => ("oidc-issuer", "--oidc-issuer", "GIGA_OIDC_ISSUER"),
            Self::OidcClientId => ("oidc-client-id", "--oidc-client-id", "GIGA_OIDC_CLIENT_ID"),
            Self::OidcClientSecretFile => {
                ("oidc-client-secret-file", "--oidc-client-secret-file", "GIGA_OIDC_CLIENT_SECRET_FILE")
            }
            Self::OidcScopes => ("oidc-scopes", "--oidc-scopes", "GIGA_OIDC_SCOPES"),
            Self::OidcGroupsClaim => ("oidc-groups-claim", "--oidc-groups-claim", "GIGA_OIDC_GROUPS_CLAIM"),
            Self::OidcGrants => ("oidc-grants", "--oidc-grant", "GIGA_OIDC_GRANTS"),
            Self::OidcSession => ("oidc-session", "--oidc-session", "GIGA_OIDC_SESSION"),
            Self::PublicUrl => ("public-url", "--public-url", "GIGA_PUBLIC_URL"),
            Self::Store => ("store", "--store", "GIGA_STORE"),
            Self::Broker => ("broker", "--broker", "GIGA_BROKER"),
            Self::NatsKeyFile => ("nats-key", "--nats-key", "GIGA_NATS_KEY"),
            Self::ServiceBusConnectionFile => {
                ("servicebus-connection", "--servicebus-connection", "GIGA_SERVICEBUS_CONNECTION")
            }
            Self::Artifacts => ("artifacts", "--artifacts", "GIGA_ARTIFACTS"),
            Self::SecretsKeyFile => ("secrets-key", "--secrets-key", "GIGA_SECRETS_KEY"),
            Self::Log => ("log", "--log", "GIGA_LOG"),
            Self::LogFormat => ("log-format", "--log-format", "GIGA_LOG_FORMAT"),
            Self::Factories => ("factories", "--factories", "GIGA_FACTORIES"),
            Self::Factory => ("factory", "--id", "GIGA_FACTORY"),
            Self::Base => ("base", "--base", "GIGA_BASE"),
            Self::Seats => ("seats", "--seats", "GIGA_SEATS"),
            Self::Capabilities => ("capabilities", "--capability", "GIGA_CAPABILITIES"),
            Self::CostPerHour => ("cost-per-hour", "--cost-per-hour", "GIGA_COST_PER_HOUR"),
            Self::Repos => ("repos", "--repos", "GIGA_REPOS"),
            Self::UpdateCheckouts => ("update-checkouts", "--update-checkouts", "GIGA_UPDATE_CHECKOUTS"),
            Self::GitAllow => ("git-allow", "--git-allow", "GIGA_GIT_ALLOW"),
            Self::CheckpointEvery => ("checkpoint-every", "--checkpoint-every", "GIGA_CHECKPOINT_EVERY"),
            Self::EngineIdle => ("engine-idle", "--engine-idle", "GIGA_ENGINE_IDLE"),
            Self::EngineWall => ("engine-wall", "--engine-wall", "GIGA_ENGINE_WALL"),
            Self::Sandbox => ("sandbox", "--sandbox", "GIGA_SANDBOX"),
            Self::SandboxRead => ("sandbox-read", "--sandbox-read", "GIGA_SANDBOX_READ"),
            Self::SandboxWrite => ("sandbox-write", "--sandbox-write", "GIGA_SANDBOX_WRITE"),
            Self::SandboxMemory => ("sandbox-memory", "--sandbox-memory", "GIGA_SANDBOX_MEMORY"),
            Self::SandboxProcesses => ("sandbox-processes", "--sandbox-processes", "GIGA_SANDBOX_PROCESSES"),
            Self::SandboxOpenFiles => {
                ("sandbox-open-files", "--sandbox-open-files", "GIGA_SANDBOX_OPEN_FILES")
            }
            Self::SandboxFileSize => ("sandbox-file-size", "--sandbox-file-size", "GIGA_SANDBOX_FILE_SIZE"),
            Self::SandboxDisk => ("sandbox-disk", "--sandbox-disk", "GIGA_SANDBOX_DISK"),
            Self::Network => ("network", "--network", "GIGA_NETWORK"),
            Self::NetworkHosts => ("network-hosts", "--network-hosts", "GIGA_NETWORK_HOSTS"),
            Self::Commands => ("commands", "--no-commands", "GIGA_COMMANDS"),
            Self::EffectsAllow => ("effects-allow", "--effects-allow", "GIGA_EFFECTS_ALLOW"),
            Self::Forge(kind, key) => key.names(kind),
            Self::Tracker(kind, key) => key.names(kind),
            Self::TrackerCloseOnShip => {
                ("tracker-close-on-ship", "--tracker-close-on-ship", "GIGA_TRACKER_CLOSE_ON_SHIP")
            }
        }
    }

    /// What a stranger may choose: how things are shown, and which product is meant. Everything else says where
    /// credentials go, what is opened or what is run.
    pub(crate) const fn is_for_projects(self) -> bool {
        matches!(self, Self::Product | Self::Output | Self::LogFormat)
    }

    /// True or false; its flag takes no value.
    pub(crate) const fn is_switch(self) -> bool {
        matches!(
            self,
            Self::AllowPlainHttp | Self::UpdateCheckouts | Self::Commands | Self::TrackerCloseOnShip
        )
    }

    /// What the flag of a switch stands for.
    pub(crate) const fn flag_means(self) -> &'static str {
        if matches!(self, Self::Commands) { "false" } else { "true" }
    }

    /// A list of text in giga.toml, separated by commas elsewhere; grants, which have commas themselves, by semicolons.
    pub(crate) const fn is_list(self) -> bool {
        matches!(
            self,
            Self::GitAllow
                | Self::Capabilities
                | Self::EffectsAllow
                | Self::SandboxRead
                | Self::SandboxWrite
                | Self::NetworkHosts
                | Self::OidcGrants
        )
    }

    /// A number, or a word.
    pub(crate) const fn is_count(self) -> bool {
        matches!(self, Self::MaxConnections | Self::SandboxProcesses | Self::SandboxOpenFiles)
    }

    /// A relative path in giga.toml is relative to that file.
    pub(crate) const fn is_path(self) -> bool {
        matches!(self, Self::TokenFile | Self::CaCert | Self::TlsCert | Self::TlsKeyFile | Self::NatsKeyFile)
            || matches!(self, Self::Data | Self::Base | Self::Repos | Self::ServiceBusConnectionFile)
            || matches!(self, Self::OidcClientSecretFile | Self::SecretsKeyFile)
            || matches!(self, Self::Tracker(_, TrackerKey::TokenFile))
            || matches!(self, Self::Forge(_, ForgeKey::TokenFile | ForgeKey::SecretFile))
    }
}
