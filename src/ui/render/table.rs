//! The table of a proposed team.
//!
//! Knows nothing of whether it's confirmed; names, roles and models are the model's words and made inert.

use crate::protocol::{Member, Proposal};

use super::super::ink::{Ink, Line, cut, inert, pad, width};
use super::{Style, dim, first_line, names_width, one, tag};

const NAME_COLUMNS_MAX: usize = 24;
const ROLE_COLUMNS_MIN: usize = 8;
const GAP: &str = "   ";
const GAP_COLUMNS: usize = 3;
const INDENT_COLUMNS: usize = 2;

/// A head line, a row a member, and why this team.
pub(super) fn lines(proposal: &Proposal, remark: &str, style: &Style) -> Vec<String> {
    let members = &proposal.members;
    let noun = if members.len() == 1 { "teammate" } else { "teammates" };
    let head = format!(" proposal{remark}: {} {noun} (confirm: 开始吧 / yes)", members.len());
    let mut lines = one(tag("[team]").text(&head), style);

    let name_columns = names_width(members.iter().map(|member| member.name.as_str()), NAME_COLUMNS_MAX);
    let flags: Vec<String> = members.iter().map(flags).collect();
    let flag_columns = flags.iter().map(|flags| width(flags)).max().unwrap_or(0);
    let flag_gap = if flag_columns == 0 { 0 } else { GAP_COLUMNS };
    let room = style.width.saturating_sub(INDENT_COLUMNS + name_columns + GAP_COLUMNS + flag_gap + flag_columns);
    let roles: Vec<String> = members.iter().map(|member| role(member, room.max(ROLE_COLUMNS_MIN))).collect();
    let role_columns = roles.iter().map(|role| width(role)).max().unwrap_or(0);

    for ((member, role), flags) in members.iter().zip(&roles).zip(&flags) {
        let name = cut(member.name.as_str(), name_columns);
        let mut row = Line::default().text("  ").with(Ink::of(&member.name), &name);
        let name_gap = name_columns.saturating_sub(width(&name));
        row = row.text(&" ".repeat(name_gap)).text(GAP);
        row = if flags.is_empty() {
            row.text(role)
        } else {
            row.text(&pad(role, role_columns)).text(GAP).with(Ink::Warn, flags)
        };
        lines.extend(one(row, style));
    }
    let reason = first_line(&proposal.reason);
    if !reason.is_empty() {
        lines.extend(one(dim(&format!("  {reason}")), style));
    }
    lines
}

fn role(member: &Member, columns: usize) -> String {
    cut(&first_line(&member.role).replace('\t', " "), columns)
}

fn flags(member: &Member) -> String {
    let plan = member.require_plan.then(|| "plan required".to_owned());
    let model = member.model.as_ref().map(|model| format!("model {}", inert(model).replace(['\n', '\t'], " ")));
    plan.into_iter().chain(model).collect::<Vec<_>>().join("  ")
}
