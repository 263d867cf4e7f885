//! What a command finds in its environment: the user's own, without secrets, and nothing that waits for a key press.
//!
//! The judgement is pure; only [`Environment::prepare`] and [`Environment::told`] look at the process' own variables.

use std::ffi::{OsStr, OsString};

use tokio::process::Command;

use crate::secrets;

/// Variables that keep programs from paging, drawing or asking.
const QUIET: [(&str, &str); 4] =
    [("PAGER", "cat"), ("GIT_PAGER", "cat"), ("TERM", "dumb"), ("GIT_TERMINAL_PROMPT", "0")];
/// Beginning of the program's own settings.
const OWN: &str = "S15_";
/// Shorter values of the model's key are not looked for in other variables.
const KEY_BYTES_MIN: usize = 8;

/// Which of the user's variables commands get.
#[derive(Clone, Default)]
pub struct Environment {
    /// Names of secrets that are passed all the same; a `*` at the end stands for any rest.
    pass: Vec<String>,
    /// The model's, and the one that the program was started with.
    keys: Vec<OsString>,
}

/// The names of the user's variables, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Those that look like secrets and that commands get all the same, since the user said so.
    pub passed: Vec<String>,
    /// Those that they don't get.
    pub held_back: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Plain,
    Passed,
    HeldBack,
}

impl Environment {
    /// `pass`: as the user's settings have it; `key`: the model's.
    #[must_use]
    pub fn new(pass: &[String], key: Option<&str>) -> Self {
        let keys = key.map(OsString::from).into_iter().chain(secrets::var(secrets::MODEL_KEY));
        Self { pass: pass.to_vec(), keys: keys.filter(|key| key.len() >= KEY_BYTES_MIN).collect() }
    }

    /// What commands get of the variables that look like secrets, and what not.
    #[must_use]
    pub fn told(&self) -> Told {
        let mut told = Told::default();
        for (name, value) in variables() {
            let name_text = name.to_string_lossy().into_owned();
            match self.verdict(&name, &value) {
                Verdict::Plain => {}
                Verdict::Passed => told.passed.push(name_text),
                Verdict::HeldBack => told.held_back.push(name_text),
            }
        }
        told.passed.sort();
        told.held_back.sort();
        told
    }

    /// Takes the secrets out of a command's environment. What stays is inherited as it is.
    pub(super) fn prepare(&self, process: &mut Command) {
        // Each by its name: an environment built anew, or another PATH, would take the slow way of starting a process.
        for (name, value) in std::env::vars_os() {
            if self.verdict(&name, &value) == Verdict::HeldBack {
                process.env_remove(name);
            }
        }
        for (name, value) in secrets::sealed() {
            if self.verdict(name, value) == Verdict::Passed {
                process.env(name, value);
            }
        }
        process.envs(QUIET);
    }

    /// The program's own settings and the model's key, under whatever name, are never passed.
    fn verdict(&self, name: &OsStr, value: &OsStr) -> Verdict {
        let text = name.to_string_lossy();
        if text.to_ascii_uppercase().starts_with(OWN)
            || text == secrets::MODEL_KEY
            || self.keys.iter().any(|key| contains(value, key))
        {
            return Verdict::HeldBack;
        }
        match (secrets::is_secret(&text), self.is_passed(&text)) {
            (false, _) => Verdict::Plain,
            (true, true) => Verdict::Passed,
            (true, false) => Verdict::HeldBack,
        }
    }

    fn is_passed(&self, name: &str) -> bool {
        self.pass.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        })
    }
}

/// All that the program was started with.
fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    let sealed = secrets::sealed().map(|(name, value)| (name.to_owned(), value.to_owned()));
    std::env::vars_os().chain(sealed)
}

fn contains(text: &OsStr, part: &OsStr) -> bool {
    let part = part.as_encoded_bytes();
    text.as_encoded_bytes().windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i12_what_is_let_through_is_never_the_model_s_key() {
        let passing = |pass: &[&str]| {
            let pass: Vec<String> = pass.iter().map(|name| (*name).to_owned()).collect();
            Environment::new(&pass, Some("sk-leak-7777"))
        };
        let (none, some, all) = (passing(&[]), passing(&["GH_TOKEN", "AWS_*"]), passing(&["*"]));
        for (name, value, by_default, with_some, with_all) in [
            ("PATH", "/bin", Verdict::Plain, Verdict::Plain, Verdict::Plain),
            ("GH_TOKEN", "t", Verdict::HeldBack, Verdict::Passed, Verdict::Passed),
            ("GH_TOKEN_2", "t", Verdict::HeldBack, Verdict::HeldBack, Verdict::Passed),
            ("AWS_SECRET_ACCESS_KEY", "t", Verdict::HeldBack, Verdict::Passed, Verdict::Passed),
            ("OPENAI_API_KEY", "", Verdict::HeldBack, Verdict::HeldBack, Verdict::HeldBack),
            ("AWS_PROFILE", "sk-leak-7777", Verdict::HeldBack, Verdict::HeldBack, Verdict::HeldBack),
            ("HEADERS", "Authorization: Bearer sk-leak-7777", Verdict::HeldBack, Verdict::HeldBack, Verdict::HeldBack),
            ("S15_YES", "1", Verdict::HeldBack, Verdict::HeldBack, Verdict::HeldBack),
            ("s15_base_url", "x", Verdict::HeldBack, Verdict::HeldBack, Verdict::HeldBack),
        ] {
            let verdict = |environment: &Environment| environment.verdict(name.as_ref(), value.as_ref());
            assert!(verdict(&none) == by_default, "{name}");
            assert!(verdict(&some) == with_some && verdict(&all) == with_all, "{name}");
        }
    }
}
