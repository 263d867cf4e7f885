//! The closed list of all that can be set, with each one's names in every source.
//!
//! Knows neither values nor where they come from.

/// One thing that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Setting {
    Cd,
    Config,
    Color,
    BaseUrl,
    ApiKey,
    Model,
    TeammateModel,
    MaxTeammates,
    Yes,
    OutputFormat,
    StateDir,
    BashTimeout,
    JobTimeout,
    EnvPass,
    Sandbox,
    SandboxWrite,
    SandboxNetwork,
    RequestTimeout,
    TurnCallsMax,
    RetriesMax,
    RetryBaseMs,
    RetryWaitMax,
    ConnectTimeout,
    FirstByteTimeout,
    IdleTimeout,
}

/// What a project's own file may do with a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProjectMay {
    /// Nothing.
    Not,
    /// Make it smaller.
    Lower,
    /// Name it where the user named none.
    Suggest,
}

impl Setting {
    pub(crate) const ALL: [Self; 25] = [
        Self::Cd,
        Self::Config,
        Self::Color,
        Self::BaseUrl,
        Self::ApiKey,
        Self::Model,
        Self::TeammateModel,
        Self::MaxTeammates,
        Self::Yes,
        Self::OutputFormat,
        Self::StateDir,
        Self::BashTimeout,
        Self::JobTimeout,
        Self::EnvPass,
        Self::Sandbox,
        Self::SandboxWrite,
        Self::SandboxNetwork,
        Self::RequestTimeout,
        Self::TurnCallsMax,
        Self::RetriesMax,
        Self::RetryBaseMs,
        Self::RetryWaitMax,
        Self::ConnectTimeout,
        Self::FirstByteTimeout,
        Self::IdleTimeout,
    ];

    /// Its key in a file; the flag is the same with dashes.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Cd => "cd",
            Self::Config => "config",
            Self::Color => "color",
            Self::BaseUrl => "base_url",
            Self::ApiKey => "api_key",
            Self::Model => "model",
            Self::TeammateModel => "teammate_model",
            Self::MaxTeammates => "max_teammates",
            Self::Yes => "yes",
            Self::OutputFormat => "output_format",
            Self::StateDir => "state_dir",
            Self::BashTimeout => "bash_timeout",
            Self::JobTimeout => "job_timeout",
            Self::EnvPass => "env_pass",
            Self::Sandbox => "sandbox",
            Self::SandboxWrite => "sandbox_write",
            Self::SandboxNetwork => "sandbox_network",
            Self::RequestTimeout => "request_timeout",
            Self::TurnCallsMax => "turn_calls_max",
            Self::RetriesMax => "retries_max",
            Self::RetryBaseMs => "retry_base_ms",
            Self::RetryWaitMax => "retry_wait_max",
            Self::ConnectTimeout => "connect_timeout",
            Self::FirstByteTimeout => "first_byte_timeout",
            Self::IdleTimeout => "idle_timeout",
        }
    }

    pub(crate) fn from_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|setting| setting.key() == key)
    }

    /// Its flag; a key has none, since every user of a machine can read the arguments of a process.
    pub(crate) fn flag(self) -> Option<String> {
        (self != Self::ApiKey).then(|| format!("--{}", self.key().replace('_', "-")))
    }

    /// Its variables; the first that is set and not empty counts.
    pub(crate) fn variables(self) -> Vec<String> {
        let own = format!("S15_{}", self.key().to_ascii_uppercase());
        match self {
            Self::ApiKey => vec!["OPENAI_API_KEY".to_owned()],
            Self::BaseUrl => vec![own, "OPENAI_BASE_URL".to_owned()],
            Self::Model => vec![own, "OPENAI_MODEL".to_owned()],
            Self::Cd
            | Self::Config
            | Self::Color
            | Self::TeammateModel
            | Self::MaxTeammates
            | Self::Yes
            | Self::OutputFormat
            | Self::StateDir
            | Self::BashTimeout
            | Self::JobTimeout
            | Self::EnvPass
            | Self::Sandbox
            | Self::SandboxWrite
            | Self::SandboxNetwork
            | Self::RequestTimeout
            | Self::TurnCallsMax
            | Self::RetriesMax
            | Self::RetryBaseMs
            | Self::RetryWaitMax
            | Self::ConnectTimeout
            | Self::FirstByteTimeout
            | Self::IdleTimeout => vec![own],
        }
    }

    /// May the user's file set it? What belongs to one call of the program may not.
    pub(crate) fn in_user_file(self) -> bool {
        !matches!(self, Self::Cd | Self::Config | Self::OutputFormat)
    }

    pub(crate) fn project_may(self) -> ProjectMay {
        match self {
            Self::MaxTeammates => ProjectMay::Lower,
            Self::Model | Self::TeammateModel => ProjectMay::Suggest,
            Self::Cd
            | Self::Config
            | Self::Color
            | Self::ApiKey
            | Self::BaseUrl
            | Self::Yes
            | Self::OutputFormat
            | Self::StateDir
            | Self::BashTimeout
            | Self::JobTimeout
            | Self::EnvPass
            | Self::Sandbox
            | Self::SandboxWrite
            | Self::SandboxNetwork
            | Self::RequestTimeout
            | Self::TurnCallsMax
            | Self::RetriesMax
            | Self::RetryBaseMs
            | Self::RetryWaitMax
            | Self::ConnectTimeout
            | Self::FirstByteTimeout
            | Self::IdleTimeout => ProjectMay::Not,
        }
    }
}
