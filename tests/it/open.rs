//! A run from a pipe that stays open, the team that most tests start, and what strangers leave in a mailbox.

use std::io::Write;
use std::process::{Child, Stdio};

use crate::harness::{Bench, wait_for};

/// A lead that proposes what it is asked for, spawns after a yes, and otherwise says `ok`.
pub(crate) fn scenario(members: &[(&str, bool)], more: &str) -> String {
    let list: Vec<String> = members
        .iter()
        .map(|(name, plan)| {
            format!("{{ name = \"{name}\", role = \"dev\", prompt = \"WORK-{name}\", require_plan = {plan} }}")
        })
        .collect();
    let spawns: Vec<String> = members
        .iter()
        .map(|(name, _)| format!("{{ tool = \"spawn_teammate\", arguments = {{ name = \"{name}\" }} }}"))
        .collect();
    format!(
        "[fallback]\nlead = \"ok\"\n\"*\" = \"done\"\n{more}\n\
         [[rule]]\nagent = \"lead\"\nuser = \"team\"\nlacks_call = \"propose_team\"\ncalls = [{{ tool = \"propose_team\", arguments = {{ members = [{}], reason = \"r\" }} }}]\n\
         [[rule]]\nagent = \"lead\"\nuser_is = [\"yes\", \"开始吧\", \"go on then\"]\nlacks_call = \"spawn_teammate\"\ncalls = [{}]\n",
        list.join(", "),
        spawns.join(", ")
    )
}

pub(crate) fn rule(text: &str) -> String {
    format!("[[rule]]\n{text}\n")
}

/// A run from a pipe that stays open, so that lines can be said while it goes on.
pub(crate) struct Open<'a> {
    bench: &'a Bench,
    pub(crate) child: Child,
}

impl<'a> Open<'a> {
    pub(crate) fn start(bench: &'a Bench) -> Self {
        let child = bench
            .command(&[])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        Self { bench, child }
    }

    pub(crate) fn say(&mut self, line: &str) {
        let stdin = self.child.stdin.as_mut().expect("piped");
        writeln!(stdin, "{line}").expect("the program reads");
    }

    /// Ends the input and waits; gives the exit code and all that was said.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        drop(self.child.stdin.take());
        let output = self.child.wait_with_output().expect("the program ends");
        (output.status.code(), String::from_utf8(output.stdout).expect("UTF-8"))
    }

    pub(crate) fn request(
        &self,
        agent: &str,
        what: &str,
        holds: impl Fn(&s15::scenario::Recorded) -> bool,
    ) -> s15::scenario::Recorded {
        wait_for(what, || self.bench.requests_of(agent).into_iter().find(|request| holds(request)))
    }
}

/// Mail as a stranger would leave it.
pub(crate) fn outside(bench: &Bench, content: &str) {
    outside_line(bench, &format!("{{\"from\":\"job\",\"content\":\"{content}\"}}"));
}

pub(crate) fn outside_line(bench: &Bench, line: &str) {
    let path = bench.path(".mailboxes/lead.jsonl");
    let mut mailbox = std::fs::OpenOptions::new().append(true).create(true).open(path).expect("the mailbox");
    mailbox.write_all(format!("{line}\n").as_bytes()).expect("an outsider writes");
}
