//! What becomes of mail: returned, referred to, shown in portions.

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
