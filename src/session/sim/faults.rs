//! What goes wrong in a simulated run, and how often.

use std::collections::BTreeMap;

use super::chance::Chance;

/// A kind of fault. Over all seeds each must happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fault {
    /// A model call fails for good, and its turn with it.
    ModelFails,
    /// The server limits the rate.
    RateLimited,
    /// The server has a fault of its own.
    ServerFails,
    /// An answer comes after minutes.
    Slow,
    /// No answer comes.
    Silent,
    /// An answer breaks off.
    CutReply,
    /// A reply with calls that no tool can take.
    BadReply,
    /// An agent's task panics.
    Panic,
    /// A mailbox grew and the watch said nothing.
    HintLost,
    /// There is no watch.
    NoWatch,
    /// No room for mail.
    MailFull,
    /// No room for the journal.
    JournalFull,
    /// No room for the workspace's files.
    WorkFull,
    /// The wall clock was set.
    ClockJump,
    /// A line that is no message.
    BadLine,
    /// A line that is finished later than begun.
    TornLine,
    /// Ctrl-C.
    Interrupt,
    /// A yes that was typed before what it seems to answer was shown.
    StaleYes,
    /// The plug was pulled after a step of the session.
    KilledAtStep,
    /// The plug was pulled at some moment.
    KilledAtTime,
    /// The user left in the middle.
    Left,
    /// A model said the server's key.
    KeySaid,
    /// The session ended before its last steps could be recorded.
    Unrecorded,
}

impl Fault {
    pub(super) const ALL: [Self; 23] = [
        Self::ModelFails,
        Self::RateLimited,
        Self::ServerFails,
        Self::Slow,
        Self::Silent,
        Self::CutReply,
        Self::BadReply,
        Self::Panic,
        Self::HintLost,
        Self::NoWatch,
        Self::MailFull,
        Self::JournalFull,
        Self::WorkFull,
        Self::ClockJump,
        Self::BadLine,
        Self::TornLine,
        Self::Interrupt,
        Self::StaleYes,
        Self::KilledAtStep,
        Self::KilledAtTime,
        Self::Left,
        Self::KeySaid,
        Self::Unrecorded,
    ];
}

/// How often each fault happened.
pub(super) type Counts = BTreeMap<Fault, u64>;

/// How a run's weather is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weather {
    /// Out of a hundred chances for a fault, how many are taken.
    pub(super) roughness: usize,
    /// Is there a watch over the mailboxes?
    pub(super) watch: bool,
    /// Do the user's settings confirm every proposal?
    pub(super) yes: bool,
    /// Do the models say the server's key?
    pub(super) key: bool,
}

impl Weather {
    pub(super) fn of(chance: &Chance) -> Self {
        Self {
            roughness: *chance.pick(&[0, 20, 50, 100]),
            watch: !chance.percent(5),
            yes: chance.percent(12),
            key: chance.percent(12),
        }
    }
}
