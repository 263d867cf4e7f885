//! A model without a server: what it says to each request is a value that is played in virtual time.
//!
//! Everything but the request itself is the real client: its limits, its retries, its waits, its cancelling.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use super::accumulate::{Draft, DraftCall, Finish};
use super::client::{Client, ClientSettings, Show};
use super::failure::{Fault, Refusal};
use super::{Ask, Reply, reply};

/// Answers requests.
pub(crate) trait SimulatedModel: Send + Sync {
    /// What comes for this request; `resend`: how often it has been sent before.
    fn answer(&self, ask: &Ask<'_>, resend: u32) -> Answer;
}

/// What comes for one request.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// How long nothing comes.
    pub(crate) first: Duration,
    /// The text, in pieces, each after a pause.
    pub(crate) pieces: Vec<(Duration, String)>,
    /// How long nothing comes before the end.
    pub(crate) last: Duration,
    /// How it ends.
    pub(crate) end: End,
}

/// How an answer ends.
#[derive(Clone, Debug)]
pub(crate) enum End {
    /// As a reply, with these calls: id, name, arguments.
    Reply(Vec<(String, String, String)>),
    /// With a status, and the server's wish to be left alone.
    Status(u16, Option<Duration>),
    /// In the middle.
    Cut,
    /// With a fault of the program.
    Panic,
}

impl Client {
    /// A client whose server is `model`.
    pub(crate) fn simulated(settings: ClientSettings, model: Arc<dyn SimulatedModel>) -> Self {
        let mut client = Self::new(settings).unwrap();
        Arc::get_mut(&mut client.0).unwrap().simulated = Some(model);
        client
    }

    /// One request and its answer, within the limits that a server has.
    pub(super) async fn play(&self, answer: Answer, ask: &Ask<'_>, show: &mut Show<'_>) -> Result<Reply, Fault> {
        let limits = &self.0.settings;
        if answer.first > limits.first_byte_timeout {
            sleep(limits.first_byte_timeout).await;
            return Err(Fault::FirstByte { limit: limits.first_byte_timeout });
        }
        sleep(answer.first).await;
        match &answer.end {
            // Not a panic!, which would print itself.
            End::Panic => std::panic::resume_unwind(Box::new("a fault on purpose")),
            End::Status(status, wish) => {
                let body = json!({"error": {"message": "on purpose"}}).to_string();
                let refusal = Refusal { status: *status, reason: "", body, location: None, wish: *wish };
                return Err(Fault::Status(refusal));
            }
            End::Reply(_) | End::Cut => show.accepted(),
        }
        let mut text = String::new();
        for (pause, piece) in &answer.pieces {
            if *pause > limits.idle_timeout {
                sleep(limits.idle_timeout).await;
                return Err(Fault::Idle { limit: limits.idle_timeout });
            }
            sleep(*pause).await;
            show.text(piece);
            text.push_str(piece);
        }
        sleep(answer.last).await;
        let End::Reply(calls) = answer.end else { return Err(Fault::Cut { detail: "on purpose".to_owned() }) };
        let call = |(id, name, arguments)| DraftCall { id, name, arguments, ..DraftCall::default() };
        let draft = Draft {
            text,
            reasoning: None,
            details: Vec::new(),
            calls: calls.into_iter().map(call).collect(),
            finish: Finish::Done,
            usage: None,
        };
        Ok(reply::from_draft(draft, ask.history))
    }
}
