//! The program from outside: one module a behaviour.

mod harness;
mod tidy;
