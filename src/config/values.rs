//! From a setting's text to its value; every error says what to write instead, and none repeats a key.
//!
//! Pure: knows neither the environment nor files.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::key::Key;

/// Longest name of a model, in bytes.
const MODEL_BYTES_MAX: usize = 256;

/// A whole number within limits.
pub(super) fn count(text: &str, min: u32, max: u32) -> Result<u32, String> {
    match text.trim().parse::<u32>() {
        Ok(number) if (min..=max).contains(&number) => Ok(number),
        Ok(_) | Err(_) => Err(format!("{:?} is not a whole number from {min} to {max}", shown(text))),
    }
}

pub(super) fn seconds(text: &str, min: u32, max: u32) -> Result<Duration, String> {
    match count(text, min, max) {
        Ok(seconds) => Ok(Duration::from_secs(seconds.into())),
        Err(why) => Err(format!("{why} (seconds)")),
    }
}

pub(super) fn millis(text: &str, min: u32, max: u32) -> Result<Duration, String> {
    match count(text, min, max) {
        Ok(millis) => Ok(Duration::from_millis(millis.into())),
        Err(why) => Err(format!("{why} (milliseconds)")),
    }
}

pub(super) fn switch(text: &str) -> Result<bool, String> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        _ => Err(format!("{:?} is neither true nor false", shown(text))),
    }
}

/// One of a few words.
pub(super) fn word<T: Copy>(text: &str, words: &[(&str, T)]) -> Result<T, String> {
    let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
        format!("{:?} is none of {}", shown(text), known.join(", "))
    })
}

/// Names of variables, each perhaps with a `*` at its end.
pub(super) fn names(text: &str) -> Result<Vec<String>, String> {
    let names = text.split([',', ' ', '\n']).map(str::trim).filter(|name| !name.is_empty());
    let checked = names.map(|name| {
        let plain = name.strip_suffix('*').unwrap_or(name);
        if plain.contains(|c: char| "=*".contains(c) || c.is_control()) {
            return Err(format!(
                "{:?} is neither a variable's name nor the beginning of one with * at its end",
                shown(name)
            ));
        }
        Ok(name.to_owned())
    });
    checked.collect()
}

/// Absolute paths with commas between them; `~/` is the user's home.
pub(super) fn paths(text: &str, home: Option<&Path>) -> Result<Vec<PathBuf>, String> {
    let paths = text.split(',').map(str::trim).filter(|path| !path.is_empty());
    let absolute = paths.map(|path| {
        let below_home = path.strip_prefix("~/").zip(home).map(|(rest, home)| home.join(rest));
        let path = below_home.unwrap_or_else(|| PathBuf::from(path));
        let usable = path.is_absolute() && path.parent().is_some();
        usable.then_some(path).ok_or_else(|| format!("{:?} is no path that begins with / or ~/", shown(text)))
    });
    absolute.collect()
}

pub(super) fn model(text: &str) -> Result<String, String> {
    let name = text.trim();
    if name.is_empty() || name.len() > MODEL_BYTES_MAX || name.chars().any(char::is_control) {
        return Err(format!("{:?} is not the name of a model", shown(text)));
    }
    Ok(name.to_owned())
}

/// A server's address, without a slash at its end and without the path of one call. An error doesn't repeat it: what is no
/// address may be a key in the wrong place.
pub(super) fn base_url(text: &str) -> Result<String, String> {
    const ADVICE: &str = "write it like https://api.openai.com/v1 or http://127.0.0.1:11434/v1";
    let text = text.trim();
    let url = reqwest::Url::parse(text).map_err(|_| format!("is not a URL; {ADVICE}"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(format!("is not an http or https URL; {ADVICE}"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("holds a user name or a password; put the key into OPENAI_API_KEY instead".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() || text.chars().any(char::is_whitespace) {
        return Err(format!("must be an address without `?`, `#` and spaces; {ADVICE}"));
    }
    let base = text.trim_end_matches('/');
    Ok(base.strip_suffix("/chat/completions").unwrap_or(base).trim_end_matches('/').to_owned())
}

pub(super) fn key(text: &str) -> Result<Option<Key>, String> {
    Key::parse(text).map_err(str::to_owned)
}

/// Enough of a text for an error, on one line.
fn shown(text: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 80;
    let mut start: String = text.chars().take(SHOWN_CHARS_MAX).collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() {
        start.push('…');
    }
    start
}
