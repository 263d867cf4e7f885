//! The system prompts: texts from `prompts/`, with what this session and this member add.

use crate::protocol::Member;

use super::Settings;

const LEAD: &str = include_str!("../../prompts/lead.md");
const TEAMMATE: &str = include_str!("../../prompts/teammate.md");

/// The lead's system prompt.
pub(super) fn lead(settings: &Settings) -> String {
    LEAD.replace("{teammates_max}", &settings.teammates_max.to_string())
        .replace("{surroundings}", &settings.surroundings)
}

/// A teammate's system prompt.
pub(super) fn teammate(settings: &Settings, member: &Member) -> String {
    TEAMMATE
        .replace("{name}", member.name.as_str())
        .replace("{role}", member.role.trim())
        .replace("{surroundings}", &settings.surroundings)
}
