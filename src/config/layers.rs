//! The sources of settings and their order: flags, then the environment, then the user's file, then a project's suggestions.
//!
//! Knows which source may say what; knows nothing of what a value means.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::setting::{ProjectMay, Setting};
use super::{ConfigError, Env, Place};
use crate::cli::Flags;

/// Largest settings file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The name of a project's own file.
const PROJECT_FILE: &str = ".s15.toml";

/// A setting's text and where it was said.
#[derive(Clone, Debug)]
pub(super) struct Said {
    pub(super) text: String,
    /// For errors: `--model`, `OPENAI_MODEL`, `model in /home/…/config.toml`.
    pub(super) origin: String,
}

/// What the sources say, the strongest word for each setting.
#[derive(Default)]
pub(super) struct Layers {
    said: BTreeMap<Setting, Said>,
    /// A project's bound on a setting, beside what the user said.
    lowered: BTreeMap<Setting, Said>,
    pub(super) warnings: Vec<String>,
}

impl Layers {
    pub(super) fn get(&self, setting: Setting) -> Option<&Said> {
        self.said.get(&setting)
    }

    pub(super) fn lowered(&self, setting: Setting) -> Option<&Said> {
        self.lowered.get(&setting)
    }

    /// The value of a setting, parsed; `None` if no source names it.
    pub(super) fn value<T>(
        &self,
        setting: Setting,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, ConfigError> {
        self.get(setting).map(|said| said.parse(parse)).transpose()
    }

    /// A source speaks only where no stronger one did.
    fn say(&mut self, setting: Setting, text: String, origin: String) {
        self.said.entry(setting).or_insert(Said { text, origin });
    }

    pub(super) fn add_flags(&mut self, flags: &Flags) {
        for (key, text) in flags.given() {
            let setting = Setting::from_key(key).expect("every flag is a setting: a test holds it");
            self.say(setting, text, setting.flag().unwrap_or_default());
        }
    }

    pub(super) fn add_environment(&mut self, env: Env<'_>) -> Result<(), ConfigError> {
        for setting in Setting::ALL {
            for name in setting.variables() {
                let Some(text) = env(&name).filter(|text| !text.trim().is_empty()) else {
                    continue;
                };
                if text.contains('\u{fffd}') {
                    return Err(ConfigError(format!("{name}: is not valid UTF-8")));
                }
                self.say(setting, text, name);
            }
        }
        if env("NO_COLOR").is_some_and(|text| !text.is_empty()) {
            self.say(Setting::Color, "never".to_owned(), "NO_COLOR".to_owned());
        }
        Ok(())
    }

    /// The user's own file: every key must be known.
    pub(super) fn add_user_file(&mut self, env: Env<'_>, place: &Place) -> Result<(), ConfigError> {
        let named = self.get(Setting::Config).cloned();
        let Some(path) = self.user_file(env, place) else { return Ok(()) };
        let Some(table) = read(&path)? else {
            let Some(said) = named else { return Ok(()) };
            return Err(ConfigError(format!("{}: there is no file {}", said.origin, path.display())));
        };
        for (key, value) in &table {
            let setting = Setting::from_key(key).filter(|setting| setting.in_user_file());
            let Some(setting) = setting else {
                return Err(unknown_key(&path, key));
            };
            let origin = format!("{key} in {}", path.display());
            if setting == Setting::ApiKey && readable_by_others(&path) {
                let advice = format!("{origin}: other users of this machine can read it; chmod 600 that file");
                self.warnings.push(advice);
            }
            let is_list = matches!(setting, Setting::EnvPass | Setting::SandboxWrite);
            let list = if is_list { list(value) } else { None };
            let text = list.or_else(|| plain(value)).ok_or_else(|| wrong_form(&origin))?;
            self.say(setting, text, origin);
        }
        Ok(())
    }

    /// Where the user's own file is, whether or not it exists.
    pub(super) fn user_file(&self, env: Env<'_>, place: &Place) -> Option<PathBuf> {
        match self.get(Setting::Config) {
            Some(said) => Some(place.cwd.join(said.text.trim())),
            None => user_file(env, place),
        }
    }

    /// A project's own file: it comes with the project and not from the user, so it only narrows.
    pub(super) fn add_project_file(&mut self, workspace: &Path) -> Result<(), ConfigError> {
        let path = workspace.join(PROJECT_FILE);
        let Some(table) = read(&path)? else {
            return Ok(());
        };
        for (key, value) in &table {
            let origin = format!("{key} in {}", path.display());
            let setting = Setting::from_key(key);
            match setting.map_or(ProjectMay::Not, Setting::project_may) {
                ProjectMay::Not => self.warnings.push(format!(
                    "{origin}: ignored; a project's file can only lower max_teammates and suggest model or teammate_model"
                )),
                may @ (ProjectMay::Lower | ProjectMay::Suggest) => {
                    let Some(setting) = setting else { continue };
                    let text = plain(value).ok_or_else(|| wrong_form(&origin))?;
                    if may == ProjectMay::Lower {
                        self.lowered.insert(setting, Said { text, origin });
                    } else {
                        self.say(setting, text, origin);
                    }
                }
            }
        }
        Ok(())
    }
}

impl Said {
    pub(super) fn parse<T>(&self, parse: impl Fn(&str) -> Result<T, String>) -> Result<T, ConfigError> {
        parse(&self.text).map_err(|why| ConfigError(format!("{}: {why}", self.origin)))
    }
}

fn user_file(env: Env<'_>, place: &Place) -> Option<PathBuf> {
    super::xdg(env, place, "XDG_CONFIG_HOME", ".config").map(|folder| folder.join("config.toml"))
}

/// Reads a settings file; `None` if there is none.
fn read(path: &Path) -> Result<Option<Table>, ConfigError> {
    let unreadable = |why: &dyn std::fmt::Display| ConfigError(format!("can't read {}: {why}", path.display()));
    let facts = match fs::metadata(path) {
        Ok(facts) => facts,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(&error)),
    };
    if !facts.is_file() {
        return Err(unreadable(&"it is not a file"));
    }
    if facts.len() > FILE_BYTES_MAX {
        return Err(unreadable(&format!("it is larger than {FILE_BYTES_MAX} bytes")));
    }
    let text = fs::read_to_string(path).map_err(|error| unreadable(&error))?;
    match text.parse::<Table>() {
        Ok(table) => Ok(Some(table)),
        // Only the message and the line: the parser's own display repeats the line, which may hold a key.
        Err(error) => {
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = text.as_bytes()[..start].iter().filter(|byte| **byte == b'\n').count() + 1;
            let message = first_line(error.message());
            Err(ConfigError(format!("{} line {line}: {message}", path.display())))
        }
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A TOML value as text, if it is a plain one.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(switch) => Some(switch.to_string()),
        Value::Float(_) | Value::Datetime(_) | Value::Array(_) | Value::Table(_) => None,
    }
}

/// A list of texts as one text.
fn list(value: &Value) -> Option<String> {
    let items: Option<Vec<&str>> = value.as_array()?.iter().map(Value::as_str).collect();
    Some(items?.join(","))
}

fn wrong_form(origin: &str) -> ConfigError {
    ConfigError(format!("{origin}: must be a text, a whole number, or true or false"))
}

fn unknown_key(path: &Path, key: &str) -> ConfigError {
    let known: Vec<_> = Setting::ALL.into_iter().filter(|setting| setting.in_user_file()).map(Setting::key).collect();
    ConfigError(format!("{}: unknown key `{key}`; known are {}", path.display(), known.join(", ")))
}

#[cfg(unix)]
fn readable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).is_ok_and(|facts| facts.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn readable_by_others(_path: &Path) -> bool {
    false
}
