//! Calls of a reply on their way to a result, also those that an earlier run began and did not finish.

use std::collections::HashMap;

use crate::model::{CallSlot, History};

use super::CallEnd;

/// What is known of a call before it is run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Before {
    /// The reply has just come.
    #[default]
    Fresh,
    /// An earlier run had the reply and ended before the call began.
    Unstarted,
    /// An earlier run began it and ended before there was a result.
    Started {
        /// What the file was to hold afterwards, if the call replaces one.
        after: Option<String>,
    },
    /// It was carried out whole; only its reader has not heard of it.
    Settled(CallEnd),
}

/// A call without a result.
#[derive(Clone, Debug)]
pub(super) struct OpenCall {
    pub(super) slot: CallSlot,
    pub(super) before: Before,
}

/// Where the turn goes on that an earlier run began.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum GoingOn {
    /// With the next model call.
    #[default]
    Afresh,
    /// With the calls of the last reply that have no result; what is known of each, by its id.
    Calls(HashMap<String, Before>),
    /// The last reply was the turn's last word; only its end was not told.
    Said(String),
    /// A call ended the turn; only its end was not told.
    Yielded,
}

impl OpenCall {
    /// The calls of a reply that has just come.
    pub(super) fn fresh(slots: Vec<CallSlot>) -> Vec<Self> {
        slots.into_iter().map(|slot| Self { slot, before: Before::Fresh }).collect()
    }

    /// The calls of the last reply in a history that have no result.
    pub(super) fn left_in(history: &History, mut known: HashMap<String, Before>) -> Vec<Self> {
        let with_what_is_known = |slot: CallSlot| {
            let before = known.remove(&slot.id).unwrap_or(Before::Unstarted);
            Self { slot, before }
        };
        history.open_slots().into_iter().map(with_what_is_known).collect()
    }
}
