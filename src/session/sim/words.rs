//! Texts that can be told apart wherever they turn up: `#auth:7#` is the seventh that `auth` said.

/// All such words in a text, in order.
pub(super) fn words(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('#') {
        rest = &rest[at..];
        let end = rest[1..].find('#').map(|end| end + 2);
        match end {
            Some(end) if is_word(&rest[1..end - 1]) => {
                found.push(&rest[..end]);
                rest = &rest[end..];
            }
            _ => rest = &rest[1..],
        }
    }
    found
}

/// Who said a word.
pub(super) fn sender(word: &str) -> &str {
    word.trim_matches('#').split(':').next().unwrap_or_default()
}

fn is_word(text: &str) -> bool {
    text.split_once(':').is_some_and(|(sender, number)| {
        !sender.is_empty()
            && sender.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
    })
}

#[test]
fn words_are_found_between_other_marks() {
    assert_eq!(words("a #b # #auth:7# x#out-lead:12##lead:1# #x:#"), ["#auth:7#", "#out-lead:12#", "#lead:1#"]);
    assert_eq!(sender("#out-lead:12#"), "out-lead");
}
