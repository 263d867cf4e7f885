//! What must stand in the histories in the end, held against what does. Pure; its own tests show that it isn't fooled.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::play::{ALL, OUTSIDER, Play, Stream};

/// Each agent's history: the messages of its last request.
pub(super) type Histories = BTreeMap<String, Vec<Value>>;

/// Everything that is wrong with what was read.
pub(super) fn faults(play: Play, histories: &Histories) -> Vec<String> {
    let mut faults = Vec::new();
    let mut read: BTreeMap<[&str; 3], Vec<u32>> = BTreeMap::new();
    for (reader, history) in histories {
        for line in lines(history) {
            let Some(Numbered { envelope, from, to, number }) = Numbered::parse(line) else { continue };
            if envelope != envelope_of(from, to, reader) {
                faults.push(format!("{reader} has read {line:?}"));
            }
            read.entry([from, to, reader]).or_default().push(number);
        }
    }
    for stream in play.streams() {
        let numbers = read.remove(&[stream.from, stream.to, stream.reader]).unwrap_or_default();
        faults.extend(fault_of(&stream, &numbers));
    }
    faults.extend(read.keys().map(|[from, to, reader]| format!("{reader} was to read nothing from {from} to {to}")));
    for (reader, begins, ends, times) in Play::once() {
        let history = histories.get(reader).map(Vec::as_slice).unwrap_or_default();
        let found = lines(history).filter(|line| line.starts_with(&begins) && line.ends_with(&ends)).count();
        if found != times {
            faults.push(format!("{reader} has read {begins:?} … {ends:?} {found} times instead of {times}"));
        }
    }
    faults
}

/// The numbers of an agent's calls, in the order in which they came: each is the next one, or the one before again.
pub(super) fn fault_of_calls(calls: &[u64]) -> Option<String> {
    let mut last = 0;
    for call in calls {
        if *call != last && *call != last + 1 || *call == 0 {
            return Some(format!("call {call} came after call {last}"));
        }
        last = *call;
    }
    None
}

/// The lines of what a model was told in the user's role.
fn lines(history: &[Value]) -> impl Iterator<Item = &str> {
    let told = history.iter().filter(|message| message["role"] == "user");
    told.filter_map(|message| message["content"].as_str()).flat_map(str::lines)
}

/// A numbered message as it stands in a history.
struct Numbered<'a> {
    envelope: &'a str,
    from: &'a str,
    to: &'a str,
    number: u32,
}

impl<'a> Numbered<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (head, number) = line.strip_suffix('.')?.rsplit_once(" n=")?;
        let (envelope, pair) = head.rsplit_once(' ')?;
        let (from, to) = pair.split_once('>')?;
        Some(Self { envelope, from, to, number: number.parse().ok()? })
    }
}

/// How a message begins in its reader's history.
fn envelope_of(from: &str, to: &str, reader: &str) -> String {
    match (reader, from == OUTSIDER) {
        ("lead", true) => format!("[message] {from} (outside mail):"),
        ("lead", false) => format!("[message] {from}:"),
        (_, true) => format!("[Outside message from {from}]"),
        (_, false) if to == ALL => format!("[Broadcast from {from}]"),
        (_, false) => format!("[Message from {from}]"),
    }
}

fn fault_of(stream: &Stream, numbers: &[u32]) -> Option<String> {
    let read: BTreeSet<u32> = numbers.iter().copied().collect();
    let missing: Vec<u32> = (1..=stream.count).filter(|number| !read.contains(number)).collect();
    let doubled = numbers.len() - read.len();
    let strange = read.iter().filter(|number| !(1..=stream.count).contains(number)).count();
    let in_order = numbers.is_sorted();
    let fine = missing.is_empty() && doubled == 0 && strange == 0 && in_order;
    (!fine).then(|| {
        format!(
            "{}, from {} to {}: missing {missing:?}, {doubled} doubled, {strange} strange, in order: {in_order}; it came as \
             {numbers:?}",
            stream.reader, stream.from, stream.to
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::play::{TEAM, words};
    use super::*;

    const PLAY: Play = Play { numbers: 6, outside: 2 };

    /// Histories in which all is as it must be: a message a line, and the lines that must be there once.
    fn good() -> Histories {
        let mut histories = Histories::new();
        let mut tell = |reader: &str, text: String| {
            histories.entry(reader.to_owned()).or_default().push(json!({"role": "user", "content": text}));
        };
        for stream in PLAY.streams() {
            for number in 1..=stream.count {
                let words = words(stream.from, stream.to, number);
                tell(stream.reader, format!("{} {words}", envelope_of(stream.from, stream.to, stream.reader)));
            }
        }
        for (reader, begins, ends, times) in Play::once() {
            (0..times).for_each(|_| tell(reader, format!("{begins}{ends}")));
        }
        histories
    }

    fn line_of(histories: &Histories, reader: &str, words: &str) -> usize {
        let has = |message: &Value| message["content"].as_str().unwrap().ends_with(words);
        histories[reader].iter().position(has).unwrap()
    }

    fn one_fault(histories: &Histories, expected: &str) {
        let faults = faults(PLAY, histories);
        assert!(faults.len() == 1 && faults[0].contains(expected), "{expected}: {faults:?}");
    }

    #[test]
    fn all_in_its_place_is_no_fault() {
        assert_eq!(faults(PLAY, &good()), Vec::<String>::new());
    }

    #[test]
    fn a_missing_a_doubled_and_a_swapped_message_are_each_caught_wherever_they_are() {
        for stream in PLAY.streams() {
            for number in 1..=stream.count {
                let at = |histories: &Histories, number| {
                    line_of(histories, stream.reader, &words(stream.from, stream.to, number))
                };
                let mut missing = good();
                let place = at(&missing, number);
                missing.get_mut(stream.reader).unwrap().remove(place);
                one_fault(&missing, &format!("missing [{number}]"));

                let mut doubled = good();
                let again = doubled[stream.reader][place].clone();
                doubled.get_mut(stream.reader).unwrap().push(again);
                one_fault(&doubled, "1 doubled");

                if number > 1 {
                    let mut swapped = good();
                    let before = at(&swapped, number - 1);
                    swapped.get_mut(stream.reader).unwrap().swap(place, before);
                    one_fault(&swapped, "in order: false");
                }
            }
        }
    }

    #[test]
    fn a_message_in_the_wrong_envelope_or_history_is_caught() {
        let mut outside = good();
        let place = line_of(&outside, "lead", &words(TEAM[0], "lead", 3));
        let forged = format!("[message] {} (outside mail): {}", TEAM[0], words(TEAM[0], "lead", 3));
        outside.get_mut("lead").unwrap()[place] = json!({"role": "user", "content": forged});
        one_fault(&outside, "(outside mail)");

        let mut astray = good();
        let message = astray["lead"][place].clone();
        astray.get_mut(TEAM[1]).unwrap().push(message);
        assert_eq!(faults(PLAY, &astray).len(), 2, "in a wrong place, and twice");
    }

    #[test]
    fn an_effect_that_is_missing_or_doubled_is_caught() {
        for (reader, begins, ends, _) in Play::once() {
            let is_it = |message: &Value| {
                message["content"].as_str().is_some_and(|text| text.starts_with(&begins) && text.ends_with(&ends))
            };
            let mut missing = good();
            let place = missing[reader].iter().position(is_it).unwrap();
            missing.get_mut(reader).unwrap().remove(place);
            one_fault(&missing, &begins);

            let mut doubled = good();
            let again = doubled[reader][place].clone();
            doubled.get_mut(reader).unwrap().push(again);
            one_fault(&doubled, &begins);
        }
    }

    #[test]
    fn what_a_model_said_or_did_itself_counts_for_nothing() {
        let mut histories = good();
        let said = json!({"role": "assistant", "content": words("lead", TEAM[0], 1)});
        let result = json!({"role": "tool", "content": format!("[Message from lead] {}", words("lead", TEAM[0], 1))});
        histories.get_mut(TEAM[0]).unwrap().extend([said, result]);
        assert_eq!(faults(PLAY, &histories), Vec::<String>::new());
    }

    #[test]
    fn calls_are_counted_on_or_repeated_and_nothing_else() {
        assert_eq!(fault_of_calls(&[1, 1, 2, 3, 3, 3, 4]), None);
        for wrong in [&[2][..], &[0], &[1, 3], &[1, 2, 1]] {
            assert!(fault_of_calls(wrong).is_some(), "{wrong:?}");
        }
    }
}
