//! x
pub mod event;
pub mod journal;
pub mod model;
pub mod protocol;
