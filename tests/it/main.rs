//! The program from outside: one module a behaviour.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails")]

mod asking;
mod backlog;
mod bad_input;
mod demo;
mod doctor;
mod endless;
mod expiring;
mod harness;
mod headless;
mod jobs;
mod kills;
mod letters;
mod mail_processes;
mod open;
mod orphans;
mod pty;
mod resume;
mod sandbox;
mod scope;
mod secrets;
mod stopping;
mod team;
mod terminal;
mod tidy;
mod undelivered;
