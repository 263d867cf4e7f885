//! How each fault is judged, apart from any connection.
//!
//! Knows nothing of waits.

use serde_json::json;

use super::*;

const SITE: Site<'_> = Site { url: "http://h/v1/chat/completions", model: "tiny", key: None };

fn refused(status: u16, body: &str) -> Failure {
    judge(&Fault::Status(Refusal { status, reason: "", body: body.to_owned(), location: None, wish: None }), SITE)
}

#[test]
fn which_statuses_are_tried_again() {
    for status in [408, 409, 425, 429, 500, 502, 503, 504, 520, 529] {
        assert_eq!(refused(status, "").again, Again::After(None), "{status}");
    }
    for status in [204, 301, 308, 400, 401, 402, 403, 404, 405, 413, 418, 422, 451] {
        assert_eq!(refused(status, "").again, Again::Never, "{status}");
    }
    assert_eq!(refused(429, "{\"error\":{\"message\":\"m\",\"code\":\"insufficient_quota\"}}").again, Again::Never);
}

#[test]
fn a_server_s_wish_is_kept() {
    let wish = Some(Duration::from_secs(3));
    let fault =
        Fault::Status(Refusal { status: 429, reason: "Too Many Requests", body: String::new(), location: None, wish });
    assert_eq!(judge(&fault, SITE).again, Again::After(wish));
    assert_eq!(judge(&fault, SITE).cause, "server busy (429)");
}

#[test]
fn a_missing_model_is_named_with_what_chooses_another() {
    for (status, body) in [
        (404, "{\"error\":{\"message\":\"model 'tiny' not found, try pulling it first\"}}"),
        (400, "{\"object\":\"error\",\"message\":\"Invalid model: tiny\",\"code\":\"1500\"}"),
        (404, "{\"error\":{\"code\":\"model_not_found\",\"message\":\"x\"}}"),
        (400, "{\"error\":{\"message\":\"tiny is not a valid model ID\",\"code\":400}}"),
    ] {
        let text = refused(status, body).text;
        assert!(text.contains("`tiny`") && text.contains("--model") && text.contains("OPENAI_MODEL"), "{text}");
    }
}

#[test]
fn no_key_and_a_wrong_key_get_different_advice() {
    let key = Secret::new("sk-0123456789");
    let with_key = judge(
        &Fault::Status(Refusal {
            status: 401,
            reason: "Unauthorized",
            body: String::new(),
            location: None,
            wish: None,
        }),
        Site { key: Some(&key), ..SITE },
    );
    assert_eq!(
        with_key.text,
        "the server at http://h/v1/chat/completions answered 401 Unauthorized\nCheck OPENAI_API_KEY."
    );
    assert!(refused(401, "").text.contains("No key was sent: set OPENAI_API_KEY"));
}

#[test]
fn errors_in_a_stream_are_judged_by_their_codes() {
    for (error, again) in [
        (json!({"message": "busy", "code": 503}), Again::After(None)),
        (json!({"message": "busy", "code": "429"}), Again::After(None)),
        (json!("gone wrong"), Again::After(None)),
        (json!({"message": "bad", "code": 400}), Again::Never),
        (json!({"message": "bad", "code": "400"}), Again::Never),
        (json!({"message": "bad", "type": "invalid_request_error"}), Again::Never),
        (json!({"message": "bad", "code": "context_length_exceeded"}), Again::Never),
        (json!({"message": "pay", "code": "insufficient_quota"}), Again::Never),
    ] {
        assert_eq!(judge(&Fault::Told(error.clone()), SITE).again, again, "{error}");
    }
}

#[test]
fn every_text_names_the_address_and_stays_short() {
    let long = "错 ".repeat(5000);
    for fault in [
        Fault::Unreachable { how: Unreachable::Name, detail: long.clone() },
        Fault::Lost { detail: long.clone() },
        Fault::FirstByte { limit: Duration::from_secs(60) },
        Fault::Idle { limit: Duration::from_millis(1500) },
        Fault::Cut { detail: long.clone() },
        Fault::TooLong { bytes_max: 1024 * 1024 },
        Fault::Status(Refusal { status: 500, reason: "", body: long.clone(), location: None, wish: None }),
        Fault::Told(json!({"message": long.clone()})),
        Fault::Foreign { what: Foreign::Text, sample: long },
        Fault::Filtered,
    ] {
        let Failure { text, cause, .. } = judge(&fault, SITE);
        assert!(text.contains(SITE.url), "{text}");
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.chars().count() < 700 && cause.chars().count() < 400 && !cause.contains('\n'));
    }
}
