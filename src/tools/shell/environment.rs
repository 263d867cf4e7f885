//! What a command finds in its environment: the user's own, without secrets, and nothing that waits for a key press.
//!
//! The judgement is pure; only [`prepare`] looks at the process' own variables.

use std::ffi::{OsStr, OsString};

use tokio::process::Command;

/// Variables that keep programs from paging, drawing or asking.
const QUIET: [(&str, &str); 4] =
    [("PAGER", "cat"), ("GIT_PAGER", "cat"), ("TERM", "dumb"), ("GIT_TERMINAL_PROMPT", "0")];
/// The variable that holds the model's key.
const MODEL_KEY: &str = "OPENAI_API_KEY";
/// A name with one of these words names a secret.
const SECRET_WORDS: [&str; 10] =
    ["TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "PASSPHRASE", "CREDENTIALS", "APIKEY"];
/// A name that ends with one of these words does too; elsewhere in a name they may mean a keyboard.
const SECRET_ENDINGS: [&str; 2] = ["KEY", "KEYS"];
/// Shorter values of the model's key are not looked for in other variables.
const KEY_BYTES_MIN: usize = 8;

/// Takes the secrets out of a command's environment. What stays is inherited as it is.
pub(super) fn prepare(process: &mut Command) {
    // Each by its name: an environment built anew, or another PATH, would take the slow way of starting a process.
    for name in secrets(std::env::vars_os().collect()) {
        process.env_remove(name);
    }
    process.envs(QUIET);
}

/// The variables that a command has no business with: by their names, the program's own settings, and copies of the
/// model's key under whatever name.
fn secrets(variables: Vec<(OsString, OsString)>) -> Vec<OsString> {
    let key = variables.iter().find(|(name, _)| name == MODEL_KEY).map(|(_, value)| value.clone());
    let key = key.filter(|key| key.len() >= KEY_BYTES_MIN);
    let holds_key = |value: &OsStr| key.as_ref().is_some_and(|key| contains(value, key));
    let found = variables.into_iter().filter(|(name, value)| is_secret(&name.to_string_lossy()) || holds_key(value));
    found.map(|(name, _)| name).collect()
}

fn contains(text: &OsStr, part: &OsStr) -> bool {
    let part = part.as_encoded_bytes();
    text.as_encoded_bytes().windows(part.len()).any(|window| window == part)
}

/// Does a variable of this name hold a secret, or a setting of this program?
fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    name.starts_with("S15_")
        || name.contains("API_KEY")
        || words.clone().next_back().is_some_and(|last| SECRET_ENDINGS.contains(&last))
        || words.any(|word| SECRET_WORDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i12_secrets_are_known_by_name() {
        for name in [
            "OPENAI_API_KEY",
            "OPENAI_API_KEY_2",
            "GH_TOKEN",
            "aws_secret_access_key",
            "DB_PASSWORD",
            "Db.Password.Old",
            "MY_SECRET",
            "SECRET_BASE",
            "TOKEN",
            "KEY",
            "DEPLOY_KEYS",
            "S15_YES",
            "s15_base_url",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "LANG",
            "KEYBOARD",
            "XKB_KEY_MAP",
            "CARGO_HOME",
            "SSH_AUTH_SOCK",
            "TOKENIZERS_PARALLELISM",
            "",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn i12_copies_of_the_key_are_known_by_value() {
        let variables = [
            ("OPENAI_API_KEY", "sk-leak-7777"),
            ("MY_MODEL", "sk-leak-7777"),
            ("HEADERS", "Authorization: Bearer sk-leak-7777"),
            ("PATH", "/bin"),
        ];
        let variables = variables.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        assert_eq!(secrets(variables.to_vec()), ["OPENAI_API_KEY", "MY_MODEL", "HEADERS"]);
        let empty = [("OPENAI_API_KEY", ""), ("PATH", "/bin")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(secrets(empty.to_vec()), ["OPENAI_API_KEY"]);
    }
}
