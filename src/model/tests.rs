//! The whole client against a server that sends exact bytes: dialects, streams, failures, requests.
//!
//! Knows nothing of the parts' own tests, which stand beside them.

mod bytes;
mod dialects;
mod ends;
mod failures;
mod real;
mod requests;
