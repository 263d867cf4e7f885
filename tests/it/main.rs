//! x
mod harness;
