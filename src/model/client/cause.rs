//! Reads from the HTTP library's errors why a request got no answer.
//!
//! Knows nothing of what follows from it.

use std::error::Error;

use crate::model::failure::{Fault, Unreachable};

/// Why a request got no answer.
pub(super) fn sending_fault(error: &reqwest::Error) -> Fault {
    let detail = innermost(error);
    if error.is_builder() {
        return Fault::Setup(format!("the request can't be built: {detail}"));
    }
    if !error.is_connect() {
        return Fault::Lost { detail };
    }
    let chain = chain(error);
    let lower = chain.to_lowercase();
    let how = if lower.contains("dns error") || lower.contains("failed to lookup") {
        Unreachable::Name
    } else if lower.contains("invalid peer certificate") || lower.contains("certificate") {
        Unreachable::Certificate
    } else if lower.contains("corrupt message") || lower.contains("received fatal alert") {
        Unreachable::NotTls
    } else if error.is_timeout() {
        Unreachable::Timeout
    } else if lower.contains("refused") {
        Unreachable::Refused
    } else {
        Unreachable::Other
    };
    Fault::Unreachable { how, detail }
}

/// All causes of an error in one text, to look for words in.
fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text += &format!(": {error}");
        cause = error.source();
    }
    text
}

/// The text of an error's first cause; those around it say the same in general words.
pub(super) fn innermost(error: &dyn Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}
