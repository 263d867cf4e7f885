//! Plain words of consent and refusal, in the languages people answer in. Anything more than such a word is conversation.

use unicode_normalization::UnicodeNormalization;

/// What a line says to a yes-or-no question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Plain consent.
    Yes,
    /// Plain refusal.
    No,
    /// Anything else.
    Other,
}

const YES: &[&str] = &[
    "开始吧",
    "开始",
    "开始干吧",
    "好",
    "好的",
    "好吧",
    "好啊",
    "好呀",
    "好嘞",
    "好了",
    "可以",
    "可以的",
    "可以开始",
    "行",
    "行吧",
    "行的",
    "确认",
    "确定",
    "同意",
    "是",
    "是的",
    "对",
    "对的",
    "嗯",
    "没问题",
    "没有问题",
    "就这样",
    "就这么办",
    "就这样吧",
    "来吧",
    "干吧",
    "动手吧",
    "走起",
    "批准",
    "開始吧",
    "開始",
    "確認",
    "沒問題",
    "yes",
    "y",
    "ok",
    "okay",
    "sure",
    "go",
    "go ahead",
    "start",
    "start it",
    "do it",
    "let's go",
    "lets go",
    "yep",
    "yeah",
    "yup",
    "confirm",
    "confirmed",
    "approve",
    "approved",
    "agree",
    "agreed",
    "proceed",
    "please do",
    "yes please",
    "sounds good",
    "looks good",
    "lgtm",
    "fine",
    "はい",
    "お願いします",
    "おねがいします",
    "いいよ",
    "いいです",
    "了解",
    "開始して",
    "始めて",
    "進めて",
    "네",
    "예",
    "좋아",
    "좋아요",
    "oui",
    "si",
    "sí",
    "ja",
    "да",
];

const NO: &[&str] = &[
    "不",
    "不要",
    "不用",
    "不用了",
    "不行",
    "不可以",
    "不好",
    "不了",
    "不是",
    "不同意",
    "不确认",
    "先不",
    "先不要",
    "取消",
    "算了",
    "否",
    "别",
    "停",
    "no",
    "n",
    "nope",
    "nah",
    "cancel",
    "stop",
    "no thanks",
    "no thank you",
    "not now",
    "don't",
    "dont",
    "do not",
    "never mind",
    "nevermind",
    "reject",
    "decline",
    "abort",
    "いいえ",
    "いや",
    "やめて",
    "キャンセル",
    "不要です",
    "아니",
    "아니요",
    "non",
    "nein",
    "нет",
];

/// Particles and marks that a plain answer may end with.
const CLOSING: &[char] = &['.', '。', '!', '~', '…', ',', '、', ';', '·', '～'];

/// Reads a line as an answer: trimmed, width-folded (NFKC), case-folded, closing punctuation dropped. A word said several times
/// (`好好好`, `yes yes`) is that word. A question mark makes it a question.
#[must_use]
pub fn verdict(line: &str) -> Verdict {
    let folded: String = line.trim().nfkc().collect::<String>().to_lowercase().replace('’', "'");
    let word = folded.trim().trim_end_matches(|c: char| CLOSING.contains(&c) || c.is_whitespace());
    let joined = word.split(|c: char| c.is_whitespace() || c == ',' || c == '、').filter(|part| !part.is_empty());
    let word = joined.collect::<Vec<_>>().join(" ");
    let is = |words: &[&str]| words.contains(&word.as_str()) || words.iter().any(|one| repeats(&word, one));
    match (is(YES), is(NO)) {
        (true, _) => Verdict::Yes,
        (false, true) => Verdict::No,
        (false, false) => Verdict::Other,
    }
}

/// Is `text` the word `one` said two to five times?
fn repeats(text: &str, one: &str) -> bool {
    (2..=5).any(|times| text == one.repeat(times) || text == vec![one; times].join(" "))
}
