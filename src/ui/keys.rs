//! What the prompt's keys do, and what is completed.
//!
//! Knows nothing of what becomes of a line. Handlers run on the editor's own thread, between two keys.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{
    Cmd, ConditionalEventHandler, Context, Event, EventContext, EventHandler, Helper, KeyCode, KeyEvent, Modifiers,
    Movement, RepeatCount,
};
use tokio::sync::mpsc::UnboundedSender;

use crate::event::{self, Item, Level};

use super::shared::Shared;
use super::{Typed, tty};

/// A second Ctrl-C at an empty idle prompt leaves within this time.
const LEAVE_WITHIN: Duration = Duration::from_secs(2);

/// What a key does; `None`: what the editor does with it anyway.
type Act = fn(&Keys, &EventContext) -> Option<Cmd>;

/// What the handlers share with the prompt's thread.
pub(crate) struct Keys {
    pub(crate) shared: Arc<Shared>,
    pub(crate) typed: UnboundedSender<Typed>,
    pub(crate) items: UnboundedSender<Item>,
    /// What had been seen when Enter was pressed.
    pub(crate) seen_at_enter: AtomicU64,
    /// Was the end of input typed, or is the terminal gone?
    pub(crate) end_typed: AtomicBool,
    last_interrupt: Mutex<Option<Instant>>,
    /// The line as it was each time a `\` before Enter went on with it. The editor has no command that could take the
    /// `\` away, so that's done when the line is whole.
    joints: Mutex<Vec<String>>,
}

impl Keys {
    pub(crate) fn new(shared: Arc<Shared>, typed: UnboundedSender<Typed>, items: UnboundedSender<Item>) -> Self {
        Self {
            shared,
            typed,
            items,
            seen_at_enter: AtomicU64::new(0),
            end_typed: AtomicBool::new(false),
            last_interrupt: Mutex::new(None),
            joints: Mutex::new(Vec::new()),
        }
    }

    /// Binds them all.
    pub(crate) fn bind<H: Helper, I: rustyline::history::History>(
        self: &Arc<Self>,
        editor: &mut rustyline::Editor<H, I>,
    ) {
        let bound: [(KeyEvent, Act); 4] = [
            (KeyEvent(KeyCode::Enter, Modifiers::NONE), Keys::enter),
            (KeyEvent::ctrl('C'), Keys::interrupt),
            (KeyEvent::ctrl('D'), Keys::end),
            (KeyEvent::ctrl('Z'), Keys::suspend),
        ];
        for (key, act) in bound {
            let keys = Arc::clone(self);
            editor.bind_sequence(key, EventHandler::Conditional(Box::new(Bound { keys, act })));
        }
        editor.bind_sequence(KeyEvent(KeyCode::Enter, Modifiers::ALT), Cmd::Newline);
        editor.bind_sequence(KeyEvent::ctrl('J'), Cmd::Newline);
    }

    /// Says something of the interface's own; it has no place in the session's order, hence seq 0.
    pub(crate) fn say(&self, level: Level, text: &str) {
        let event = event::Event::Notice { level, text: text.to_owned() };
        // When the printer is gone nobody is there to read it.
        let _ = self.items.send(Item { seq: 0, time: String::new(), event });
    }

    /// Takes the `\` away wherever one before Enter went on with this line.
    pub(crate) fn joined(&self, line: &str) -> String {
        let joints = self.joints.lock().map(|mut joints| std::mem::take(&mut *joints));
        let mut line = line.to_owned();
        for joint in joints.unwrap_or_default().iter().rev() {
            // A line that was changed before the joint since then keeps it: it's visible and harmless.
            if line.strip_prefix(joint.as_str()).is_some_and(|rest| rest.starts_with('\n')) {
                line.remove(joint.len() - 1);
            }
        }
        line
    }

    #[allow(clippy::unnecessary_wraps, reason = "every key answers in one shape")]
    fn enter(&self, ctx: &EventContext) -> Option<Cmd> {
        if ctx.line().ends_with('\\') && ctx.pos() == ctx.line().len() {
            if let Ok(mut joints) = self.joints.lock() {
                joints.push(ctx.line().to_owned());
            }
            return Some(Cmd::Newline);
        }
        self.shared.doorway.shut();
        // Here and not after `readline`: nothing can be shown between this key and this line.
        self.seen_at_enter.store(self.shared.seen(), Ordering::SeqCst);
        Some(Cmd::AcceptLine)
    }

    #[allow(clippy::unnecessary_wraps, reason = "every key answers in one shape")]
    fn interrupt(&self, ctx: &EventContext) -> Option<Cmd> {
        if self.shared.lead_works() {
            let _ = self.typed.send(Typed::Interrupt);
            return Some(Cmd::Noop);
        }
        if !ctx.line().is_empty() {
            return Some(Cmd::Kill(Movement::WholeBuffer));
        }
        let now = Instant::now();
        let last = self.last_interrupt.lock().ok().and_then(|mut last| last.replace(now));
        if last.is_some_and(|last| now.duration_since(last) <= LEAVE_WITHIN) {
            let _ = self.typed.send(Typed::Leave);
        } else {
            self.say(Level::Info, "(press Ctrl-C again to exit)");
        }
        Some(Cmd::Noop)
    }

    fn end(&self, ctx: &EventContext) -> Option<Cmd> {
        if !ctx.line().is_empty() {
            return None;
        }
        self.end_typed.store(true, Ordering::SeqCst);
        self.shared.doorway.shut();
        Some(Cmd::EndOfFile)
    }

    #[allow(clippy::unnecessary_wraps, clippy::unused_self, reason = "every key answers in one shape")]
    fn suspend(&self, _ctx: &EventContext) -> Option<Cmd> {
        tty::suspend();
        Some(Cmd::Repaint)
    }
}

struct Bound {
    keys: Arc<Keys>,
    act: Act,
}

impl ConditionalEventHandler for Bound {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, ctx: &EventContext) -> Option<Cmd> {
        (self.act)(&self.keys, ctx)
    }
}

/// Completion of commands, and the look of the edited line.
pub(crate) struct Assistant {
    pub(crate) keys: Arc<Keys>,
    pub(crate) commands: Vec<String>,
    pub(crate) color: bool,
}

impl Assistant {
    /// The commands that begin as the line does; none once an argument begins.
    fn matching<'a>(&'a self, line: &'a str) -> impl Iterator<Item = &'a String> {
        let is_command = line.starts_with('/') && !line.contains(char::is_whitespace);
        self.commands.iter().filter(move |command| is_command && command.starts_with(line))
    }
}

impl Helper for Assistant {}
impl Validator for Assistant {}

impl Completer for Assistant {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let matching: Vec<&String> = self.matching(&line[..pos]).collect();
        let Some(first) = matching.first() else {
            return Ok((0, Vec::new()));
        };
        if matching.len() == 1 {
            return Ok((0, vec![(*first).clone()]));
        }
        // One candidate at most: the editor's own list would hold back what is printed until the next key.
        let list: Vec<&str> = matching.iter().map(|command| command.as_str()).collect();
        self.keys.say(Level::Info, &list.join("  "));
        let common = (pos..=first.len())
            .filter(|end| first.is_char_boundary(*end))
            .take_while(|end| matching.iter().all(|command| command.starts_with(&first[..*end])))
            .last();
        Ok((0, common.map(|end| first[..end].to_owned()).into_iter().collect()))
    }
}

impl Hinter for Assistant {
    type Hint = String;

    fn hint(&self, line: &str, pos: usize, _: &Context<'_>) -> Option<String> {
        let mut matching = self.matching(line);
        let only = matching.next().filter(|_| pos == line.len() && pos > 1)?;
        let rest = only[line.len()..].to_owned();
        (matching.next().is_none() && !rest.is_empty()).then_some(rest)
    }
}

impl Highlighter for Assistant {
    /// Control characters that were pasted take no column and are not obeyed.
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if line.contains(is_control) { Cow::Owned(line.replace(is_control, "")) } else { Cow::Borrowed(line) }
    }

    /// Called whenever the prompt is drawn, so also as the first sign that the editor takes prints.
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        tty::prompt_stands(true);
        self.keys.shared.doorway.drawn();
        if self.color { Cow::Owned(format!("\x1b[1m{prompt}\x1b[0m")) } else { Cow::Borrowed(prompt) }
    }

    fn highlight_hint<'h>(&self, hint: &'h str) -> Cow<'h, str> {
        if self.color { Cow::Owned(format!("\x1b[2m{hint}\x1b[0m")) } else { Cow::Borrowed(hint) }
    }
}

/// A control character that has no meaning in a line.
pub(crate) fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}
