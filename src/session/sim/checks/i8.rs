//! I8: a bad line, reply or argument harms nothing but itself: it is set aside and kept, or answered with what was wrong.
//!
//! That what stands beside it is unharmed, the other checks see.

use std::collections::BTreeMap;

use crate::event::Event;

use super::super::log::{Entry, Seen};

/// Bad lines of mailboxes that are read are told of, and kept.
pub(super) fn bad_lines_are_set_aside(log: &[Entry]) -> Vec<String> {
    let mut bad: BTreeMap<&str, usize> = BTreeMap::new();
    let mut told: BTreeMap<&str, usize> = BTreeMap::new();
    let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
    for entry in log {
        match &entry.what {
            Seen::Outside { to, text: None } => *bad.entry(to).or_default() += 1,
            Seen::Item(item) => {
                if let Event::MailSetAside { mailbox, lines, .. } = &item.event {
                    *told.entry(mailbox.trim_end_matches(".jsonl")).or_default() += lines;
                }
            }
            Seen::Kept { mailbox, lines } => *kept.entry(mailbox).or_default() += lines,
            _ => {}
        }
    }
    let quiet = log.iter().any(|entry| matches!(entry.what, Seen::Quiet));
    let mut faults = Vec::new();
    // The lead's is read all the time; a teammate's only while it lives.
    for (name, bad) in bad.iter().filter(|(name, _)| quiet && **name == "lead") {
        let (told, kept) = (told.get(name).copied().unwrap_or(0), kept.get(name).copied().unwrap_or(0));
        if told < *bad || kept < *bad {
            faults.push(format!("{bad} bad lines came to {name}, {told} were told of, {kept} kept"));
        }
    }
    faults
}

/// A call that no tool can take is answered with what was wrong.
pub(super) fn bad_calls_are_answered(log: &[Entry]) -> Vec<String> {
    let mut faults = Vec::new();
    for item in super::super::log::items(log) {
        if let Event::ToolEnded { agent, tool, ok, result, .. } = &item.event
            && tool == "no_such_tool"
            && (*ok || !result.starts_with("error:"))
        {
            faults.push(format!("{agent} called a tool that there isn't, and was told {result:?}"));
        }
    }
    faults
}
