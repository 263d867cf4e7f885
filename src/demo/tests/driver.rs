//! A driver that plays the runtime for the tests of the story: events batched and delayed by a seed, edits on a real copy.
//!
//! Knows nothing of the real session; what it must get right is only what an agent is shown.

use std::collections::BTreeMap;
use std::fs;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::demo::{demo_scenario, unpack_sample};
use crate::protocol::Gate;
use crate::scenario::{Clerk, ServeOptions};
use crate::tools::{self, Role};

const STEPS_MAX: usize = 5_000;
pub(in crate::demo) const TESTS_PASS: &str =
    "test result: ok. 3 passed; 0 failed\n\ntest result: ok. 10 passed; 0 failed\nexit code: 0";
pub(in crate::demo) const TESTS_FAIL: &str = "test result: FAILED. 2 passed; 1 failed\nexit code: 101";

/// One agent as the driver keeps it.
pub(in crate::demo) struct Agent {
    pub(in crate::demo) history: Vec<Value>,
    /// Mail that was sent and has not arrived.
    pub(in crate::demo) under_way: Vec<Mail>,
    /// Mail that has arrived and goes in before the next call.
    pub(in crate::demo) arrived: Vec<Mail>,
    pub(in crate::demo) calls: u64,
    pub(in crate::demo) in_turn: bool,
    /// The reply that is under way.
    pub(in crate::demo) reply: Option<Value>,
    pub(in crate::demo) gate_closed: bool,
    pub(in crate::demo) ended: bool,
}

#[derive(Clone)]
pub(in crate::demo) struct Mail {
    pub(in crate::demo) text: String,
    pub(in crate::demo) wakes: bool,
}

/// What a run of the story is like.
pub(in crate::demo) struct Story {
    pub(in crate::demo) clerk: Clerk,
    pub(in crate::demo) folder: TempDir,
    pub(in crate::demo) agents: BTreeMap<String, Agent>,
    pub(in crate::demo) random: u64,
    /// Who opened which request.
    pub(in crate::demo) requests: BTreeMap<String, String>,
    pub(in crate::demo) bash: fn(&Story) -> String,
    /// Who fails at its first call.
    pub(in crate::demo) failing: Option<&'static str>,
    pub(in crate::demo) confirmed: Vec<&'static str>,
    pub(in crate::demo) plan_for_all: bool,
}

impl Agent {
    fn new(system: &str) -> Self {
        Self {
            history: vec![json!({"role": "system", "content": system})],
            under_way: Vec::new(),
            arrived: Vec::new(),
            calls: 0,
            in_turn: false,
            reply: None,
            gate_closed: false,
            ended: false,
        }
    }

    fn can_step(&self) -> bool {
        !self.ended && (self.in_turn || self.arrived.iter().any(|mail| mail.wakes))
    }
}

impl Story {
    pub(in crate::demo) fn new(seed: u64) -> Self {
        let clerk = Clerk::new(demo_scenario().unwrap(), ServeOptions::default());
        let agents = BTreeMap::from([("lead".to_owned(), Agent::new("You are the lead."))]);
        Self {
            clerk,
            folder: unpack_sample().unwrap(),
            agents,
            random: seed,
            requests: BTreeMap::new(),
            bash: |_| TESTS_PASS.to_owned(),
            failing: None,
            confirmed: vec!["config", "auth", "tests"],
            plan_for_all: false,
        }
    }

    fn random(&mut self, below: usize) -> usize {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.random >> 33).unwrap() % below
    }

    fn new_id(&mut self, name: &str) -> String {
        let id = format!("0199-{:04}", self.requests.len());
        self.requests.insert(id.clone(), name.to_owned());
        id
    }

    pub(in crate::demo) fn agent(&mut self, name: &str) -> &mut Agent {
        self.agents.get_mut(name).unwrap()
    }

    pub(in crate::demo) fn line(&mut self, text: &str) {
        let lead = self.agent("lead");
        lead.arrived.push(Mail { text: format!("line:{text}"), wakes: true });
    }

    fn send(&mut self, to: &str, text: String, wakes: bool) {
        self.agent(to).under_way.push(Mail { text, wakes });
    }

    /// Runs until nobody has anything to do.
    pub(in crate::demo) fn run(&mut self) {
        for _ in 0..STEPS_MAX {
            let mut steps: Vec<(String, bool)> = Vec::new();
            for (name, agent) in &self.agents {
                if agent.can_step() {
                    steps.push((name.clone(), false));
                }
                if !agent.under_way.is_empty() {
                    steps.push((name.clone(), true));
                }
            }
            if steps.is_empty() {
                return;
            }
            let chosen = self.random(steps.len());
            let (name, arrives) = steps.swap_remove(chosen);
            if arrives {
                let mail = self.agent(&name).under_way.remove(0);
                self.agent(&name).arrived.push(mail);
            } else if self.agent(&name).reply.is_some() {
                self.take_reply(&name);
            } else {
                self.ask(&name);
            }
        }
        panic!("the story goes on for ever");
    }

    /// Puts in what has arrived and asks for a reply, which comes in a later step.
    fn ask(&mut self, name: &str) {
        let agent = self.agent(name);
        agent.in_turn = true;
        agent.calls += 1;
        let (lines, mut blocks): (Vec<String>, Vec<String>) =
            agent.arrived.drain(..).map(|mail| mail.text).partition(|text| text.starts_with("line:"));
        if !blocks.is_empty() && name == "lead" {
            blocks.insert(0, "[Team events]".to_owned());
            blocks.push("[Team state]\nconfig: working".to_owned());
        }
        if !blocks.is_empty() {
            agent.history.push(json!({"role": "user", "content": blocks.join("\n")}));
        }
        for line in &lines {
            agent.history.push(json!({"role": "user", "content": line.strip_prefix("line:").unwrap()}));
        }
        let headers = BTreeMap::from([
            ("x-s15-agent".to_owned(), name.to_owned()),
            ("x-s15-session".to_owned(), "s".to_owned()),
            ("x-s15-call".to_owned(), agent.calls.to_string()),
        ]);
        let body = json!({"model": "m", "stream": true, "messages": agent.history});
        let admitted = self.clerk.admit(&headers, body.to_string().as_bytes(), Instant::now());
        assert_eq!(admitted.faults, Vec::<String>::new());
        let reply = self.clerk.choose(&headers, &admitted);
        let id = format!("{name}_{}", self.agent(name).calls);
        self.agent(name).reply = Some(reply.message(&id));
    }

    fn take_reply(&mut self, name: &str) {
        let reply = self.agent(name).reply.take().unwrap();
        self.agent(name).history.push(reply.clone());
        if self.failing == Some(name) {
            self.agent(name).history.pop();
            self.agent(name).in_turn = false;
            self.send("lead", format!("[error] {name}: the model answered 500"), true);
            self.send("lead", format!("[idle_notification] {name}: failed"), false);
            return;
        }
        let calls = reply.get("tool_calls").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut yields = false;
        for call in &calls {
            let tool = call["function"]["name"].as_str().unwrap();
            let arguments: Value = serde_json::from_str(call["function"]["arguments"].as_str().unwrap()).unwrap();
            let result = self.run_tool(name, tool, &arguments);
            yields |= matches!(tool, "propose_team" | "submit_plan") && !result.starts_with("error:");
            let result = json!({"role": "tool", "tool_call_id": call["id"], "content": result});
            self.agent(name).history.push(result);
        }
        if calls.is_empty() || yields {
            self.agent(name).in_turn = false;
            if name != "lead" {
                self.end_turn(name, yields, reply["content"].as_str().unwrap_or_default());
            }
        }
    }

    fn end_turn(&mut self, name: &str, yields: bool, text: &str) {
        if !yields && !self.agent(name).ended {
            let text = text.replace('\n', "\n  ");
            self.send("lead", format!("[result] {name}: {text}"), true);
        }
        self.send("lead", format!("[idle_notification] {name}: done"), false);
    }

    fn run_tool(&mut self, name: &str, tool: &str, arguments: &Value) -> String {
        let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        let role = if name == "lead" { Role::Lead } else { Role::Teammate };
        let call = tools::parse(role, tool, arguments.as_object().unwrap().clone()).unwrap();
        if self.agent(name).gate_closed && Gate::Required.check(call.effect()).is_err() {
            return "Blocked: plan status is required. Submit a plan with submit_plan".to_owned();
        }
        let path = self.folder.path().join(text("path"));
        match tool {
            "read_file" => fs::read_to_string(path).unwrap(),
            "grep" | "glob" => "tests/basic.rs".to_owned(),
            "write_file" => {
                fs::write(path, text("content")).unwrap();
                "written".to_owned()
            }
            "edit_file" => {
                let old = fs::read_to_string(&path).unwrap();
                if old.matches(&text("old_text")).count() != 1 {
                    return "error: old_text does not stand there exactly once".to_owned();
                }
                fs::write(path, old.replace(&text("old_text"), &text("new_text"))).unwrap();
                "edited".to_owned()
            }
            "bash" => (self.bash)(self),
            "report_status" => "noted".to_owned(),
            _ => self.run_team_tool(name, tool, arguments),
        }
    }

    fn run_team_tool(&mut self, name: &str, tool: &str, arguments: &Value) -> String {
        let text = |key: &str| arguments[key].as_str().unwrap_or_default().to_owned();
        let approve = arguments["approve"].as_bool().unwrap_or_default();
        match tool {
            "propose_team" => "shown to the user. Your turn ends".to_owned(),
            "spawn_teammate" => self.spawn(&text("name")),
            "submit_plan" => {
                let id = self.new_id(name);
                self.send(
                    "lead",
                    format!("[plan_approval_request request_id={id}] {name}: {}", text("plan").replace('\n', "\n  ")),
                    true,
                );
                format!("submitted as request {id}")
            }
            "review_plan" => {
                let id = text("request_id");
                let who = self.requests[&id].clone();
                self.agent(&who).gate_closed = !approve;
                let word = if approve { "approved" } else { "rejected" };
                self.send(&who, format!("[Plan {word}] {}", text("feedback")), true);
                format!("{word}: request {id}")
            }
            "request_shutdown" => {
                let who = text("teammate");
                let id = self.new_id(&who);
                if self.agent(&who).in_turn {
                    self.send(&who, format!("[Shutdown request request_id={id}] all done"), true);
                } else {
                    self.goodbye(&who, &id);
                }
                format!("asked as request {id}")
            }
            "shutdown_response" => {
                self.goodbye(name, &text("request_id"));
                "approved".to_owned()
            }
            other => panic!("the driver has no tool {other}"),
        }
    }

    fn goodbye(&mut self, name: &str, id: &str) {
        self.agent(name).ended = true;
        self.send("lead", format!("[shutdown_response request_id={id} approve=true] {name}: approved"), true);
    }

    fn spawn(&mut self, name: &str) -> String {
        if !self.confirmed.contains(&name) {
            return format!("error: {name} is not in the confirmed team");
        }
        let chinese = self.said()[0].contains("我建议");
        let mut agent = match self.agents.remove(name) {
            Some(agent) => agent,
            None => Agent::new(&format!("You are {name}.")),
        };
        agent.ended = false;
        agent.gate_closed = name == "auth" || self.plan_for_all;
        agent.arrived.push(Mail { text: format!("[Task] {}", if chinese { "整理" } else { "Tidy" }), wakes: true });
        self.agents.insert(name.to_owned(), agent);
        format!("{name} is spawned and works")
    }

    pub(in crate::demo) fn said(&self) -> Vec<&str> {
        let replies = self.agents["lead"].history.iter().filter(|message| message["role"] == "assistant");
        replies.filter_map(|message| message["content"].as_str()).filter(|text| !text.is_empty()).collect()
    }

    pub(in crate::demo) fn file(&self, path: &str) -> String {
        fs::read_to_string(self.folder.path().join(path)).unwrap()
    }

    pub(in crate::demo) fn team_has_ended(&self) -> bool {
        self.agents.iter().all(|(name, agent)| name == "lead" || agent.ended)
    }
}
