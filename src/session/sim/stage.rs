//! What everybody in a simulated run shares: chance, the log, the clock, and what stands on the screen.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::event::Item;
use crate::journal::Events;
use crate::model;
use crate::seam::Defect;

use super::chance::Chance;
use super::faults::{Counts, Fault, Weather};
use super::log::{Ask, Entry, Seen};
use super::screen::Screen;

/// The server's key.
pub(super) const KEY: &str = "sk-simulated-0123456789";
/// What stands in its place where it is hidden.
const HIDDEN: &str = "[key hidden]";

/// One run's shared things. All of it is used on one thread; the locks are held for a moment each.
pub(super) struct Stage {
    pub(super) defect: Option<Defect>,
    pub(super) weather: Weather,
    pub(super) chance: Chance,
    log: Mutex<Vec<Entry>>,
    pub(super) scene: Mutex<Scene>,
}

/// What changes.
#[derive(Default)]
pub(super) struct Scene {
    pub(super) life: u32,
    /// Virtual time before this life.
    pub(super) before: Duration,
    /// When this life began.
    pub(super) begun: Option<Instant>,
    /// How far the wall clock is off, in seconds.
    pub(super) jumped: i64,
    pub(super) ids: u64,
    pub(super) screen: Screen,
    /// What the models still do.
    pub(super) actions_left: usize,
    /// What the user still does.
    pub(super) lines_left: usize,
    /// The next number of each sender.
    pub(super) numbers: BTreeMap<String, u64>,
    pub(super) counts: Counts,
    pub(super) hint: Option<Arc<Notify>>,
    pub(super) events: Option<Events>,
    /// Lines in mailboxes that are begun: the rest of each, and its text.
    pub(super) halves: BTreeMap<String, (String, Option<String>)>,
    /// The world around has nothing more in store.
    pub(super) calm: bool,
    /// Until when each disk is full.
    pub(super) full_until: [Duration; 3],
    pub(super) steps: u64,
    /// When the last step was, and how many there were at that time.
    pub(super) pace: (Duration, u64),
    pub(super) kill_at_step: Option<u64>,
    pub(super) killed: bool,
    /// Did the last life end before its journal was whole?
    pub(super) unrecorded: bool,
    /// Each agent's last request.
    histories: BTreeMap<String, Vec<Value>>,
}

impl Stage {
    pub(super) fn new(seed: u64, defect: Option<Defect>) -> Self {
        let chance = Chance::new(seed);
        let weather = Weather::of(&chance);
        Self { defect, weather, chance, log: Mutex::default(), scene: Mutex::default() }
    }

    pub(super) fn scene(&self) -> MutexGuard<'_, Scene> {
        self.scene.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Virtual time since the first life began.
    pub(super) fn elapsed(&self) -> Duration {
        let scene = self.scene();
        scene.before + scene.begun.map_or(Duration::ZERO, |begun| begun.elapsed())
    }

    /// How much was seen.
    pub(super) fn entries(&self) -> usize {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    pub(super) fn saw(&self, what: Seen) {
        let at = self.elapsed();
        let life = self.scene().life;
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(Entry { at, life, what });
    }

    /// All that was seen.
    pub(super) fn take_log(&self) -> Vec<Entry> {
        std::mem::take(&mut self.log.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn saw_item(&self, item: &Item) {
        let at = self.elapsed();
        self.scene().screen.show(item, at);
        self.saw(Seen::Item(item.clone()));
    }

    pub(super) fn fault(&self, fault: Fault) {
        *self.scene().counts.entry(fault).or_default() += 1;
        self.saw(Seen::Fault(fault));
    }

    /// Is the weather bad enough for something that goes wrong so often?
    pub(super) fn goes_wrong(&self, per_mille: usize) -> bool {
        let roughness = self.weather.roughness;
        self.chance.below(100_000) < per_mille * roughness
    }

    /// A text that nobody else says: `#auth:7#`.
    pub(super) fn word(&self, sender: &str) -> String {
        let mut scene = self.scene();
        let number = scene.numbers.entry(sender.to_owned()).or_default();
        *number += 1;
        format!("#{sender}:{number}#")
    }

    /// Uses up one action, if there is one left.
    pub(super) fn may_act(&self) -> bool {
        let mut scene = self.scene();
        let may = scene.actions_left > 0;
        scene.actions_left = scene.actions_left.saturating_sub(1);
        may
    }

    pub(super) fn saw_ask(&self, ask: &model::Ask<'_>, resend: u32) {
        let messages = ask.history.messages();
        let agent = ask.agent.as_str().to_owned();
        let mut scene = self.scene();
        let known = scene.histories.entry(agent.clone()).or_default();
        let before = known.len();
        let hidden: Vec<Value>;
        let messages = if self.weather.key {
            hidden = messages.iter().map(hide).collect();
            hidden.as_slice()
        } else {
            messages
        };
        let kept = known.iter().zip(messages).take_while(|(known, now)| known == now).count();
        let new = messages[kept..].to_vec();
        known.truncate(kept);
        known.extend(new.iter().cloned());
        drop(scene);
        let open = ask.history.open_calls().len();
        self.saw(Seen::Ask(Ask { agent, call: ask.call, resend, before, kept, new, open }));
    }
}

/// A message as it is in the journal.
fn hide(message: &Value) -> Value {
    let text = message.to_string();
    if text.contains(KEY) { serde_json::from_str(&text.replace(KEY, HIDDEN)).unwrap() } else { message.clone() }
}
