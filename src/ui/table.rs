//! The table of a proposed team.

use unicode_width::UnicodeWidthStr;

use crate::protocol::Proposal;

use super::text::{fit, inert, pad};

/// A head line, then a line a member: name, role, what is special. Never wider than `width`.
pub(super) fn lines(proposal: &Proposal, head: &str, width: usize) -> Vec<String> {
    let count = proposal.members.len();
    let noun = if count == 1 { "teammate" } else { "teammates" };
    let mut lines = vec![format!("[team] {head}: {count} {noun} (confirm: 开始吧 / yes)")];
    let names = proposal.members.iter().map(|member| member.name.as_str().width()).max().unwrap_or(0);
    let roles: Vec<String> = proposal
        .members
        .iter()
        .map(|member| fit(&inert(&member.role).replace('\n', " "), (width / 2).max(10)))
        .collect();
    let role_columns = roles.iter().map(|role| role.width()).max().unwrap_or(0);
    for (member, role) in proposal.members.iter().zip(&roles) {
        let plan = if member.require_plan { "plan required" } else { "" };
        let model = member.model.as_ref().map(|model| format!("  model {}", inert(model))).unwrap_or_default();
        let row = format!("  {}   {}   {plan}{model}", pad(member.name.as_str(), names), pad(role, role_columns));
        lines.push(fit(row.trim_end(), width));
    }
    if !proposal.reason.trim().is_empty() {
        lines.push(fit(&format!("  ({})", inert(proposal.reason.trim()).replace('\n', " ")), width));
    }
    lines
}
