//! What becomes of mail: returned, referred to, shown in portions.

use super::super::letters::LETTERS_MAX;
use super::super::portion::{PORTION_CHARS_MAX, Rest, is_backlog, portion};
use super::super::returned::{Returned, returned};
use super::*;

fn message(from: &AgentName, to: &AgentName, kind: MessageType, content: &str) -> Message {
    Message {
        id: Uuid::nil(),
        session: Uuid::nil(),
        from: from.clone(),
        to: to.clone(),
        kind,
        content: content.to_owned(),
        metadata: Metadata::default(),
        timestamp: String::new(),
    }
}

#[test]
fn unread_mail_goes_to_its_sender_or_to_the_lead() {
    let (auth, bob, lead) = (name("auth"), name("bob"), AgentName::lead());
    let back = |from: &AgentName, bob_is_there: bool| {
        let message = message(from, &auth, MessageType::Message, "x\ny");
        returned(&message, |name| *name == bob && bob_is_there)
    };
    let to = |to: &AgentName, text: &str| Some(Returned { to: to.clone(), text: text.to_owned() });
    assert_eq!(back(&bob, true), to(&bob, "to auth (message), who has ended: x\ny"));
    assert_eq!(back(&bob, false), to(&lead, "from bob to auth (message), who have both ended: x\ny"));
    assert_eq!(back(&lead, false), to(&lead, "to auth (message), who has ended: x\ny"));
    assert_eq!(back(&AgentName::user(), true), to(&lead, "from the user to auth (message), who has ended: x\ny"));
    assert_eq!(back(&AgentName::system(), true), None);
}

#[test]
fn what_asks_only_its_reader_and_what_came_back_does_not_bounce() {
    for kind in MessageType::ALL {
        let message = message(&name("bob"), &name("auth"), kind, "x");
        let stays = matches!(kind, MessageType::ShutdownRequest | MessageType::Undelivered);
        assert_eq!(returned(&message, |_| true).is_none(), stays, "{kind:?}");
    }
}

/// Sends a message with this id, put before its reader or not.
fn post(letters: &mut Letters, id: u128, from: &AgentName, to: &AgentName, given: bool) -> Uuid {
    let mut message = message(from, to, MessageType::Message, "x");
    message.id = Uuid::from_u128(id);
    letters.sent(&message);
    if given {
        letters.given(&[message.id].into());
    }
    message.id
}

#[test]
fn an_agent_refers_to_what_it_sent_or_was_given_and_to_nothing_else() {
    let (auth, bob, lead) = (name("auth"), name("bob"), AgentName::lead());
    let mut letters = Letters::default();
    let asked = post(&mut letters, 0x1111_aaaa_0000, &auth, &bob, true);
    let unread = post(&mut letters, 0x2222_aaaa_0000, &auth, &bob, false);
    let told = post(&mut letters, 0x3333_bbbb_0000, &bob, &auth, false);
    assert_eq!(letters.answered(&bob, &auth, "last"), Ok(asked), "what was given, not what waits");
    assert_eq!(letters.answered(&bob, &auth, &asked.to_string()), Ok(asked));
    assert_eq!(letters.answered(&bob, &lead, "1111AAAA"), Ok(asked), "a part, whoever is written to");
    assert_eq!(letters.answered(&auth, &bob, &unread.simple().to_string()), Ok(unread), "its own");
    assert_eq!(letters.answered(&bob, &lead, "3333bbbb…"), Ok(told));
    for (by, to, text, advice) in [
        (&bob, &auth, "2222aaaa", "write \"last\" for the newest from auth"),
        (&lead, &auth, "1111aaaa", "no message that you sent or got"),
        (&bob, &auth, "111", "no message that you sent or got"),
        (&auth, &bob, "aaaa", "2 messages have \"aaaa\" in their id"),
        (&bob, &lead, "last", "you have got no message from lead yet"),
    ] {
        let why = letters.answered(by, to, text).unwrap_err();
        assert!(why.contains(advice), "{text}: {why}");
    }
    let text = serde_json::to_string(&letters).unwrap();
    assert_eq!(serde_json::from_str::<Letters>(&text).unwrap(), letters);
    for id in 0..LETTERS_MAX as u128 {
        post(&mut letters, 0x7000_0000_0000 + id, &lead, &bob, true);
    }
    assert!(letters.answered(&bob, &auth, "1111aaaa").is_err(), "the oldest are forgotten");
}

#[test]
fn an_agent_takes_back_its_own_talk_alone() {
    let (auth, bob) = (name("auth"), name("bob"));
    let mut letters = Letters::default();
    let id = post(&mut letters, 0x1111_aaaa_0000, &auth, &bob, false);
    assert_eq!(letters.own(&auth, "1111aaaa").unwrap().id, id);
    for (by, text) in [(&bob, "1111aaaa"), (&auth, "2222"), (&auth, "")] {
        assert!(letters.own(by, text).unwrap_err().contains("you sent no message with the id"), "{text}");
    }
    let kinds = MessageType::ALL.map(|kind| {
        letters.sent(&Message { id: Uuid::from_u128(0xcccc_dddd), ..message(&auth, &bob, kind, "x") });
        let talk = letters.own(&auth, "ccccdddd").unwrap().is_mere_talk();
        letters = Letters::default();
        talk
    });
    assert_eq!(kinds.iter().filter(|talk| **talk).count(), 3, "message, broadcast, status_update");
}

#[test]
fn an_answer_says_what_it_answers_and_the_forms_stay_otherwise() {
    let mut mail = message(&name("auth"), &name("bob"), MessageType::Message, "8080");
    let shown = |mail: &Message| shown::for_teammate(&showing(&[Mail::Inside(mail.clone())], &|_| None));
    assert_eq!(shown(&mail), "[Message from auth] 8080");
    mail.metadata.reply_to = Some(Uuid::from_u128(0xab));
    assert_eq!(shown(&mail), "[Message from auth, in reply to 00000000-0000-0000-0000-0000000000ab] 8080");
    let text = shown::for_lead(&showing(&[Mail::Inside(mail)], &|_| None), "[Team state]");
    assert!(text.contains("\n[message reply_to=00000000-0000-0000-0000-0000000000ab] auth: 8080\n"), "{text}");
}

#[test]
fn i7_only_what_is_meant_to_wake_does() {
    let mut mail = message(&name("auth"), &name("bob"), MessageType::Broadcast, "x");
    for (wake, wakes) in [(None, true), (Some(true), true), (Some(false), false)] {
        mail.metadata.wake = wake;
        assert_eq!(Mail::Inside(mail.clone()).wakes(), wakes, "{wake:?}");
    }
    mail.kind = MessageType::StatusUpdate;
    mail.metadata.wake = Some(true);
    assert!(!Mail::Inside(mail).wakes());
}

#[test]
fn notices_that_say_the_same_again_are_shown_as_one() {
    let (auth, bob, lead) = (name("auth"), name("bob"), AgentName::lead());
    let (idle, status, result) = (MessageType::IdleNotification, MessageType::StatusUpdate, MessageType::Result);
    let said = [
        (&auth, result, "first"),
        (&auth, idle, "waiting_approval"),
        (&bob, idle, "done"),
        (&auth, status, "half way"),
        (&auth, result, "second"),
        (&auth, idle, "done"),
        (&auth, status, "half way"),
        (&bob, status, "half way"),
        (&auth, status, "there"),
        (&auth, idle, "done"),
        (&auth, result, "second"),
    ];
    let inside = |(from, kind, text)| Mail::Inside(message(from, &lead, kind, text));
    let text = shown::for_lead(&showing(&said.map(inside), &|_| None), "[Team state]");
    let expected = "[Team events]\n[result] auth: first\n[idle_notification] bob: done\n[result] auth: second\n\
        [status_update] auth: half way ×2\n[status_update] bob: half way\n[status_update] auth: there\n\
        [idle_notification] auth: done ×3\n[result] auth: second\n[Team state]";
    assert_eq!(text, expected);
    let outside = |from: Option<&str>| {
        let key = MailKey::Outside { claim: "c".to_owned(), offset: 0 };
        let from = from.map(str::to_owned);
        Mail::Outside(OutsideMail { key, from, kind: idle, content: "x".to_owned(), timestamp: None, waited: None })
    };
    let mail = [inside((&auth, idle, "done")), outside(Some("auth")), outside(Some("auth")), outside(None)];
    let text = shown::for_lead(&showing(&mail, &|_| None), "[Team state]");
    assert!(
        text.contains("] auth: done\n[idle_notification] auth (outside mail): x ×2\n[idle_notification] somebody"),
        "{text}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// However long the texts are: portions are the whole, in order, none too large to be shown, none empty.
    #[test]
    fn i1_a_backlog_comes_whole_in_portions_of_bounded_size(lengths in proptest::collection::vec(0_usize..12_000, 0..30)) {
        let content = |length| "é\n".repeat(length / 2);
        let mail: Vec<Mail> = lengths.iter().map(|length| outside(&content(*length))).collect();
        let mut rest = mail.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(portion(rest));
            prop_assert!(!now.is_empty() && is_backlog(rest) != later.is_empty());
            let text = shown::for_lead(&showing(now, &|_| None), "");
            let chars = text.trim_start_matches("[Team events]\n").chars().count();
            prop_assert!(now.len() == 1 || chars <= PORTION_CHARS_MAX, "{chars}");
            prop_assert!(later.is_empty() || chars + shown::chars(&later[0]) > PORTION_CHARS_MAX, "as much as fits");
            rest = later;
        }
        prop_assert_eq!(portion(&[]), 0);
    }
}

#[test]
fn what_waits_is_said_at_the_end_of_the_mail() {
    let line = |count, at_least| Rest { count, at_least }.line();
    assert_eq!(line(0, false), None);
    assert_eq!(line(1, false).unwrap(), "(1 more message waits for your next calls)");
    assert_eq!(line(0, true).unwrap(), "(more messages wait for your next calls)");
    assert_eq!(line(7, true).unwrap(), "(at least 7 more messages wait for your next calls)");
    let mail = [outside("x")];
    let showing = Showing { mail: &mail, whole_at: &|_| None, rest: Rest { count: 2, at_least: false } };
    let said = "(2 more messages wait for your next calls)";
    assert!(shown::for_lead(&showing, "[Team state]").ends_with(&format!(" x\n{said}\n[Team state]")));
    assert!(shown::for_teammate(&showing).ends_with(&format!(" x\n\n{said}")));
}
