//! The simulated models of lead and teammates: they act by chance, and by what they were last told.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::model::Ask;
use crate::model::simulated::{Answer, End, SimulatedModel};

use super::faults::Fault;
use super::stage::{KEY, Stage};

/// Names that a team is made of.
pub(super) const NAMES: [&str; 4] = ["auth", "config", "docs", "tests"];

/// All models of a run.
pub(super) struct Cast(pub(super) Arc<Stage>);

/// A call as a model makes it.
type Wish = (&'static str, Value);

impl SimulatedModel for Cast {
    fn answer(&self, ask: &Ask<'_>, resend: u32) -> Answer {
        self.0.saw_ask(ask, resend);
        self.trouble(resend).unwrap_or_else(|| self.reply(ask))
    }
}

impl Cast {
    /// What goes wrong with a request, if something does.
    fn trouble(&self, resend: u32) -> Option<Answer> {
        let stage = &self.0;
        let often = if resend == 0 { 1 } else { 6 };
        let ends = |end| Answer {
            first: stage.chance.millis(10, 2_000),
            pieces: Vec::new(),
            last: stage.chance.millis(0, 500),
            end,
        };
        let happens = |fault, per_mille: usize| {
            let happens = stage.goes_wrong(per_mille * often);
            if happens {
                stage.fault(fault);
            }
            happens
        };
        if happens(Fault::ModelFails, 8) {
            return Some(ends(End::Status(400, None)));
        }
        if happens(Fault::RateLimited, 25) {
            let wish = stage.chance.percent(50).then(|| stage.chance.millis(500, 90_000));
            return Some(ends(End::Status(429, wish)));
        }
        if happens(Fault::ServerFails, 15) {
            return Some(ends(End::Status(500, None)));
        }
        if happens(Fault::Silent, 6) {
            return Some(Answer { first: Duration::MAX, ..ends(End::Cut) });
        }
        if happens(Fault::CutReply, 15) {
            let pause = stage.chance.millis(0, 3_000);
            return Some(Answer { pieces: vec![(pause, "this will be cut\noff".to_owned())], ..ends(End::Cut) });
        }
        if happens(Fault::Panic, 6) {
            return Some(ends(End::Panic));
        }
        None
    }

    fn reply(&self, ask: &Ask<'_>) -> Answer {
        let told = Told::by(ask);
        let agent = ask.agent.as_str();
        let wishes = if ask.agent.is_lead() { self.lead(&told) } else { self.teammate(agent, &told) };
        let stage = &self.0;
        let mut pieces = Vec::new();
        let quick = stage.chance.percent(60);
        if wishes.is_empty() || stage.chance.percent(30) {
            let pause = if quick { 200 } else { 6_000 };
            pieces.push((stage.chance.millis(0, pause), "well,".to_owned()));
            pieces.push((stage.chance.millis(0, pause), format!(" {}\nso it is", stage.word(agent))));
        }
        let mut first = stage.chance.millis(1, if quick { 300 } else { 8_000 });
        if stage.goes_wrong(20) {
            stage.fault(Fault::Slow);
            first = stage.chance.millis(20_000, 290_000);
        }
        let bad = !wishes.is_empty() && stage.goes_wrong(30);
        let mut calls: Vec<(String, String, String)> = wishes.into_iter().map(|wish| self.call(wish)).collect();
        if bad {
            stage.fault(Fault::BadReply);
            self.spoil(&mut calls);
        }
        let last = stage.chance.millis(0, if quick { 100 } else { 3_000 });
        Answer { first, pieces, last, end: End::Reply(calls) }
    }

    fn call(&self, (tool, mut arguments): Wish) -> (String, String, String) {
        if self.0.weather.key && tool == "send_message" && self.0.chance.percent(30) {
            self.0.fault(Fault::KeySaid);
            arguments["content"] = format!("{} {KEY}", arguments["content"].as_str().unwrap_or_default()).into();
        }
        (self.0.word("call"), tool.to_owned(), arguments.to_string())
    }

    /// Makes calls as small models make them.
    fn spoil(&self, calls: &mut Vec<(String, String, String)>) {
        let chance = &self.0.chance;
        let twin = calls[0].clone();
        match chance.below(5) {
            0 => calls[0].2 = "{\"to\": \"lead".to_owned(),
            1 => calls[0].1 = "no_such_tool".to_owned(),
            2 => calls[0].0 = String::new(),
            3 => calls[0].2 = "[1]".to_owned(),
            _ => calls.push((twin.0, "list_teammates".to_owned(), String::new())),
        }
    }

    fn lead(&self, told: &Told) -> Vec<Wish> {
        let stage = &self.0;
        let screen = stage.scene().screen.clone();
        let mut wishes = Vec::new();
        for request in &told.plans {
            if stage.chance.percent(70) {
                let approve = stage.chance.percent(60);
                let feedback = stage.chance.percent(50).then(|| stage.word("lead"));
                wishes.push(("review_plan", json!({"request_id": request, "approve": approve, "feedback": feedback})));
            }
        }
        if stage.chance.percent(70) && stage.may_act() {
            wishes.extend(screen.confirmed.iter().map(|name| ("spawn_teammate", json!({"name": name}))));
        }
        let first = screen.members.is_empty() && screen.proposed.is_empty() && screen.confirmed.is_empty();
        if told.by_user && stage.chance.percent(if first { 90 } else { 15 }) && stage.may_act() {
            wishes.push(self.proposal());
        }
        while stage.chance.percent(45) && stage.may_act() {
            wishes.push(self.lead_acts(&screen.plans.iter().map(ToString::to_string).collect::<Vec<_>>()));
        }
        wishes
    }

    fn proposal(&self) -> Wish {
        let stage = &self.0;
        let mut members = Vec::new();
        for name in NAMES {
            if members.is_empty() || stage.chance.percent(60) {
                let plan = stage.chance.percent(40);
                members
                    .push(json!({"name": name, "role": "worker", "prompt": stage.word("lead"), "require_plan": plan}));
            }
        }
        ("propose_team", json!({"members": members, "reason": "it is much"}))
    }

    fn lead_acts(&self, plans: &[String]) -> Wish {
        let stage = &self.0;
        let to = (*stage.chance.pick(&NAMES)).to_owned();
        let choice = stage.chance.below(100);
        let word = stage.word("lead");
        match choice {
            0..25 => ("send_message", json!({"to": to, "content": word})),
            25..35 => ("broadcast", json!({"content": word})),
            35..53 => {
                let plan = stage.chance.percent(40);
                ("assign_task", json!({"to": to, "task": word, "require_plan": plan}))
            }
            53..60 => ("request_plan", json!({"teammate": to, "task": word})),
            60..64 => {
                let how = *stage.chance.pick(&["ask", "cancel", "cancel", "abort"]);
                ("stop_teammate", json!({"teammate": to, "how": how, "reason": "it is stuck"}))
            }
            64..69 => ("request_shutdown", json!({"teammate": to, "reason": word})),
            69..77 => ("spawn_teammate", json!({"name": to, "prompt": word})),
            77..83 if !plans.is_empty() => {
                let request = stage.chance.pick(plans).clone();
                ("review_plan", json!({"request_id": request, "approve": stage.chance.percent(50)}))
            }
            83..90 => self.work("lead", &word),
            90..94 => ("list_requests", json!({})),
            94..97 => ("send_message", json!({"to": "nobody", "content": word})),
            _ => ("list_teammates", json!({})),
        }
    }

    fn teammate(&self, agent: &str, told: &Told) -> Vec<Wish> {
        let stage = &self.0;
        let mut wishes = Vec::new();
        for request in &told.shutdowns {
            if stage.chance.percent(60) {
                let approve = stage.chance.percent(50);
                let reason = stage.word(agent);
                wishes
                    .push(("shutdown_response", json!({"request_id": request, "approve": approve, "reason": reason})));
            }
        }
        if told.plan_wanted && stage.chance.percent(75) {
            wishes.push(("submit_plan", json!({"plan": stage.word(agent)})));
        }
        while stage.chance.percent(50) && stage.may_act() {
            wishes.push(self.teammate_acts(agent));
        }
        wishes
    }

    fn teammate_acts(&self, agent: &str) -> Wish {
        let stage = &self.0;
        let to = (*stage.chance.pick(&["lead", "lead", "auth", "config", "docs", "tests"])).to_owned();
        let choice = stage.chance.below(100);
        let word = stage.word(agent);
        let open = stage.scene().screen.shutdowns.iter().next().map(ToString::to_string);
        match (choice, open) {
            // Not always its own to answer.
            (0..8, Some(request)) => ("shutdown_response", json!({"request_id": request, "approve": true})),
            (0..30, _) => ("send_message", json!({"to": to, "content": word})),
            (30..40, _) => ("report_status", json!({"text": word})),
            (40..50, _) => ("submit_plan", json!({"plan": word})),
            (50..90, _) => self.work(agent, &word),
            (90..93, _) => ("broadcast", json!({"content": word})),
            (93..96, _) => ("spawn_teammate", json!({"name": to, "prompt": word})),
            _ => ("list_teammates", json!({})),
        }
    }

    fn work(&self, agent: &str, word: &str) -> Wish {
        let stage = &self.0;
        let path = format!("{agent}-{}.txt", stage.chance.below(3));
        match stage.chance.below(8) {
            0 => ("read_file", json!({"path": path})),
            1 | 2 => ("edit_file", json!({"path": path, "old_text": "#", "new_text": "+", "replace_all": true})),
            _ => ("write_file", json!({"path": path, "content": format!("{word}\n")})),
        }
    }
}

/// What an agent was told since its last reply.
struct Told {
    plans: Vec<String>,
    shutdowns: Vec<String>,
    plan_wanted: bool,
    by_user: bool,
}

impl Told {
    fn by(ask: &Ask<'_>) -> Self {
        let messages = ask.history.messages();
        let since = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
        let said = messages[since..].iter().filter(|message| message["role"] == "user");
        let texts: Vec<&str> = said.filter_map(|message| message["content"].as_str()).collect();
        let ids = |before: &str| {
            let found =
                texts.iter().flat_map(|text| text.match_indices(before).map(|(at, _)| &text[at + before.len()..]));
            found.filter_map(|rest| rest.get(..36)).map(str::to_owned).collect()
        };
        Self {
            plans: ids("[plan_approval_request request_id="),
            shutdowns: ids("[Shutdown request request_id="),
            plan_wanted: texts.iter().any(|text| text.contains("[Plan re")),
            by_user: texts.iter().any(|text| !text.starts_with("[Team events]")),
        }
    }
}
