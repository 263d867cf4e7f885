//! Requests that wait for an answer: a table with one `resolve`. The first answer of the right one wins; a second is told so.

use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::name::AgentName;

/// The kinds of request. A further protocol adds its word here, and its prompt in `prompts/notices/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestType {
    /// A plan waits for its review.
    Plan,
    /// A teammate is asked to end.
    Shutdown,
}

/// Where a request stands. Anything but `Pending` is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestStatus {
    /// Waits for its answer.
    Pending,
    /// Answered with yes.
    Approved,
    /// Answered with no.
    Rejected,
    /// Ended without an answer.
    Expired,
}

/// One request. Its serialised form is the view in `.team/requests/<id>.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// UUIDv7.
    pub id: Uuid,
    /// Which protocol.
    #[serde(rename = "type")]
    pub kind: RequestType,
    /// Who asks.
    pub from: AgentName,
    /// Who is to answer.
    pub to: AgentName,
    /// Where it stands.
    pub status: RequestStatus,
    /// What is asked: the plan, or the reason for a shutdown.
    pub payload: String,
    /// What the answer said besides yes or no.
    pub feedback: Option<String>,
    /// The version of the asker's (plan) or addressee's (shutdown) work that it belongs to.
    pub work: u32,
    /// RFC 3339.
    pub created: String,
    /// RFC 3339; `None` while pending.
    pub resolved: Option<String>,
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The request that is answered.
    pub id: Uuid,
    /// The kind that the answerer takes it for.
    pub kind: RequestType,
    /// Who answers.
    pub by: AgentName,
    /// Yes or no.
    pub approve: bool,
    /// Said besides.
    pub feedback: Option<String>,
    /// RFC 3339.
    pub at: String,
}

/// Why an answer was not applied; the text tells the answerer what holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolveError {
    /// No such request.
    Unknown(Uuid),
    /// It is of the other kind.
    WrongKind(Uuid, RequestType),
    /// Somebody else is to answer it.
    NotAddressee(Uuid, AgentName),
    /// It has ended already.
    Settled(Uuid, RequestStatus),
}

/// All requests of a session, oldest first.
#[derive(Clone, Debug, Default)]
pub struct RequestTable {
    requests: Vec<Request>,
}

impl RequestTable {
    /// The requests of a session that is resumed, oldest first.
    #[must_use]
    pub fn restored(requests: Vec<Request>) -> Self {
        Self { requests }
    }

    /// Opens a request; it must be pending and new.
    pub fn open(&mut self, request: Request) {
        debug_assert_eq!(request.status, RequestStatus::Pending);
        debug_assert!(self.get(request.id).is_none(), "request ids are never used twice");
        self.requests.push(request);
    }

    /// Applies an answer: takes the request if it is pending, of that kind, and addressed to the answerer (or answered by the user).
    ///
    /// # Errors
    /// [`ResolveError`]; nothing has changed then.
    pub fn resolve(&mut self, answer: Answer) -> Result<&Request, ResolveError> {
        let Some(request) = self.requests.iter_mut().find(|request| request.id == answer.id) else {
            return Err(ResolveError::Unknown(answer.id));
        };
        if request.kind != answer.kind {
            return Err(ResolveError::WrongKind(request.id, request.kind));
        }
        if request.to != answer.by && answer.by != AgentName::user() {
            return Err(ResolveError::NotAddressee(request.id, request.to.clone()));
        }
        if request.status != RequestStatus::Pending {
            return Err(ResolveError::Settled(request.id, request.status));
        }
        request.status = if answer.approve { RequestStatus::Approved } else { RequestStatus::Rejected };
        request.feedback = answer.feedback;
        request.resolved = Some(answer.at);
        Ok(request)
    }

    /// Ends every pending request that `ends` picks, and gives them.
    pub fn expire(&mut self, at: &str, ends: impl Fn(&Request) -> bool) -> Vec<Request> {
        let mut expired = Vec::new();
        for request in &mut self.requests {
            if request.status == RequestStatus::Pending && ends(request) {
                request.status = RequestStatus::Expired;
                request.resolved = Some(at.to_owned());
                expired.push(request.clone());
            }
        }
        expired
    }

    /// The request with this id.
    #[must_use]
    pub fn get(&self, id: Uuid) -> Option<&Request> {
        self.requests.iter().find(|request| request.id == id)
    }

    /// The request whose id begins with `prefix` (at least 4 characters), if exactly one does.
    #[must_use]
    pub fn find(&self, prefix: &str) -> Option<&Request> {
        let prefix = prefix.trim().trim_end_matches('…').to_ascii_lowercase();
        if prefix.len() < 4 {
            return None;
        }
        let mut hits = self.requests.iter().filter(|request| {
            let id = request.id.to_string();
            id.starts_with(&prefix) || short(request.id) == prefix
        });
        let hit = hits.next()?;
        hits.next().is_none().then_some(hit)
    }

    /// All requests, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter()
    }

    /// The pending ones, oldest first.
    pub fn pending(&self) -> impl Iterator<Item = &Request> {
        self.requests.iter().filter(|request| request.status == RequestStatus::Pending)
    }
}

/// The last eight hex digits of an id. The first ones of a UUIDv7 are its time, which requests of one minute share.
#[must_use]
pub fn short(id: Uuid) -> String {
    let text = id.simple().to_string();
    text[text.len() - 8..].to_owned()
}

impl RequestType {
    /// What its reader is told to do, after what is asked.
    #[must_use]
    pub fn notice(self) -> &'static str {
        match self {
            Self::Plan => include_str!("../../prompts/notices/plan.md").trim_ascii_end(),
            Self::Shutdown => include_str!("../../prompts/notices/shutdown.md").trim_ascii_end(),
        }
    }

    /// Its word in views and texts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Shutdown => "shutdown",
        }
    }
}

impl RequestStatus {
    /// Its word in views and texts.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Approved => "approved",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
        }
    }
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(id) => write!(f, "there is no request {id}; list_requests shows those that exist"),
            Self::WrongKind(id, kind) => write!(f, "request {id} is a {} request, not one of this kind", kind.word()),
            Self::NotAddressee(id, to) => {
                write!(f, "request {id} is not yours to answer; it waits for {to}")
            }
            Self::Settled(id, status) => {
                write!(f, "request {id} is already settled: {}; nothing changed", status.word())
            }
        }
    }
}

impl std::error::Error for ResolveError {}
