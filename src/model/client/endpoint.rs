//! Where requests go: the URL made of the base URL as the user gave it, and the header made of the key.
//!
//! Knows nothing of what is sent or of what comes back.

use reqwest::Url;
use reqwest::header::HeaderValue;

use crate::model::Secret;

/// What is appended to the base URL.
const PATH: &str = "/chat/completions";

/// Names of query fields whose values are nobody's business.
const SECRET_FIELDS: [&str; 5] = ["key", "token", "secret", "sig", "password"];

/// The place that requests are posted to.
#[derive(Clone, Debug)]
pub(super) struct Endpoint {
    /// The full URL.
    pub(super) url: Url,
    /// The same for texts: no password, no secret query field.
    pub(super) shown: String,
}

impl Endpoint {
    /// Reads a base URL: trailing slashes don't matter, a bare `http://host:port` gets `/v1`, a query is kept.
    ///
    /// # Errors
    /// A text that says what is wrong with it and how it should look.
    pub(super) fn parse(base: &str) -> Result<Self, String> {
        let base = base.trim();
        let wrong = |why: &str| {
            format!(
                "the server's address `{}` {why}; set OPENAI_BASE_URL to something like http://127.0.0.1:11434/v1",
                shown_raw(base)
            )
        };
        let mut url = Url::parse(base).map_err(|error| wrong(&format!("is no URL ({error})")))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("does not begin with http:// or https://"));
        }
        let path = url.path().trim_end_matches('/');
        // The whole address is what people find in a server's manual.
        let path = path.strip_suffix(PATH).unwrap_or(path).trim_end_matches('/');
        let path = if path.is_empty() { "/v1" } else { path };
        let path = format!("{path}{PATH}");
        url.set_path(&path);
        url.set_fragment(None);
        Ok(Self { shown: shown(&url), url })
    }

    /// Is it this machine? Then no proxy is asked.
    pub(super) fn is_loopback(&self) -> bool {
        let Some(host) = self.url.host_str() else {
            return false;
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        match host.parse::<std::net::IpAddr>() {
            Ok(address) => address.is_loopback() || address.is_unspecified(),
            Err(_) => host == "localhost" || host.ends_with(".localhost"),
        }
    }

    pub(super) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }
}

/// The `Authorization` header; none without a key.
///
/// # Errors
/// A text that says that the key can't be one.
pub(super) fn authorization(key: Option<&Secret>) -> Result<Option<HeaderValue>, String> {
    let Some(key) = key.filter(|key| !key.is_empty()) else {
        return Ok(None);
    };
    let is_plain = key.expose().bytes().all(|b| (0x21..=0x7E).contains(&b));
    let header = is_plain.then(|| HeaderValue::from_str(&format!("Bearer {}", key.expose())).ok()).flatten();
    let mut header = header.ok_or_else(|| {
        "OPENAI_API_KEY has a space, a line end or another character inside that no key has: set it anew, in one piece".to_owned()
    })?;
    header.set_sensitive(true);
    Ok(Some(header))
}

fn shown(url: &Url) -> String {
    let mut url = url.clone();
    if url.password().is_some() {
        // Can only fail for URLs without a host, which have no password either.
        let _ = url.set_password(Some("***"));
    }
    let is_secret = |name: &str| SECRET_FIELDS.iter().any(|field| name.to_lowercase().contains(field));
    if url.query_pairs().any(|(name, _)| is_secret(&name)) {
        let fields: Vec<(String, String)> = url
            .query_pairs()
            .map(|(name, value)| {
                (name.to_string(), if is_secret(&name) { "***".to_owned() } else { value.to_string() })
            })
            .collect();
        url.query_pairs_mut().clear().extend_pairs(fields);
    }
    url.to_string()
}

/// An address that may be no URL, without what stands before an `@`.
fn shown_raw(base: &str) -> String {
    let text = base.rsplit_once('@').map_or(base, |(_, host)| host);
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_urls_are_taken_in_every_form() {
        for (base, url) in [
            ("http://127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1/chat/completions"),
            (" http://127.0.0.1:8080/v1// ", "http://127.0.0.1:8080/v1/chat/completions"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/v1/chat/completions"),
            ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1/chat/completions"),
            ("http://127.0.0.1:8080/wrong", "http://127.0.0.1:8080/wrong/chat/completions"),
            ("https://api.openai.com/v1/chat/completions/", "https://api.openai.com/v1/chat/completions"),
            (
                "https://x.example/openai/deployments/d?api-version=1",
                "https://x.example/openai/deployments/d/chat/completions?api-version=1",
            ),
        ] {
            assert_eq!(Endpoint::parse(base).unwrap().url.as_str(), url, "{base}");
        }
    }

    #[test]
    fn what_is_no_address_is_refused_with_an_example() {
        for base in ["", "localhost:8080", "ftp://x/v1", "http://", "/v1", "http://a b/"] {
            let error = Endpoint::parse(base).unwrap_err();
            assert!(error.contains("OPENAI_BASE_URL") && error.contains("http://127.0.0.1"), "{error}");
        }
    }

    #[test]
    fn i12_secrets_in_the_address_are_not_shown() {
        let endpoint = Endpoint::parse("https://me:hush@x.example/v1?api-key=hush&api-version=1").unwrap();
        assert!(!endpoint.shown.contains("hush"), "{}", endpoint.shown);
        assert!(endpoint.shown.contains("api-version=1"));
        assert!(!Endpoint::parse("ftp://me:hush@x/").unwrap_err().contains("hush"));
    }

    #[test]
    fn loopback_is_known_in_every_form() {
        for (base, loopback) in [
            ("http://localhost:1", true),
            ("http://LOCALHOST:1", true),
            ("http://127.3.2.1", true),
            ("http://[::1]:8080/v1", true),
            ("http://0.0.0.0:1", true),
            ("http://10.0.0.1", false),
            ("https://localhost.example.com", false),
        ] {
            assert_eq!(Endpoint::parse(base).unwrap().is_loopback(), loopback, "{base}");
        }
    }

    #[test]
    fn keys_that_no_header_can_hold_are_refused_without_being_shown() {
        assert_eq!(authorization(Some(&Secret::new("sk-1\n"))).unwrap().unwrap(), "Bearer sk-1");
        assert!(authorization(Some(&Secret::new(" \n"))).unwrap().is_none());
        for key in ["sk-a\nb-secret", "sk secret", "sk-sécret", "sk\u{7}secret"] {
            let error = authorization(Some(&Secret::new(key))).unwrap_err();
            assert!(error.contains("OPENAI_API_KEY") && !error.contains("secret"), "{error}");
        }
    }
}
