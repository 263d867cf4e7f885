//! `s15`: a lead agent, its team, and the runtime that delivers their mail, keeps their lifecycles and holds their gates.
//!
//! The modules in reading order, from what decides to what merely does:
//!
//! * [`protocol`]: names, messages, requests, gate, work, proposal. Pure: no I/O, no clock, no await.
//! * [`event`]: the closed set of all that can be shown or journaled.
//! * [`session`]: the one owner of the team's state; every input ends here.
//! * `agent`: the one loop that lead and teammates share.
//! * [`model`], [`tools`], [`mail`], [`journal`]: what the loop reaches the world through.
//! * [`scenario`]: the scripted model server behind the demo and the tests.
//! * [`ui`]: the prompt, the renderer and the printer; a subscriber of events.
//! * [`killpoint`]: where tests pull the plug; nothing in a release build.
//! * [`secrets`]: what the environment held, and who else must not find it there.
//! * [`sandbox`]: what a command may do, and how the system holds it to that.
//! * `seam`: where a simulation stands in for the system; nothing without tests.
//! * [`sessions`]: which there are, read from their journals.
//! * `fence`: the bounds of a run's commands, from its configuration and what the machine has; [`doctor`] tells them.
//! * [`cli`], [`config`], [`lock`], [`run`]: what was typed, what it means, and how the parts are put together.

mod agent;
pub mod cli;
pub mod config;
pub mod demo;
pub mod doctor;
pub mod event;
mod fence;
pub mod journal;
pub mod killpoint;
pub mod lock;
pub mod mail;
pub mod model;
mod private;
pub mod protocol;
pub mod run;
pub mod sandbox;
pub mod scenario;
mod seam;
pub mod secrets;
pub mod session;
pub mod sessions;
pub mod tools;
pub mod ui;
