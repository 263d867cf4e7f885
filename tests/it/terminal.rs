//! The prompt: what is typed is never disturbed, and the terminal is given back as it was.

use nix::sys::signal::{Signal, kill};

use crate::harness::{Bench, last_text, results, user_texts, wait_for};
use crate::pty::{PROMPT, Terminal};

const STORY: &str = r#"
[fallback]
lead = "收到。"
"*" = "完成了。"
[[rule]]
agent = "lead"
user = "组队"
lacks_call = "propose_team"
text = "我建议分三个方向："
calls = [{ tool = "propose_team", arguments = { members = [{ name = "config", role = "整理配置加载", prompt = "p" }, { name = "auth", role = "重构认证逻辑", prompt = "p", require_plan = true }, { name = "tests", role = "补齐回归测试", prompt = "p" }], reason = "" } }]
[[rule]]
agent = "lead"
user_is = "开始吧"
lacks_call = "spawn_teammate"
calls = [{ tool = "spawn_teammate", arguments = { name = "config" } }, { tool = "spawn_teammate", arguments = { name = "auth" } }, { tool = "spawn_teammate", arguments = { name = "tests" } }]
[[rule]]
agent = "lead"
event = "[plan_approval_request request_id={request_id}] auth"
until_call = "review_plan"
calls = [{ tool = "review_plan", arguments = { request_id = "${request_id}", approve = true } }]
[[rule]]
agent = "lead"
user = "关闭"
lacks_call = "request_shutdown"
calls = [{ tool = "request_shutdown", arguments = { teammate = "config" } }, { tool = "request_shutdown", arguments = { teammate = "auth" } }, { tool = "request_shutdown", arguments = { teammate = "tests" } }]
[[rule]]
agent = "auth"
lacks_call = "submit_plan"
calls = [{ tool = "submit_plan", arguments = { plan = "改 auth.rs" } }]
[[rule]]
agent = ["config", "tests"]
lacks_call = "bash"
calls = [{ tool = "bash", arguments = { command = "until [ -e go ]; do sleep 0.01; done" } }]
[[rule]]
agent = "lead"
user = "等"
lacks_call = "bash"
calls = [{ tool = "bash", arguments = { command = "touch begun; until [ -e go ]; do sleep 0.01; done; echo over" } }]
"#;

/// Rows of a proposal's table, as they stand on the screen.
fn rows(terminal: &Terminal, beginning: &str) -> usize {
    terminal.text().lines().filter(|line| line.starts_with(beginning)).count()
}

#[test]
fn the_whole_story_with_events_arriving_while_somebody_types() {
    let bench = Bench::new(STORY);
    let mut terminal = Terminal::start(&bench, 80, 40);
    terminal.line("请组队");
    terminal.see("[team] proposal: 3 teammates (confirm: 开始吧 / yes)");
    terminal.see("  auth     重构认证逻辑   plan required");
    // In one piece, as an input method sends it.
    terminal.keys("开始吧");
    terminal.wait("the echo", |terminal| terminal.cursor() == ("s15 >> 开始吧".to_owned(), 13));
    terminal.keys("\r");
    terminal.see("[gate] auth: pending → approved");
    terminal.keys("我正在打字");
    terminal.wait("the echo", |terminal| terminal.cursor() == ("s15 >> 我正在打字".to_owned(), 17));
    terminal.keys("\x1b[D");
    terminal.wait("the cursor", |terminal| terminal.cursor().1 == 15);
    std::fs::write(bench.path("go"), "").expect("a file");
    for who in ["config", "auth", "tests"] {
        terminal.see(&format!("[bus] {who} → lead (result)"));
    }
    terminal.wait("the line as it was", |terminal| terminal.cursor() == ("s15 >> 我正在打字".to_owned(), 15));
    assert_eq!(rows(&terminal, "[teammate]"), 3);
    terminal.keys("\x05\x15");
    terminal.wait("an empty line", |terminal| terminal.cursor_line() == PROMPT);
    terminal.line("关闭");
    terminal.see("[all teammates shut down]");
    terminal.wait("the prompt", |terminal| terminal.cursor_line() == PROMPT);
    terminal.keys("\x04");
    assert_eq!(terminal.exit_code(), 0);
    assert!(terminal.is_sane());
    bench.assert_no_faults();
}

#[test]
fn a_line_typed_while_the_lead_works_is_said_to_be_queued_and_joins_the_next_call() {
    let bench = Bench::new(STORY);
    let mut terminal = Terminal::start(&bench, 80, 24);
    terminal.line("等一下");
    wait_for("the command", || bench.read("begun"));
    terminal.line("还有一件事");
    terminal.see("(queued: joins the lead's next model call)");
    std::fs::write(bench.path("go"), "").expect("a file");
    terminal.see("收到。");
    let requests = bench.requests_of("lead");
    assert_eq!((requests.len(), last_text(&requests[1]).as_str()), (2, "还有一件事"));
    bench.assert_no_faults();
}

#[test]
fn ctrl_c_breaks_off_the_lead_and_keeps_what_is_half_typed() {
    let bench = Bench::new(STORY);
    let mut terminal = Terminal::start(&bench, 80, 24);
    terminal.line("等一下");
    wait_for("the command", || bench.read("begun"));
    terminal.keys("半句话");
    terminal.wait("the echo", |terminal| terminal.cursor_line() == "s15 >> 半句话");
    terminal.keys("\x03");
    terminal.see("(interrupted)");
    terminal.wait("the line as it was", |terminal| terminal.cursor() == ("s15 >> 半句话".to_owned(), 13));
    terminal.keys("\r");
    terminal.see("收到。");
    let requests = bench.requests_of("lead");
    assert!(
        results(&requests[1])[0].contains("interrupted: interrupted by the user"),
        "I5: {:?}",
        results(&requests[1])
    );
    assert_eq!(last_text(&requests[1]), "半句话");
    bench.assert_no_faults();
}

#[test]
fn ctrl_c_clears_a_line_and_twice_at_an_empty_one_leaves() {
    let bench = Bench::new(STORY);
    let mut terminal = Terminal::start(&bench, 40, 24);
    terminal.keys("打错的字");
    terminal.wait("the echo", |terminal| terminal.cursor_line() == "s15 >> 打错的字");
    terminal.keys("\x03");
    terminal.wait("an empty line", |terminal| terminal.cursor_line() == PROMPT);
    terminal.keys("\x03");
    terminal.see("(press Ctrl-C again to exit)");
    terminal.keys("\x03");
    assert_eq!(terminal.exit_code(), 0);
    assert!(terminal.is_sane());
    assert!(bench.requests().is_empty());
}

#[test]
fn a_pasted_text_is_one_line_and_type_ahead_is_three() {
    let bench = Bench::new(STORY);
    let mut terminal = Terminal::start(&bench, 80, 24);
    terminal.keys("\x1b[200~第一行\r\n\t第二行\r\r\n第四行\x1b[201~");
    terminal.wait("the paste", |terminal| terminal.text().contains("第四行"));
    assert!(bench.requests().is_empty(), "not submitted line by line");
    terminal.keys("\r");
    terminal.see("收到。");
    assert_eq!(user_texts(&bench.requests()[0]), ["第一行\n\t第二行\n\n第四行"]);
    terminal.keys("甲\r乙\r丙\r");
    let texts = wait_for("three lines", || {
        let texts = user_texts(&bench.requests().pop()?);
        (texts.len() == 4).then_some(texts)
    });
    assert_eq!(texts[1..], ["甲", "乙", "丙"]);
}

#[test]
fn i2_a_yes_typed_before_the_table_was_on_screen_confirms_nothing() {
    let slow = STORY.replacen("user = \"组队\"", "delay_ms = 700\nuser = \"组队\"", 1);
    let bench = Bench::new(&slow);
    let mut terminal = Terminal::start(&bench, 80, 24);
    terminal.line("请组队");
    terminal.line("开始吧");
    terminal.see("(queued: joins the lead's next model call)");
    terminal.see("[team] proposal: 3 teammates");
    // The queued line goes to the lead, whose spawn then needs the user's own answer.
    terminal.see("Start config, auth, tests? [y/N]");
    assert!(!terminal.text().contains("spawned"), "{}", terminal.text());
    terminal.line("n");
    terminal.see("declined by the user");
    terminal.see("收到。");
    assert_eq!(rows(&terminal, "Start config, auth, tests? [y/N]"), 1, "asked once: {}", terminal.text());
    assert!(bench.requests_of("config").is_empty());
    bench.assert_no_faults();
}

#[test]
fn a_proposal_is_changed_without_a_model_turn() {
    let bench = Bench::new(STORY);
    let mut terminal = Terminal::start(&bench, 80, 40);
    terminal.line("请组队");
    terminal.see("[team] proposal: 3 teammates");
    let before = bench.requests().len();
    for (line, row) in [
        ("/team drop tests", "[team] proposal, as changed: 2 teammates"),
        ("/team plan config on", "  config   整理配置加载   plan required"),
        ("/team model auth small", "  auth     重构认证逻辑   plan required  model small"),
        ("/team drop nobody", "nobody is not in the proposal; it has config, auth"),
        ("/tema", "Did you mean /team?"),
    ] {
        terminal.line(line);
        terminal.see(row);
    }
    assert_eq!(bench.requests().len(), before);
    terminal.line("开始吧");
    terminal.see("[team] confirmed: config, auth");
    let auth = wait_for("auth", || bench.requests_of("auth").into_iter().next());
    assert_eq!(auth.body["model"], "small");
}

#[test]
fn signals_give_the_terminal_back_sane() {
    for signal in [Signal::SIGTERM, Signal::SIGHUP] {
        let bench = Bench::new(STORY);
        let mut terminal = Terminal::start(&bench, 80, 24);
        terminal.keys("half");
        terminal.wait("the echo", |terminal| terminal.cursor_line().ends_with("half"));
        kill(terminal.pid(), signal).expect("it runs");
        assert_eq!(terminal.exit_code(), 130, "{signal}");
        assert!(terminal.is_sane(), "{signal}");
    }
}

#[test]
fn i9_stop_ends_a_stuck_teammate_and_the_lead_is_told() {
    let bench = Bench::new(STORY);
    let mut terminal = Terminal::start(&bench, 80, 40);
    terminal.line("请组队");
    terminal.see("[team] proposal");
    terminal.line("开始吧");
    wait_for("config", || bench.requests_of("config").into_iter().next());
    terminal.line("/stop config");
    terminal.see("[teammate] config shutdown (stopped by the user)");
    terminal.line("好了吗");
    wait_for("the lead is told", || {
        bench.requests_of("lead").into_iter().find(|request| {
            user_texts(request).iter().any(|text| text.contains("[status_update] system: the user stopped config"))
        })
    });
    bench.assert_no_faults();
}
