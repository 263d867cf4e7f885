//! How long to wait before a call is tried again.
//!
//! Knows nothing of requests: header values and the present time come in as arguments.

use std::time::Duration;

use crate::seam;

/// A server's own wish is followed up to this many times the longest wait of our own.
const WISH_FACTOR: u32 = 2;

/// Spread put on top of a server's wish, so that agents that were refused together don't come back together.
const WISH_SPREAD: f64 = 0.1;

/// The settings of the waits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    /// The upper end of the first wait.
    pub(crate) base: Duration,
    /// The upper end of every wait of our own.
    pub(crate) wait_max: Duration,
}

impl Backoff {
    /// The wait before retry number `attempt` (from 1): what the server wished, within bounds, or a random time up to a limit
    /// that doubles with each retry.
    pub(crate) fn wait(self, attempt: u32, wish: Option<Duration>) -> Duration {
        self.wait_with(attempt, wish, random())
    }

    /// As [`Self::wait`]; `random` is from 0 up to 1.
    fn wait_with(self, attempt: u32, wish: Option<Duration>, random: f64) -> Duration {
        match wish {
            Some(wish) => {
                let wish_max = self.wait_max.saturating_mul(WISH_FACTOR);
                wish.min(wish_max).mul_f64(1.0 + WISH_SPREAD * random).min(wish_max)
            }
            None => {
                let doubled = self.base.saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
                doubled.min(self.wait_max).mul_f64(random)
            }
        }
    }
}

/// From 0 up to 1.
fn random() -> f64 {
    f64::from(seam::random_bits()) / (f64::from(u32::MAX) + 1.0)
}

/// What the headers of a refusal wish, in the order of their exactness: `retry-after-ms`, `retry-after` (seconds or a date),
/// and the `x-ratelimit-reset-*` of a limit that is used up. `now`: seconds since 1970.
pub(crate) fn wish(header: &dyn Fn(&str) -> Option<String>, now: i64) -> Option<Duration> {
    if let Some(millis) = header("retry-after-ms").and_then(|text| text.trim().parse::<f64>().ok()) {
        return seconds(millis / 1000.0);
    }
    if let Some(text) = header("retry-after") {
        return retry_after(text.trim(), now);
    }
    ["requests", "tokens"]
        .iter()
        .filter(|what| header(&format!("x-ratelimit-remaining-{what}")).is_some_and(|left| left.trim() == "0"))
        .filter_map(|what| header(&format!("x-ratelimit-reset-{what}")))
        .filter_map(|text| reset(text.trim()))
        .max()
}

/// `Retry-After`: seconds, also with a fraction, or an HTTP date.
fn retry_after(text: &str, now: i64) -> Option<Duration> {
    if let Ok(number) = text.parse::<f64>() {
        return seconds(number);
    }
    let date = jiff::fmt::rfc2822::DateTimeParser::new().relaxed_weekday(true).parse_timestamp(text).ok()?;
    Some(Duration::from_secs(u64::try_from(date.as_second().saturating_sub(now)).unwrap_or(0)))
}

/// A span as in `6m0s`, `1.5s`, `20ms` or plain seconds.
fn reset(text: &str) -> Option<Duration> {
    if let Ok(number) = text.parse::<f64>() {
        return seconds(number);
    }
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let unit_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        total += number
            * match &rest[..unit_end] {
                "ms" => 0.001,
                "s" => 1.0,
                "m" => 60.0,
                "h" => 3600.0,
                _ => return None,
            };
        rest = &rest[unit_end..];
    }
    seconds(total)
}

fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number.max(0.0)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Backoff = Backoff { base: Duration::from_millis(500), wait_max: Duration::from_secs(30) };

    fn wished(headers: &[(&str, &str)]) -> Option<Duration> {
        let header = |name: &str| headers.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        // 1994-11-06 08:49:30
        wish(&header, 784_111_770)
    }

    #[test]
    fn waits_double_up_to_the_limit_and_are_spread_over_the_whole_range() {
        let limits: Vec<u64> =
            (1..=8).map(|n| SETTINGS.wait_with(n, None, 1.0).as_millis().try_into().unwrap()).collect();
        assert_eq!(limits, [500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        assert_eq!(SETTINGS.wait_with(3, None, 0.0), Duration::ZERO);
        assert!(SETTINGS.wait(99, None) <= SETTINGS.wait_max);
    }

    #[test]
    fn a_wish_is_followed_within_a_minute() {
        assert_eq!(SETTINGS.wait_with(1, Some(Duration::from_secs(7)), 0.0), Duration::from_secs(7));
        assert!(SETTINGS.wait(1, Some(Duration::from_secs(7))) >= Duration::from_secs(7));
        assert_eq!(SETTINGS.wait_with(1, Some(Duration::from_secs(3600)), 0.9), Duration::from_secs(60));
    }

    #[test]
    fn wishes_are_read_in_every_form() {
        let millis = |n| Some(Duration::from_millis(n));
        assert_eq!(wished(&[("retry-after", "5")]), millis(5000));
        assert_eq!(wished(&[("retry-after", " 0.5 ")]), millis(500));
        assert_eq!(wished(&[("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT")]), millis(7000));
        assert_eq!(wished(&[("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT")]), millis(0));
        assert_eq!(wished(&[("retry-after", "soon")]), None);
        assert_eq!(wished(&[("retry-after", "-3")]), millis(0));
        assert_eq!(wished(&[("retry-after-ms", "250"), ("retry-after", "9")]), millis(250));
        let used_up = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0.5s")];
        assert_eq!(wished(&used_up), millis(360_500));
        assert_eq!(wished(&[("x-ratelimit-remaining-tokens", "10"), ("x-ratelimit-reset-tokens", "6m")]), None);
        assert_eq!(wished(&[]), None);
    }
}
