//! Every limit of a run: its default, its bounds, and how it is read.
//!
//! Knows nothing of who holds to it.

use std::time::Duration;

use super::layers::Layers;
use super::setting::Setting;
use super::{ConfigError, values};

/// Teammates alive at once, unless set.
const TEAMMATES_MAX_DEFAULT: u32 = 8;
/// What it can be set to.
const TEAMMATES_MAX_MAX: u32 = 256;
/// Model calls in one piece of work, unless set.
const TURN_CALLS_MAX_DEFAULT: u32 = 200;
/// What it can be set to.
const TURN_CALLS_MAX_MAX: u32 = 100_000;
/// Retries of one model call, unless set.
const RETRIES_MAX_DEFAULT: u32 = 5;
/// What it can be set to.
const RETRIES_MAX_MAX: u32 = 100;
/// Wait before the first retry, unless set.
const RETRY_BASE_DEFAULT: Duration = Duration::from_millis(500);
/// What it can be set to, in milliseconds.
const RETRY_BASE_MILLIS_MAX: u32 = 600_000;
/// Longest wait before a retry, unless set.
const RETRY_WAIT_MAX_DEFAULT: Duration = Duration::from_secs(60);
/// Longest run of a command, unless set.
const BASH_TIMEOUT_DEFAULT: Duration = Duration::from_secs(120);
/// Longest run of a command in the background, unless set.
const JOB_TIMEOUT_DEFAULT: Duration = Duration::from_secs(3_600);
/// How long a plan may wait for its review, unless set.
const REQUEST_TIMEOUT_DEFAULT: Duration = Duration::from_secs(30 * 60);
/// Longest time to reach the server, unless set.
const CONNECT_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
/// Longest time to an answer's first byte, unless set. Local servers read a long prompt for minutes.
const FIRST_BYTE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(300);
/// Longest silence within an answer, unless set.
const IDLE_TIMEOUT_DEFAULT: Duration = Duration::from_secs(120);
/// What every time can be set to, in seconds.
const TIMEOUT_SECONDS_MAX: u32 = 86_400;

/// The limits of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Teammates alive at once.
    pub teammates_max: usize,
    /// Model calls in one piece of work.
    pub turn_calls_max: u32,
    /// Longest run of a command.
    pub bash_timeout: Duration,
    /// Longest run of a command in the background.
    pub job_timeout: Duration,
    /// How long a plan may wait for the lead's review.
    pub request_timeout: Duration,
    /// Retries of one model call.
    pub retries_max: u32,
    /// Wait before the first retry; it doubles.
    pub retry_base: Duration,
    /// Longest wait before a retry, whatever the server asks for.
    pub retry_wait_max: Duration,
    /// Longest time to reach the server.
    pub connect_timeout: Duration,
    /// Longest time to an answer's first byte.
    pub first_byte_timeout: Duration,
    /// Longest silence within an answer.
    pub idle_timeout: Duration,
}

impl Limits {
    pub(super) fn read(layers: &mut Layers) -> Result<Self, ConfigError> {
        let count = |setting, default, min, max| {
            layers.value(setting, |text| values::count(text, min, max)).map(|value| value.unwrap_or(default))
        };
        let time = |setting, default| {
            let parse = |text: &str| values::seconds(text, 1, TIMEOUT_SECONDS_MAX);
            layers.value(setting, parse).map(|value| value.unwrap_or(default))
        };
        let retry_base = layers
            .value(Setting::RetryBaseMs, |text| values::millis(text, 0, RETRY_BASE_MILLIS_MAX))?
            .unwrap_or(RETRY_BASE_DEFAULT);
        let mut limits = Self {
            teammates_max: count(Setting::MaxTeammates, TEAMMATES_MAX_DEFAULT, 1, TEAMMATES_MAX_MAX)? as usize,
            turn_calls_max: count(Setting::TurnCallsMax, TURN_CALLS_MAX_DEFAULT, 1, TURN_CALLS_MAX_MAX)?,
            retries_max: count(Setting::RetriesMax, RETRIES_MAX_DEFAULT, 0, RETRIES_MAX_MAX)?,
            retry_base,
            retry_wait_max: time(Setting::RetryWaitMax, RETRY_WAIT_MAX_DEFAULT)?,
            bash_timeout: time(Setting::BashTimeout, BASH_TIMEOUT_DEFAULT)?,
            job_timeout: time(Setting::JobTimeout, JOB_TIMEOUT_DEFAULT)?,
            request_timeout: time(Setting::RequestTimeout, REQUEST_TIMEOUT_DEFAULT)?,
            connect_timeout: time(Setting::ConnectTimeout, CONNECT_TIMEOUT_DEFAULT)?,
            first_byte_timeout: time(Setting::FirstByteTimeout, FIRST_BYTE_TIMEOUT_DEFAULT)?,
            idle_timeout: time(Setting::IdleTimeout, IDLE_TIMEOUT_DEFAULT)?,
        };
        if let Some(said) = layers.lowered(Setting::MaxTeammates) {
            let lower = said.parse(|text| values::count(text, 1, TEAMMATES_MAX_MAX))? as usize;
            if lower > limits.teammates_max {
                let holds = limits.teammates_max;
                let warning = format!("{}: ignored; a project's file can't raise it above your {holds}", said.origin);
                layers.warnings.push(warning);
            }
            limits.teammates_max = limits.teammates_max.min(lower);
        }
        Ok(limits)
    }
}
