//! Decides which tool call a piece of one belongs to.
//!
//! Knows nothing of which tools exist or of what their arguments mean.

use serde_json::{Map, Value};

use super::DraftCall;

/// The calls of a reply in the making, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls(Vec<Open>);

#[derive(Debug)]
struct Open {
    index: Option<u64>,
    call: DraftCall,
}

/// What a piece says about the call it belongs to.
struct Piece<'a> {
    index: Option<u64>,
    id: &'a str,
    name: &'a str,
    /// As text, whatever form it came in.
    arguments: String,
    value: &'a Value,
}

/// Where a piece goes.
enum Place {
    /// To the call at this position.
    At(usize),
    /// It begins a new one.
    New,
    /// Nowhere: it says again what was said.
    Repeat,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Takes the list of one chunk.
    pub(super) fn feed(&mut self, pieces: &[Value]) {
        let begun_before = self.0.len();
        for value in pieces.iter().filter(|value| value.is_object()) {
            let piece = Piece::of(value);
            match self.place(&piece, begun_before) {
                Place::At(at) => self.0[at].take(&piece),
                Place::New => {
                    let mut open = Open { index: piece.index, call: DraftCall::default() };
                    open.take(&piece);
                    self.0.push(open);
                }
                Place::Repeat => {}
            }
        }
    }

    /// The calls; a piece that said nothing at all was none.
    pub(super) fn into_drafts(self) -> Vec<DraftCall> {
        let says = |call: &DraftCall| !(call.id.is_empty() && call.name.is_empty() && call.arguments.is_empty());
        self.0.into_iter().map(|open| open.call).filter(says).collect()
    }

    /// `begun_before`: how many calls there were before this chunk; two entries of one list are never the same call
    /// unless an index or an id says so.
    fn place(&self, piece: &Piece<'_>, begun_before: usize) -> Place {
        let last = |fits: &dyn Fn(&Open) -> bool| self.0.iter().rposition(fits);
        let found = match (piece.index, piece.id) {
            (Some(_), "") => last(&|open| open.index == piece.index),
            (Some(_), id) => last(&|open| open.call.id == id && open.index.is_none_or(|_| open.index == piece.index))
                .or_else(|| last(&|open| open.index == piece.index && open.call.id.is_empty())),
            (None, "") => self.0.len().checked_sub(1).filter(|&at| at < begun_before || piece.name.is_empty()),
            (None, id) => last(&|open| open.call.id == id),
        };
        let Some(at) = found else { return Place::New };
        let open = &self.0[at];
        if piece.begins_anew(&open.call) {
            let same = !piece.id.is_empty()
                && piece.id == open.call.id
                && piece.index == open.index
                && piece.name == open.call.name
                && piece.arguments == open.call.arguments;
            return if same && piece.index.is_some() { Place::Repeat } else { Place::New };
        }
        // Without index and id a name is the only sign of a new call.
        let renamed =
            piece.index.is_none() && piece.id.is_empty() && !piece.name.is_empty() && piece.name != open.call.name;
        if renamed { Place::New } else { Place::At(at) }
    }
}

impl<'a> Piece<'a> {
    fn of(value: &'a Value) -> Self {
        let function = &value["function"];
        let arguments = match &function["arguments"] {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        Self {
            index: value["index"].as_u64(),
            id: value["id"].as_str().unwrap_or_default().trim(),
            name: function["name"].as_str().unwrap_or_default(),
            arguments,
            value,
        }
    }

    /// Does the piece begin a call of its own, although its index or id points at one that is already whole?
    fn begins_anew(&self, call: &DraftCall) -> bool {
        let fills_placeholder = !self.id.is_empty() && self.id == call.id && is_placeholder(&call.arguments);
        !fills_placeholder
            && !self.name.is_empty()
            && self.arguments.trim_start().starts_with('{')
            && is_whole(&call.arguments)
    }
}

impl Open {
    fn take(&mut self, piece: &Piece<'_>) {
        let call = &mut self.call;
        if self.index.is_none() {
            self.index = piece.index;
        }
        if call.id.is_empty() {
            piece.id.clone_into(&mut call.id);
        }
        take_name(call, piece.name);
        if is_placeholder(&call.arguments) && piece.arguments.trim_start().starts_with('{') {
            call.arguments.clone_from(&piece.arguments);
        } else {
            call.arguments.push_str(&piece.arguments);
        }
        keep_unknown(&mut call.extra, piece.value, &["index", "id", "type", "function"]);
        keep_unknown(&mut call.function_extra, &piece.value["function"], &["name", "arguments"]);
    }
}

/// A name comes once, or again with every piece, or (rarely) in pieces before any arguments.
fn take_name(call: &mut DraftCall, name: &str) {
    if name.is_empty() || name == call.name || !call.arguments.is_empty() {
        if call.name.is_empty() {
            name.clone_into(&mut call.name);
        }
        return;
    }
    if name.starts_with(call.name.as_str()) {
        name.clone_into(&mut call.name);
    } else {
        call.name.push_str(name);
    }
}

fn keep_unknown(kept: &mut Map<String, Value>, value: &Value, known: &[&str]) {
    for (key, value) in value.as_object().into_iter().flatten() {
        if !known.contains(&key.as_str()) && !value.is_null() {
            kept.insert(key.clone(), value.clone());
        }
    }
}

/// An empty object stands for "nothing yet" where more follows.
fn is_placeholder(arguments: &str) -> bool {
    arguments == "{}"
}

/// Is the text one whole JSON object? The cheap look first: this runs for every piece that repeats the name.
fn is_whole(arguments: &str) -> bool {
    let text = arguments.trim();
    text.starts_with('{') && text.ends_with('}') && serde_json::from_str::<Map<String, Value>>(text).is_ok()
}
