//! What looks like a key: known by the beginning that its issuer gives it, and by its length.
//!
//! Knows nothing of where it stands. All shapes are ASCII, and none holds a quote or half an escape, so that JSON in which one is
//! replaced stays JSON.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::mask::MASK;

/// Each begins with a plain text, so that a text without any of these is gone through as fast as it can be read. Where a shape
/// has words before the key, those are captured and stay.
const SHAPES: [&str; 13] = [
    // OpenAI, Anthropic, OpenRouter and those who do as they do; Stripe.
    r"sk-[A-Za-z0-9_-]{20,}",
    r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}",
    // GitHub, GitLab.
    r"gh[pousr]_[A-Za-z0-9]{30,}",
    r"github_pat_[A-Za-z0-9_]{22,}",
    r"glpat-[A-Za-z0-9_-]{20,}",
    // AWS, Google.
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",
    r"AIza[A-Za-z0-9_-]{35}",
    // Slack, Hugging Face, npm.
    r"xox[abeoprs]-[A-Za-z0-9-]{10,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"npm_[A-Za-z0-9]{36}",
    // A signed token, and what a header carries.
    r"eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}",
    r"(?<kept>(?:Bearer|bearer|BEARER) )[A-Za-z0-9._~+/-]{16,}=*",
    // A private key: to its end, or as far as it goes on like one; line ends may stand there as in a program's text.
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:(?:\\[nrt]|[^\\\x22-]|-[^\\\x22-])*-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|(?:(?:\\[nrt]|[\r\n])*[A-Za-z0-9+/=]+)*)",
];

static SHAPE: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = format!(r"(?-u:\b)(?:{})", SHAPES[..12].join("|"));
    // A private key's first dash has no word before it.
    Regex::new(&format!("(?:{pattern}|{})", SHAPES[12])).expect("a test goes through every shape")
});

/// The text with a mask in the place of everything that looks like a key.
pub(super) fn masked(text: &str) -> Cow<'_, str> {
    SHAPE.replace_all(text, |found: &Captures<'_>| {
        let whole = &found[0];
        let kept = found.name("kept").map_or("", |kept| kept.as_str());
        // Words with dashes between them have the same letters; keys have digits.
        if whole.starts_with('-') || whole[kept.len()..].contains(|c: char| c.is_ascii_digit()) {
            format!("{kept}{MASK}")
        } else {
            whole.to_owned()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i12_what_looks_like_a_key_is_known() {
        let pem =
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\nMIIEow+/x==\n-----END RSA PRIVATE KEY-----";
        let rows = [
            "sk-proj-abcdefghijklm1234567_-x".to_owned(),
            "sk-ant-api03-abcdefghijklm1234567".to_owned(),
            "sk_live_abcdefgh12345678".to_owned(),
            format!("ghp_{}", "a1".repeat(18)),
            format!("github_pat_{}", "a1_".repeat(12)),
            format!("glpat-{}", "a1".repeat(10)),
            "AKIAIOSFODNN7EXAMPLE".to_owned(),
            format!("AIza{}", "a1-_x".repeat(7)),
            "xoxb-123456789012-abcdefgh".to_owned(),
            format!("hf_{}", "a1".repeat(17)),
            format!("npm_{}", "a1".repeat(18)),
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3".to_owned(),
            pem.to_owned(),
            pem.replace('\n', "\\n"),
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\nAAAA".to_owned(),
        ];
        for key in rows {
            for (before, after) in [("", ""), ("X=", "\n"), ("\"", "\","), ("：", "。"), ("key: ", ". More")] {
                let expected = format!("{before}{MASK}{after}");
                assert_eq!(masked(&format!("{before}{key}{after}")), expected, "{key}");
            }
        }
        assert_eq!(masked("Authorization: Bearer abcdef0123456789=="), format!("Authorization: Bearer {MASK}"));
    }

    #[test]
    fn what_only_begins_like_a_key_stays() {
        for text in [
            "sk-test-0000",
            "risk-assessment-2024-of-the-whole-project-9",
            "class=\"sk-chasing-dots-animation-container\"",
            "bearer of very-long-bad-news-indeed",
            "task-0199d1c2-7b3e-7000-8000-00000000000f",
            "ghp_short1",
            "AKIA",
            "eyJ.eyJ.x",
            "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
            "汉字 und Ümläute",
            "",
        ] {
            assert!(matches!(masked(text), Cow::Borrowed(same) if same == text) || masked(text) == text, "{text}");
        }
    }

    #[test]
    fn i5_arguments_in_which_a_key_is_masked_are_json_all_the_same() {
        let pem = "-----BEGIN PRIVATE KEY-----\n";
        for (first, second) in
            [(pem, "-----END PRIVATE KEY-----"), ("sk-aaaaaaaaaaaaaaaaaaaaaa1", "\\"), (pem, "\n\"x\\")]
        {
            let arguments = serde_json::json!({"content": first, "other": second}).to_string();
            let value: serde_json::Value = serde_json::from_str(&masked(&arguments)).unwrap();
            assert_eq!(value["other"], second);
            assert!(value["content"].as_str().unwrap().starts_with(MASK));
            let twice = serde_json::json!({ "arguments": arguments }).to_string();
            assert!(serde_json::from_str::<serde_json::Value>(&masked(&twice)).is_ok());
        }
    }
}
