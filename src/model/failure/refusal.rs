//! Judges what the server itself said: a status other than success, or an error where a reply should be.
//!
//! Knows nothing of connections.

use serde_json::Value;

use super::{Again, BASE_URL_ADVICE, Failure, Refusal, Site, aside};
use crate::model::words::{Words, shortened};

const QUOTA_ADVICE: &str = "The account behind this key has nothing left to spend: check its plan and billing.";
const SERVER_ADVICE: &str = "The trouble is on the server's side: try again later.";
const REQUEST_ADVICE: &str =
    "The server refused the request itself: another model or a new conversation may be accepted.";

/// Judges a status other than success.
pub(super) fn judge_status(refusal: &Refusal, site: Site<'_>) -> Failure {
    let Refusal { status, reason, body, location, wish } = refusal;
    let words = Words::of_body(&site.mask(body));
    let is_lasting = !is_transient(*status) || is_quota(&words);
    let name = if reason.is_empty() { status.to_string() } else { format!("{status} {reason}") };
    let cause = match *status {
        429 => "server busy (429)".to_owned(),
        _ => format!("server answered {name}"),
    };
    let said = shortened(&words.text);
    let said = if said.is_empty() { said } else { format!(": {said}") };
    let advice = status_advice(*status, &words, location.as_deref(), site);
    Failure {
        cause,
        text: format!("the server at {} answered {name}{said}\n{advice}", site.url),
        status: Some(*status),
        again: if is_lasting { Again::Never } else { Again::After(*wish) },
    }
}

fn status_advice(status: u16, words: &Words, location: Option<&str>, site: Site<'_>) -> String {
    let advice = match status {
        300..=399 => {
            let target = location.map(|target| format!(" to {}", site.say(target))).unwrap_or_default();
            return format!("It redirects{target}: set OPENAI_BASE_URL to the right address.");
        }
        400 | 404 | 422 if is_about_model(words) => return model_advice(site),
        402 => QUOTA_ADVICE,
        _ if is_quota(words) => QUOTA_ADVICE,
        401 if site.key.is_none() => "No key was sent: set OPENAI_API_KEY.",
        401 => "Check OPENAI_API_KEY.",
        403 => "This key may not do that: check OPENAI_API_KEY, and what the account and the region allow.",
        404 | 405 => BASE_URL_ADVICE,
        413 => "The request is too large for this server: begin a new conversation or give it less to read.",
        429 => "The server limits how much is asked of it: wait a little, or let fewer teammates work at once.",
        408 | 409 | 425 | 500..=599 => SERVER_ADVICE,
        _ => REQUEST_ADVICE,
    };
    advice.to_owned()
}

/// Judges an error that stands where a reply should.
pub(super) fn judge_told(error: &Value, site: Site<'_>) -> Failure {
    let words = Words::of_value(&masked(error, site));
    let status = words.number.and_then(|number| u16::try_from(number).ok());
    let status = status.filter(|status| (400..600).contains(status));
    let is_request = words.mention(&["invalid_request", "context_length", "authentication_error", "permission_error"]);
    let is_lasting = is_quota(&words) || status.map_or(is_request, |status| !is_transient(status));
    let advice = if is_quota(&words) {
        QUOTA_ADVICE.to_owned()
    } else if is_about_model(&words) {
        model_advice(site)
    } else if is_lasting {
        REQUEST_ADVICE.to_owned()
    } else {
        SERVER_ADVICE.to_owned()
    };
    let said = shortened(&words.text);
    Failure {
        cause: format!("server error{}", aside(&said)),
        text: format!("the server at {} sent an error instead of a reply: {said}\n{advice}", site.url),
        status,
        again: if is_lasting { Again::Never } else { Again::After(None) },
    }
}

fn model_advice(site: Site<'_>) -> String {
    format!("Is `{}` a model of this server? Choose one with --model or OPENAI_MODEL.", site.model)
}

/// Statuses after which the same request may be answered.
fn is_transient(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 500..=599)
}

fn is_quota(words: &Words) -> bool {
    words.mention(&["insufficient_quota", "billing_hard_limit", "insufficient balance", "insufficient_balance"])
}

fn is_about_model(words: &Words) -> bool {
    words.codes.contains("model_not_found")
        || (words.mention(&["model"])
            && words.mention(&[
                "not found",
                "does not exist",
                "not exist",
                "no such model",
                "unknown model",
                "invalid model",
                "not a valid model",
                "not supported by",
            ]))
}

/// The error with the key masked in every text of it.
fn masked(error: &Value, site: Site<'_>) -> Value {
    match error {
        Value::String(text) => Value::String(site.mask(text)),
        Value::Array(items) => items.iter().map(|item| masked(item, site)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (site.mask(name), masked(value, site))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => error.clone(),
    }
}
