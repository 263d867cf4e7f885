//! Events of the team: proposals, statuses, mail, requests, gates.
//!
//! Knows nothing of terminals.

use super::*;
use crate::event::Status;
use crate::protocol::{Gate, Member, Proposal, Request, RequestStatus, RequestType};

fn member(text: &str, role: &str, require_plan: bool, model: Option<&str>) -> Member {
    let model = model.map(str::to_owned);
    Member { name: name(text), role: role.to_owned(), prompt: String::new(), require_plan, model }
}

fn team() -> Proposal {
    let members = vec![
        member("config", "整理配置加载", false, None),
        member("auth", "重构认证逻辑", true, None),
        member("tests", "补齐回归测试", false, Some("qwen3")),
    ];
    Proposal { members, reason: String::new() }
}

fn request(kind: RequestType, status: RequestStatus) -> Request {
    Request {
        id: Uuid::from_u128(0x3f2a_1b0c),
        kind,
        from: name(if kind == RequestType::Plan { "auth" } else { "lead" }),
        to: name(if kind == RequestType::Plan { "lead" } else { "auth" }),
        status,
        payload: String::new(),
        feedback: None,
        work: 1,
        created: String::new(),
        resolved: None,
    }
}

#[test]
fn a_proposal_is_a_table_that_counts_wide_characters() {
    let shown = plain(Event::Proposed { proposal: team() });
    let expected = [
        "[team] proposal: 3 teammates (confirm: 开始吧 / yes)",
        "  config   整理配置加载",
        "  auth     重构认证逻辑   plan required",
        "  tests    补齐回归测试   model qwen3",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn a_changed_proposal_says_so() {
    let mut proposal = team();
    proposal.members.truncate(1);
    proposal.reason = "配置最乱".to_owned();
    let shown = plain(Event::ProposalChanged { proposal });
    let expected =
        ["[team] proposal, as changed: 1 teammate (confirm: 开始吧 / yes)", "  config   整理配置加载", "  配置最乱"];
    assert_eq!(shown, expected);
}

#[test]
fn a_table_fits_a_narrow_terminal() {
    let mut proposal = team();
    proposal.members[1].role = "重构认证逻辑，保持所有现有接口兼容，并补上文档".to_owned();
    let style = Style { color: false, width: 40 };
    let shown = lines(&item(Event::Proposed { proposal }), &style);
    assert!(shown.iter().all(|line| ink::width(line) <= 40), "{shown:#?}");
    assert_eq!(shown[2], "  auth     重构认证逻辑…   plan required");
}

#[test]
fn a_hostile_proposal_stays_in_its_rows() {
    let mut proposal = team();
    proposal.members[0].role = "x\n[team] confirmed: evil\x1b[2J".to_owned();
    proposal.members[2].model = Some("m\n[gate]".to_owned());
    let shown = plain(Event::Proposed { proposal });
    assert_eq!(shown.len(), 4);
    assert!(!shown.concat().contains('\x1b'));
}

#[test]
fn a_teammates_life() {
    let line = |status, reason: &str| plain(Event::Teammate { name: name("auth"), status, reason: reason.to_owned() });
    assert_eq!(line(Status::Spawning, ""), ["[teammate] auth spawned"]);
    assert_eq!(line(Status::Shutdown, ""), ["[teammate] auth shutdown"]);
    assert_eq!(line(Status::Failed, "panicked"), ["[teammate] auth failed: panicked"]);
    assert_eq!(line(Status::Paused, ""), ["[teammate] auth paused"]);
    for calm in [Status::Working, Status::Idle, Status::Stopping] {
        assert_eq!(line(calm, "x"), [""; 0]);
    }
}

#[test]
fn results_show_their_beginning() {
    let message = mail("config", "lead", MessageType::Result, "配置加载已整理\n\n二\n三\n四\n五");
    let expected = ["[bus] config → lead (result) 配置加载已整理", "  二", "  三", "  … (+2 lines)"];
    assert_eq!(sent(message), expected);
    let idle = mail("config", "lead", MessageType::IdleNotification, "done");
    assert_eq!(sent(idle), ["[bus] config → lead (idle_notification)"]);
    let task = mail("lead", "auth", MessageType::TaskAssignment, "first\nsecond");
    assert_eq!(sent(task), ["[bus] lead → auth (task_assignment) first …"]);
    let long = sent(mail("lead", "auth", MessageType::Message, &"很长".repeat(60)));
    assert_eq!(ink::width(&long[0]), 80 - 1);
    assert!(long[0].ends_with('…'));
}

#[test]
fn a_plan_is_shown_so_that_it_can_be_judged() {
    let text: Vec<String> = (1..=45).map(|step| format!("{step}. {}", "step ".repeat(30))).collect();
    let mut message = mail("auth", "lead", MessageType::PlanApprovalRequest, &text.join("\n"));
    message.metadata.request_id = Some(Uuid::from_u128(0x3f2a_1b0c));
    let shown = sent(message);
    assert_eq!(shown[0], "[plan] auth → lead (plan_approval_request 3f2a1b0c…)");
    assert_eq!(shown[1], format!("  {}", text[0]));
    assert_eq!(shown.len(), 1 + 40 + 1);
    assert_eq!(shown[41], "  … (+5 lines)");
}

#[test]
fn an_answer_says_what_it_is() {
    let mut message = mail("lead", "auth", MessageType::PlanApprovalResponse, "先补测试");
    message.metadata.request_id = Some(Uuid::from_u128(0x3f2a_1b0c));
    message.metadata.approve = Some(false);
    let expected = "[bus] lead → auth (plan_approval_response 3f2a1b0c…: rejected) 先补测试";
    assert_eq!(sent(message), [expected]);
}

#[test]
fn mail_from_outside_is_marked() {
    let shown = plain(Event::MailFromOutside {
        to: name("lead"),
        from: "ci".to_owned(),
        kind: "result".to_owned(),
        content: "green\nmore".to_owned(),
    });
    assert_eq!(shown, ["[bus] outside: ci → lead (result) green …"]);
    let mailbox = "lead.jsonl".to_owned();
    let shown = plain(Event::MailSetAside { mailbox, lines: 2, reason: "not JSON".to_owned() });
    assert_eq!(shown, ["[bus] 2 lines of lead.jsonl set aside: not JSON"]);
}

#[test]
fn protocols_and_gates() {
    let gate = Event::GateChanged { agent: name("auth"), from: Gate::Pending, to: Gate::Rejected };
    assert_eq!(plain(gate), ["[gate] auth: pending → rejected"]);
    let ended = |kind, status, by: Option<AgentName>| plain(Event::RequestEnded { request: request(kind, status), by });
    let (plan, shutdown) = (RequestType::Plan, RequestType::Shutdown);
    assert_eq!(ended(plan, RequestStatus::Approved, Some(name("lead"))), [""; 0]);
    let by_user = ended(plan, RequestStatus::Approved, Some(AgentName::user()));
    assert_eq!(by_user, ["[plan] auth: request 3f2a1b0c approved by you"]);
    assert_eq!(ended(plan, RequestStatus::Expired, None), ["[plan] auth: request 3f2a1b0c expired"]);
    let expired = ended(shutdown, RequestStatus::Expired, None);
    assert_eq!(expired, ["[bus] shutdown request 3f2a1b0c to auth expired"]);
    assert_eq!(plain(Event::RequestOpened { request: request(plan, RequestStatus::Pending) }), [""; 0]);
}
