//! Lines from a pipe, one at a time, when they are asked for.

use std::io::BufRead;
use std::sync::mpsc::Receiver;

use tokio::sync::mpsc::UnboundedSender;

use super::Typed;

pub(super) fn read_lines(asked: &Receiver<()>, typed: &UnboundedSender<Typed>) {
    let mut input = std::io::stdin().lock();
    while asked.recv().is_ok() {
        let line = loop {
            let mut bytes = Vec::new();
            match input.read_until(b'\n', &mut bytes) {
                Ok(0) | Err(_) => break None,
                Ok(_) => {}
            }
            let line = String::from_utf8_lossy(&bytes);
            let line = line.trim_end_matches(['\n', '\r']);
            if !line.trim().is_empty() {
                break Some(line.to_owned());
            }
        };
        // A line is read only after everything before it was said, so it has seen all of it.
        let heard = match line {
            Some(text) => typed.send(Typed::Line { text, seen: u64::MAX }),
            None => typed.send(Typed::Eof),
        };
        if heard.is_err() {
            return;
        }
    }
}
