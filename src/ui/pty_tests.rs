//! The prompt in a real pseudo-terminal, seen through a terminal emulator.
//!
//! Knows nothing of sessions: the test program runs itself again as the child ([`child`]), which answers what is typed
//! with notices and does what it's told through a socket.
#![allow(unsafe_code, clippy::exit, reason = "tests that end their own processes and look at a raw terminal")]

mod stage;

use stage::Stage;

#[test]
fn child() {
    stage::child();
}

#[test]
fn text_in_one_piece_shows_whole_and_arrives() {
    let stage = Stage::new();
    stage.send("开始吧");
    stage.until("the text and the cursor", |screen| screen.row() == "s15 >> 开始吧" && screen.column() == 13);
    stage.send("\r");
    stage.until_shown("line \"开始吧\"");
}

#[test]
fn an_event_appears_above_the_half_typed_line() {
    let stage = Stage::new();
    stage.send("你好世界\x1b[D\x1b[D");
    stage.until("the cursor between", |screen| screen.row() == "s15 >> 你好世界" && screen.column() == 11);
    stage.tell("notice 第一个事件");
    stage.until_shown("第一个事件");
    stage.until("the line as it was", |screen| screen.row() == "s15 >> 你好世界" && screen.column() == 11);
    stage.send("们\r");
    stage.until_shown("line \"你好们世界\"");
}

#[test]
fn ctrl_c_ends_the_turn_and_keeps_the_text_while_the_lead_works() {
    let stage = Stage::new();
    stage.tell("work");
    stage.tell("notice working");
    stage.until_shown("working");
    stage.send("half\x03");
    stage.until_shown("interrupt");
    stage.until("the text kept", |screen| screen.row() == "s15 >> half");
    stage.tell("rest");
    stage.tell("notice resting");
    stage.until_shown("resting");
    stage.send("\x03");
    stage.until("the text cleared", |screen| screen.row() == "s15 >>");
    stage.send("next\r");
    stage.until_shown("line \"next\"");
}

#[test]
fn ctrl_c_twice_at_an_empty_idle_prompt_leaves() {
    let stage = Stage::new();
    stage.send("\x03");
    stage.until_shown("press Ctrl-C again to exit");
    assert!(!stage.screen().text().contains("leave"));
    stage.send("\x03");
    stage.until_shown("leave");
}

#[test]
fn a_paste_of_many_lines_is_one_line_and_waits_for_enter() {
    let stage = Stage::new();
    stage.send("\x1b[200~第一行\r\n\t第二行\r\r\n第四行\x1b[201~");
    stage.until_shown("第四行");
    assert!(!stage.screen().text().contains("line \""));
    stage.send("\r");
    stage.until_shown(r#"line "第一行\n\t第二行\n\n第四行""#);
}

#[test]
fn a_paste_obeys_no_control_character() {
    let stage = Stage::new();
    stage.send("\x1b[200~a\x1b[2Jb\u{9b}31mc\x07\x1b[201~");
    stage.until("the harmless rest", |screen| screen.row().starts_with("s15 >> a"));
    stage.send("\r");
    stage.until_shown(r#"line "ab31mc""#);
}

#[test]
fn lines_typed_ahead_all_arrive_in_order() {
    let stage = Stage::new();
    stage.send("one\rtwo\rthree\r");
    stage.until_shown("line \"three\"");
    let text = stage.screen().text();
    let at = |word: &str| text.find(&format!("line \"{word}\"")).expect("the line is on the screen");
    assert!(at("one") < at("two") && at("two") < at("three"), "{text}");
}

#[test]
fn what_was_typed_before_the_start_is_not_lost() {
    let stage = Stage::with("xterm-256color", "early\nhal");
    stage.until_shown("line \"early\"");
    stage.until("the unfinished rest", |screen| screen.row() == "s15 >> hal");
    stage.send("f\r");
    stage.until_shown("line \"half\"");
}

#[test]
fn lines_can_be_joined_by_hand() {
    let stage = Stage::new();
    stage.send("a\\\rb\x1b\rc\nd\r");
    stage.until_shown(r#"line "a\nb\nc\nd""#);
}

#[test]
fn a_blank_line_says_nothing() {
    let stage = Stage::new();
    stage.send("\r  \rx\r");
    stage.until_shown("line \"x\"");
    assert_eq!(stage.screen().text().matches("line \"").count(), 1);
}

#[test]
fn ctrl_d_ends_the_input_only_at_an_empty_line_and_can_come_again() {
    let stage = Stage::new();
    stage.send("ab\x1b[D\x04\r");
    stage.until_shown("line \"a\"");
    stage.send("\x04");
    stage.until_shown("eof 1");
    stage.send("\x04");
    stage.until_shown("eof 2");
}

#[test]
fn i2_a_line_entered_before_a_proposal_was_shown_has_not_seen_it() {
    let stage = Stage::new();
    stage.send("yes\r");
    stage.until_shown("line \"yes\" seen 1");
    // While a search is open the editor shows nothing from outside.
    stage.send("\x12yes");
    stage.until_shown("(reverse-i-search)`yes'");
    stage.tell("propose");
    stage.send("\r");
    stage.until_shown("line \"yes\" seen 2");
    stage.until_shown("[team] proposal");
    stage.send("yes\r");
    stage.until_shown("line \"yes\" seen 4");
}

#[test]
fn nothing_printed_is_lost_doubled_or_disordered_while_lines_are_entered() {
    let stage = Stage::new();
    for round in 0..40 {
        stage.tell(&format!("notice event-{round:03}"));
        stage.send("x\r");
    }
    stage.tell("notice the end");
    let entered = |raw: &str| raw.matches("line \"x\"").count();
    stage.until_raw("the end of all", |raw| raw.contains("the end") && entered(raw) == 40);
    let raw = stage.raw();
    let places: Vec<usize> = (0..40)
        .map(|round| {
            let word = format!("event-{round:03}");
            assert_eq!(raw.matches(&word).count(), 1, "{word}");
            raw.find(&word).expect("it is there once")
        })
        .collect();
    assert!(places.is_sorted(), "{places:?}");
}

#[test]
fn a_command_is_completed() {
    let stage = Stage::new();
    stage.send("/te\t");
    stage.until("the command", |screen| screen.row() == "s15 >> /team");
    stage.send("\x15/re\t");
    stage.until_shown("/requests  /reject");
    stage.until("what they share", |screen| screen.row() == "s15 >> /re");
}

#[test]
fn closing_shows_what_was_sent_and_gives_the_terminal_back() {
    let mut stage = Stage::new();
    stage.send("half");
    stage.until("the text", |screen| screen.row() == "s15 >> half");
    assert!(!stage.is_cooked());
    stage.tell("close");
    stage.wait_exit();
    assert!(stage.is_cooked());
    stage.until("the last words, and no paste mode", |screen| {
        screen.text().contains("the last words") && !screen.pastes()
    });
}

#[test]
fn closing_comes_back_while_a_search_is_open() {
    let mut stage = Stage::new();
    stage.send("old\r");
    stage.until_shown("line \"old\"");
    stage.send("\x12");
    stage.until_shown("reverse-i-search");
    stage.tell("close");
    stage.wait_exit();
    assert!(stage.is_cooked());
}

#[test]
fn an_exit_without_closing_gives_the_terminal_back_too() {
    let mut stage = Stage::new();
    stage.tell("exit");
    stage.wait_exit();
    assert!(stage.is_cooked());
}

#[test]
fn a_dumb_terminal_gets_a_prompt_and_no_escape_codes() {
    let stage = Stage::with("dumb", "");
    stage.send("你好\r");
    stage.until_shown("line \"你好\"");
    assert!(!stage.raw().contains('\x1b'));
    stage.send("\x04");
    stage.until_shown("eof 1");
}
