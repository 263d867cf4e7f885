//! Bounds as a profile for macOS' `sandbox-exec`. Untested there: only the text is.
//!
//! Of two rules that fit, the later one counts.

use std::fmt::Write as _;
use std::path::Path;

use super::policy::{Bounds, Network};

/// The program that runs another one under a profile.
#[cfg(target_os = "macos")]
pub(crate) const PROGRAM: &str = "/usr/bin/sandbox-exec";

/// The profile's text.
pub(crate) fn profile(bounds: &Bounds) -> String {
    let mut text = "(version 1)\n(allow default)\n(deny file-write*)\n".to_owned();
    // Writing to a String can't fail.
    let mut rule = |verdict: &str, action: &str, what: &str| {
        let _ = writeln!(text, "({verdict} {action} {what})");
    };
    let below = |path: &Path| format!("(subpath {})", quoted(path));
    for place in &bounds.writable {
        rule("allow", "file-write*", &below(place));
    }
    for device in ["/dev/null", "/dev/zero", "/dev/tty", "/dev/ptmx"] {
        rule("allow", "file-write*", &format!("(literal {})", quoted(Path::new(device))));
    }
    rule("allow", "file-write*", "(regex #\"^/dev/ttys[0-9]+$\")");
    for place in &bounds.read_only {
        rule("deny", "file-write*", &below(place));
    }
    for place in &bounds.hidden {
        rule("deny", "file-read*", &below(place));
        rule("deny", "file-write*", &below(place));
    }
    for place in &bounds.shown {
        rule("allow", "file-read*", &below(place));
    }
    let reopened = bounds.writable.iter().filter(|place| bounds.hidden.iter().any(|hidden| place.starts_with(hidden)));
    for place in reopened {
        rule("allow", "file-read*", &below(place));
        rule("allow", "file-write*", &below(place));
    }
    rule("deny", "signal", "(target others)");
    rule("allow", "signal", "(target same-sandbox)");
    if bounds.network == Network::Denied {
        rule("deny", "network*", "");
        rule("allow", "network*", "(local ip \"localhost:*\")");
    }
    text
}

fn quoted(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{text}\"")
}

#[cfg(test)]
mod tests {
    use super::super::policy::Means;
    use super::*;

    #[test]
    fn what_is_closed_stands_after_what_is_opened() {
        let bounds = Bounds {
            means: Means { seatbelt: true, ..Means::default() },
            writable: vec!["/w\"s".into(), "/home/state/cache".into()],
            read_only: vec!["/w\"s/.git/hooks".into()],
            hidden: vec!["/home/state".into()],
            shown: vec!["/home/state/out".into()],
            network: Network::Denied,
            temp: Vec::new(),
        };
        let text = profile(&bounds);
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} is not in {text}"));
        let order = [
            "(deny file-write*)\n",
            "(allow file-write* (subpath \"/w\\\"s\"))",
            "(deny file-write* (subpath \"/w\\\"s/.git/hooks\"))",
            "(deny file-read* (subpath \"/home/state\"))",
            "(allow file-read* (subpath \"/home/state/out\"))",
            "(allow file-read* (subpath \"/home/state/cache\"))",
            "(deny network* )",
        ];
        assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{text}");
        assert!(!profile(&Bounds { network: Network::Allowed, ..bounds }).contains("network"));
    }
}
