//! The play that goes on while the plug is pulled: who says what to whom, in numbers, and the script that has them say it.
//!
//! The script looks at nothing but the conversation: what was said, what was answered, what a result says of a call. So a call that is
//! asked for again after a kill gets the same answer. Knows nothing of processes.

use serde_json::{Value, json};

/// The teammates. Each writes to the lead and to the next one, the last one to the first.
pub(super) const TEAM: [&str; 3] = ["alpha", "beta", "gamma"];
/// The one whose plan is rejected first and approved then.
const PLANNER: &str = "beta";
/// The one that gets a second task once it has said everything of the first, and is shut down after it.
const TWICE: &str = "gamma";
/// To whom the lead speaks when it broadcasts.
pub(super) const ALL: &str = "all";
/// Whoever appends to mailboxes from outside calls itself so.
pub(super) const OUTSIDER: &str = "job";
/// The one line that the user says.
pub(super) const LINE: &str = "begin";
/// The result of the second task.
const LAST_WORDS: &str = "all done";
/// Edits of each teammate's file.
const STEPS: u32 = 3;
/// A call that did not go well is made again; there is no end to it but the turn's own limit.
const TRIES: u32 = 100_000;

/// Numbered messages that a reader gets from one sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stream {
    pub(super) from: &'static str,
    /// The reader, or [`ALL`].
    pub(super) to: &'static str,
    pub(super) reader: &'static str,
    pub(super) count: u32,
}

/// How many messages go each way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Play {
    /// From each to each; even, and at least twice as many as there are steps.
    pub(super) numbers: u32,
    /// From outside, to the lead and to the first teammate.
    pub(super) outside: u32,
}

/// What a message says.
pub(super) fn words(from: &str, to: &str, number: u32) -> String {
    format!("{from}>{to} n={number}.")
}

fn next(name: &str) -> &'static str {
    let at = TEAM.iter().position(|member| *member == name).unwrap();
    TEAM[(at + 1) % TEAM.len()]
}

fn before(name: &str) -> &'static str {
    TEAM.into_iter().find(|member| next(member) == name).unwrap()
}

impl Play {
    /// Everything that must be read, once and in this order.
    pub(super) fn streams(self) -> Vec<Stream> {
        let stream = |from, to, reader, count| Stream { from, to, reader, count };
        let mut streams = Vec::new();
        for member in TEAM {
            streams.push(stream("lead", member, member, self.numbers));
            streams.push(stream("lead", ALL, member, self.numbers / 2));
            streams.push(stream(member, "lead", "lead", self.numbers));
            streams.push(stream(member, next(member), next(member), self.numbers));
        }
        streams.extend(["lead", TEAM[0]].map(|to| stream(OUTSIDER, to, to, self.outside)));
        streams
    }

    /// Lines of a reader's history that must stand there so many times: how they begin, how they end.
    pub(super) fn once() -> Vec<(&'static str, String, String, usize)> {
        let mut lines = vec![("lead", LINE.to_owned(), String::new(), 1)];
        for member in TEAM {
            let tasks = if member == TWICE { 2 } else { 1 };
            for task in 1..=tasks {
                lines.push((member, format!("[Task] {}", task_words(task, member)), String::new(), 1));
            }
            lines.push(("lead", format!("[result] {member}: "), String::new(), tasks));
        }
        for (plan, answer) in [(1, "rejected"), (2, "approved")] {
            lines.push((
                "lead",
                "[plan_approval_request request_id=".to_owned(),
                format!("] {PLANNER}: PLAN-{plan}"),
                1,
            ));
            lines.push((PLANNER, format!("[Plan {answer}] {answer}-{plan}"), String::new(), 1));
        }
        let shut_down = format!(" approve=true] {TWICE}: shut down");
        lines.push(("lead", "[shutdown_response request_id=".to_owned(), shut_down, 1));
        lines
    }

    /// Each teammate's file as it must be in the end.
    pub(super) fn files() -> Vec<(String, String)> {
        let steps = |name: &str| (1..=STEPS).map(|step| format!("{}\n", step_words(step, name))).collect::<String>();
        let content = |name: &str| format!("{}\n{}{}\n", head(name), steps(name), foot(name));
        TEAM.map(|name| (file(name), content(name))).into()
    }

    /// The scenario.
    pub(super) fn script(self) -> String {
        let mut rules = self.lead();
        for member in TEAM {
            rules.extend(looking_again(member));
            if member == PLANNER {
                rules.extend(planning());
            }
            rules.extend(self.talking(member));
            if member == TWICE {
                rules.extend(working(member, &|_| vec![task_words(2, member)]));
                rules.push(json!({"agent": member, "has": task_words(2, member), "text": LAST_WORDS}));
            }
        }
        json!({"fallback": {"lead": "noted", "*": "waiting"}, "rule": rules}).to_string()
    }

    fn lead(self) -> Vec<Value> {
        let members: Vec<Value> = TEAM
            .iter()
            .map(|name| json!({"name": name, "role": "r", "prompt": task_words(1, name), "require_plan": *name == PLANNER}))
            .collect();
        let mut rules = vec![json!({"agent": "lead", "user": LINE, "todo": todo("propose_team"),
            "calls": [{"tool": "propose_team", "arguments": {"members": members, "reason": "r"}}]})];
        for (at, name) in TEAM.iter().enumerate() {
            let spawn = |name: &&str| json!({"tool": "spawn_teammate", "arguments": {"name": name}});
            rules.push(json!({"agent": "lead", "todo": todo(&format!("spawn_teammate \"{name}\"")),
                "has_call": "propose_team", "lacks": format!("{name} already exists"),
                "calls": TEAM[at..].iter().map(spawn).collect::<Vec<_>>()}));
        }
        rules.extend(reviewing());
        for first in (1..self.numbers).step_by(2) {
            for member in TEAM {
                let heard = (first > 1).then(|| words(member, "lead", first - 1));
                rules.extend(saying("lead", member, first, heard.as_slice(), &[]));
            }
            if first < self.numbers / 2 {
                rules.extend(saying("lead", ALL, first, &[words(TEAM[0], "lead", 2 * first)], &[]));
            }
        }
        // Who is at work can't be given a task: its next word wakes the lead.
        rules
            .push(json!({"agent": "lead", "after_result": "assign_task", "result_has": "is working", "text": "later"}));
        rules.push(json!({"agent": "lead", "todo": todo("assign_task"), "has": words(TWICE, "lead", self.numbers),
            "calls": [{"tool": "assign_task", "arguments": {"to": TWICE, "task": task_words(2, TWICE)}}]}));
        // Nobody writes to it any more then.
        let all_said = TEAM.map(|member| words(member, "lead", self.numbers));
        let has = [&all_said[..], &[format!("[result] {TWICE}: {LAST_WORDS}")]].concat();
        rules.push(json!({"agent": "lead", "todo": todo("request_shutdown"), "has": has,
            "lacks": ["has ended already", "already asked to shut down"],
            "calls": [{"tool": "request_shutdown", "arguments": {"teammate": TWICE}}]}));
        rules
    }

    /// What a teammate says during its first task, and what it does between if it has no second one to do it in.
    fn talking(self, member: &'static str) -> Vec<Value> {
        let task = task_words(1, member);
        let mut rules = Vec::new();
        if member != TWICE {
            let planned = (member == PLANNER).then(|| "[Plan approved]".to_owned());
            rules.extend(working(member, &|step| {
                let mut has = vec![task.clone(), words("lead", member, 2 * step)];
                has.extend(planned.clone());
                has
            }));
        }
        for first in (1..self.numbers).step_by(2) {
            // Nobody writes to the next one before it is there, which the lead's words tell.
            let mut heard = vec![task.clone(), words("lead", member, 2)];
            heard.extend((first > 1).then(|| words(before(member), member, first - 1)));
            rules.extend(saying(member, next(member), first, &heard, &[]));
            let mut has = vec![task.clone()];
            has.extend((first > 1).then(|| words("lead", member, first - 1)));
            // Its last words to the lead are its last words altogether.
            let last = format!("send_message {}", words(member, next(member), self.numbers));
            let said: &[&str] = if first + 1 == self.numbers { &[&last] } else { &[] };
            rules.extend(saying(member, "lead", first, &has, said));
        }
        rules
    }
}

fn task_words(task: usize, member: &str) -> String {
    format!("TASK-{task}-{member}")
}

fn todo(call: &str) -> Value {
    json!({"call": call, "tries": TRIES})
}

/// Two messages in one reply; the second alone if only the first went out. A teammate does a little work besides: who only talks is
/// slowed down.
fn saying(from: &str, to: &str, first: u32, has: &[String], has_call: &[&str]) -> Vec<Value> {
    let tool = if to == ALL { "broadcast" } else { "send_message" };
    let call = |number| {
        let mut arguments = json!({"content": words(from, to, number)});
        if to != ALL {
            arguments["to"] = json!(to);
        }
        json!({"tool": tool, "arguments": arguments})
    };
    let work = (from != "lead").then(|| json!({"tool": "glob", "arguments": {"pattern": "*.txt"}}));
    let rule = |from_number: u32| {
        json!({"agent": from, "has": has, "has_call": has_call,
            "todo": todo(&format!("{tool} {}", words(from, to, from_number))),
            "calls": (from_number..=first + 1).map(call).chain(work.clone()).collect::<Vec<_>>()})
    };
    vec![rule(first), rule(first + 1)]
}

fn file(name: &str) -> String {
    format!("{name}.txt")
}

fn head(name: &str) -> String {
    format!("head of {name};")
}

fn foot(name: &str) -> String {
    format!("foot of {name};")
}

fn step_words(step: u32, name: &str) -> String {
    format!("step-{step} of {name};")
}

/// After a change whose result is no good one it is looked whether it was made. Such a call stands alone in its reply, so that the
/// newest call tells.
fn looking_again(name: &str) -> Vec<Value> {
    [("read_file", "error: interrupted"), ("read_file", "not run"), ("write_file", "error:"), ("edit_file", "error:")]
        .into_iter()
        .map(|(tool, has)| {
            json!({"agent": name, "last_call": tool, "has_result": {"call": tool, "has": has},
                "calls": [{"tool": "read_file", "arguments": {"path": file(name)}}]})
        })
        .collect()
}

/// A file is made and then edited, step by step. An edit that is made twice leaves its step there twice.
fn working(name: &str, when: &dyn Fn(u32) -> Vec<String>) -> Vec<Value> {
    let content = format!("{}\n{}\n", head(name), foot(name));
    let mut rules = vec![json!({"agent": name, "todo": todo("write_file"), "lacks": head(name), "has": when(1),
        "calls": [{"tool": "write_file", "arguments": {"path": file(name), "content": content}}]})];
    for step in 1..=STEPS {
        let words = step_words(step, name);
        let edit = json!({"path": file(name), "old_text": foot(name), "new_text": format!("{words}\n{}", foot(name))});
        rules.push(
            json!({"agent": name, "todo": todo(&format!("edit_file {words}")), "lacks": words, "has": when(step),
            "calls": [{"tool": "edit_file", "arguments": edit}]}),
        );
    }
    rules
}

/// A plan, and after its rejection another one. A submission that was broken off is made again; one that waits already is not.
fn planning() -> Vec<Value> {
    let mut rules = Vec::new();
    for (plan, has, lacks) in [(1, "", "[Plan rejected]"), (2, "[Plan rejected]", "[Plan approved]")] {
        let call = format!("submit_plan PLAN-{plan}");
        let calls = json!([{"tool": "submit_plan", "arguments": {"plan": format!("PLAN-{plan}")}}]);
        let rule = |condition: &str, value: Value| {
            let mut rule = json!({"agent": PLANNER, "has": has, "lacks": lacks, "calls": calls});
            rule[condition] = value;
            rule
        };
        rules.push(rule("lacks_call", json!(call)));
        rules.push(rule("has_result", json!({"call": call, "has": "error:", "lacks": "already"})));
        rules.push(rule("has_result", json!({"call": call, "has": "not run"})));
    }
    rules
}

/// Each plan is answered once; an answer that was broken off is given again.
fn reviewing() -> Vec<Value> {
    let mut rules = Vec::new();
    for (plan, answer) in [(1, "rejected"), (2, "approved")] {
        let feedback = format!("{answer}-{plan}");
        let event = format!("[plan_approval_request request_id={{request_id}}] {PLANNER}: PLAN-{plan}");
        let calls = json!([{"tool": "review_plan", "arguments":
            {"request_id": "${request_id}", "approve": answer == "approved", "feedback": feedback}}]);
        rules.push(json!({"agent": "lead", "event": event, "until_call": "review_plan ${request_id}", "calls": calls}));
        for broken_off in ["error: interrupted", "not run"] {
            let result = json!({"call": format!("review_plan {feedback}"), "has": broken_off});
            rules.push(json!({"agent": "lead", "event": event, "until_call": "no such call ${request_id}",
                "has_result": result, "calls": calls}));
        }
    }
    rules
}
