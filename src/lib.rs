//! x
pub mod event;
pub mod journal;
pub mod mail;
pub mod model;
pub mod protocol;
pub mod scenario;
pub mod tools;
pub mod ui;
