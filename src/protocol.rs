//! The rules of the team, as pure values: who may be called what, what a message is, how a request ends, when a gate opens.
//!
//! Knows nothing of files, clocks, tasks or terminals: ids and times come in as arguments, decisions go out as values.

pub mod chatter;
pub mod confirm;
pub mod folded;
pub mod gate;
pub mod letters;
pub mod message;
pub mod name;
pub mod portion;
pub mod proposal;
pub mod request;
pub mod returned;
pub mod roster;
pub mod scope;
pub mod shown;
pub mod span;
#[cfg(test)]
mod tests;

pub use gate::{Blocked, Effect, Gate};
pub use letters::Letters;
pub use message::{Mail, MailKey, Message, MessageType, Metadata};
pub use name::{AgentName, NameError};
pub use proposal::{Confirmation, Member, Proposal};
pub use request::{Request, RequestStatus, RequestTable, RequestType};
pub use scope::Scope;
