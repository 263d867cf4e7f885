//! The secrets that the program was started with: taken out of its environment, where every process of the same user can
//! read them (`/proc/PID/environ`), and kept for those parts of the program that ask for them by name.
//!
//! Knows which names mean secrets; knows nothing of settings or commands.
#![allow(unsafe_code, reason = "the environment has no safe way to be changed; each call says why it is sound")]

use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;

/// The variable that holds the model's key.
pub const MODEL_KEY: &str = "OPENAI_API_KEY";
/// A name with one of these words names a secret.
const WORDS: [&str; 2] = ["TOKEN", "TOKENS"];
/// So does one in which one of these stands anywhere.
const PARTS: [&str; 8] =
    ["SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "API_KEY", "ACCESS_KEY"];
/// A name that ends with one of these words does too; elsewhere in a name they may mean a keyboard.
const ENDINGS: [&str; 4] = ["KEY", "KEYS", "PAT", "AUTH"];
/// One with a word before this does: by itself it is the present folder.
const ENDING_OF_SEVERAL: &str = "_PWD";

/// A variable's name and value.
type Variable = (OsString, OsString);

static SEALED: OnceLock<Vec<Variable>> = OnceLock::new();

/// Does a variable of this name hold a secret?
#[must_use]
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    PARTS.iter().any(|part| name.contains(part))
        || (name.ends_with(ENDING_OF_SEVERAL) && name != "OLD_PWD")
        || words.clone().next_back().is_some_and(|last| ENDINGS.contains(&last))
        || words.any(|word| WORDS.contains(&word))
}

/// Takes the secrets out of the environment, and overwrites where they stood. Does nothing once there is a second thread,
/// or for a second time.
pub fn seal() {
    if SEALED.get().is_some() || !is_alone() {
        return;
    }
    let is_sealed = |(name, _): &Variable| is_secret(&name.to_string_lossy());
    let sealed: Vec<Variable> = std::env::vars_os().filter(is_sealed).collect();
    #[cfg(target_os = "linux")]
    overwrite(&sealed);
    for (name, _) in &sealed {
        // SAFETY: no other thread is there that could look at the environment.
        unsafe { std::env::remove_var(name) };
    }
    // Nobody else was there to set it.
    let _ = SEALED.set(sealed);
}

/// A variable of this name, sealed or not.
#[must_use]
pub fn var(name: &str) -> Option<OsString> {
    let sealed = SEALED.get().into_iter().flatten().find(|(sealed, _)| sealed == name);
    sealed.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
}

/// Those that were taken out.
pub(crate) fn sealed() -> impl Iterator<Item = (&'static OsStr, &'static OsStr)> {
    SEALED.get().into_iter().flatten().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
}

/// Is this the only thread? Where that can't be told, it isn't.
fn is_alone() -> bool {
    if cfg!(target_os = "linux") {
        return std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1);
    }
    false
}

/// Zeroes in the place of the values, there where the system put them: taking a variable out only forgets where it stood.
#[cfg(target_os = "linux")]
fn overwrite(sealed: &[Variable]) {
    use std::os::unix::ffi::OsStrExt;

    unsafe extern "C" {
        static environ: *const *mut libc::c_char;
    }
    // SAFETY: there is one thread, so that the list and its texts stay as they are while this runs. The list ends with a null,
    // each text with a zero; both belong to this process and can be written, and only bytes before that zero are.
    unsafe {
        let mut entry = environ;
        while !entry.is_null() && !(*entry).is_null() {
            let text = *entry;
            let length = libc::strlen(text);
            let bytes = std::slice::from_raw_parts_mut(text.cast::<u8>(), length);
            let end = bytes.iter().position(|byte| *byte == b'=').unwrap_or(length);
            if sealed.iter().any(|(name, _)| name.as_bytes() == &bytes[..end]) {
                bytes[end..].iter_mut().skip(1).for_each(|byte| std::ptr::write_volatile(byte, 0));
            }
            entry = entry.add(1);
        }
    }
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
            "AWS_ACCESS_KEY_ID",
            "DB_PASSWORD",
            "PGPASSWORD",
            "MYSQL_PWD",
            "Db.Password.Old",
            "MY_SECRET",
            "SECRET_BASE",
            "CLIENTSECRET",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "GIT_CREDENTIAL",
            "TOKEN",
            "KEY",
            "DEPLOY_KEYS",
            "AZURE_DEVOPS_EXT_PAT",
            "NPM_AUTH",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "PATH",
            "HOME",
            "LANG",
            "PWD",
            "OLDPWD",
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
}
