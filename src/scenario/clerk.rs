//! Takes requests down, judges them and picks their replies: all of the server that needs no connection.
//!
//! Knows nothing of sockets; time comes in as an argument.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Scenario;
use super::conversation::Conversation;
use super::reply::Reply;
use super::rule::Question;
use super::strict::{self, Prefix};

const UNMATCHED_CHARS_MAX: usize = 120;

/// How a scenario is served.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    /// Decides the random delays, whatever the order in which requests come.
    pub seed: u64,
    /// The longest random delay before a reply; zero for none.
    pub delay_max: Duration,
    /// The time between two pieces of a streamed reply where its rule doesn't set one, so that a person sees it grow.
    pub piece_delay: Duration,
    /// Answer a request that has faults with 400; otherwise they are only noted.
    pub strict: bool,
    /// Keep each request's headers and body for [`super::Running::requests`].
    pub record: bool,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { seed: 0, delay_max: Duration::ZERO, piece_delay: Duration::ZERO, strict: true, record: true }
    }
}

/// A request that came.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The header `x-s15-agent`; empty when it was missing.
    pub agent: String,
    /// The header `x-s15-call`; 0 when it was missing or no number.
    pub call: u64,
    /// This agent's how-manieth request in its session, from 1; counts retries.
    pub n: u64,
    /// All headers, names in lower case; empty unless [`ServeOptions::record`].
    pub headers: BTreeMap<String, String>,
    /// The body; null when it is no JSON, or unless [`ServeOptions::record`].
    pub body: Value,
    /// The body's length in bytes.
    pub raw_len: usize,
    /// When its last byte was read.
    pub at: Instant,
    /// When the last byte of the answer was written; `None` while it isn't, or when the client went away.
    pub answered: Option<Instant>,
}

/// The server's memory.
#[derive(Debug)]
pub(crate) struct Clerk {
    scenario: Scenario,
    options: ServeOptions,
    agents: HashMap<(String, String), Seen>,
    used: HashMap<usize, u64>,
    faults: Vec<String>,
    recorded: Vec<Recorded>,
    unmatched: Vec<String>,
}

/// What is known of one agent of one session.
#[derive(Debug, Default)]
struct Seen {
    requests: u64,
    prefix: Option<Prefix>,
}

/// A request that was judged.
#[derive(Debug)]
pub(crate) struct Admitted {
    /// Its place in the records.
    pub(super) place: usize,
    /// This agent's how-manieth request, from 1.
    pub(super) n: u64,
    /// How many of its bytes stood in the request before it.
    pub(super) cached_bytes: usize,
    /// What is wrong with it.
    pub(crate) faults: Vec<String>,
    pub(super) body: Value,
}

impl Clerk {
    pub(crate) fn new(scenario: Scenario, options: ServeOptions) -> Self {
        Self {
            scenario,
            options,
            agents: HashMap::new(),
            used: HashMap::new(),
            faults: Vec::new(),
            recorded: Vec::new(),
            unmatched: Vec::new(),
        }
    }

    pub(super) fn faults(&self) -> &[String] {
        &self.faults
    }

    pub(crate) fn unmatched(&self) -> &[String] {
        &self.unmatched
    }

    pub(super) fn recorded(&self) -> &[Recorded] {
        &self.recorded
    }

    /// Notes that the last byte of an answer was written.
    pub(super) fn answered(&mut self, place: usize, at: Instant) {
        if let Some(recorded) = self.recorded.get_mut(place) {
            recorded.answered = Some(at);
        }
    }

    /// Judges a request and takes it down.
    pub(crate) fn admit(&mut self, headers: &BTreeMap<String, String>, raw: &[u8], at: Instant) -> Admitted {
        let header = |name: &str| headers.get(name).cloned().unwrap_or_default();
        let agent = header("x-s15-agent");
        let mut faults = strict::header_faults(headers);
        let body = match serde_json::from_slice(raw) {
            Ok(body) => {
                faults.extend(strict::body_faults(&body));
                body
            }
            Err(error) => {
                faults.push(format!("the body is no JSON: {error}"));
                Value::Null
            }
        };
        let of_session = (header("x-s15-session"), agent.clone());
        let seen = self.agents.entry(of_session).or_default();
        seen.requests += 1;
        let n = seen.requests;
        let cached_bytes = seen.check_prefix(&header("x-s15-purpose"), raw, &mut faults);
        let named = |fault: &String| format!("{agent} request {n}: {fault}");
        self.faults.extend(faults.iter().map(named));
        let (kept_headers, kept_body) = match self.options.record {
            true => (headers.clone(), body.clone()),
            false => Default::default(),
        };
        self.recorded.push(Recorded {
            call: header("x-s15-call").parse().unwrap_or_default(),
            agent,
            n,
            headers: kept_headers,
            body: kept_body,
            raw_len: raw.len(),
            at,
            answered: None,
        });
        let place = self.recorded.len() - 1;
        Admitted { place, n, cached_bytes, faults, body }
    }

    /// The reply of the first rule that takes the request, or the fallback.
    pub(crate) fn choose(&mut self, headers: &BTreeMap<String, String>, admitted: &Admitted) -> Reply {
        let header = |name: &str| headers.get(name).map(String::as_str);
        let conversation = Conversation::new(&admitted.body);
        let question = Question {
            agent: header("x-s15-agent").unwrap_or_default(),
            purpose: header("x-s15-purpose"),
            n: admitted.n,
            conversation: &conversation,
        };
        for (index, rule) in self.scenario.rules.iter().enumerate() {
            let used = self.used.entry(index).or_default();
            if !rule.has_uses_left(*used) {
                continue;
            }
            if let Some(captures) = rule.takes(&question) {
                *used += 1;
                return rule.reply(&captures, &conversation);
            }
        }
        let last = conversation.last().map_or("", |entry| entry.text.as_str());
        let beginning: String = last.chars().take(UNMATCHED_CHARS_MAX).collect();
        let (agent, n) = (question.agent, question.n);
        self.unmatched.push(format!("{agent} request {n}: {beginning}"));
        self.scenario.fallback(agent, &conversation)
    }

    /// How long the reply is held back at random: decided by seed, agent and number alone.
    pub(super) fn random_delay(&self, agent: &str, n: u64) -> Duration {
        let longest = u64::try_from(self.options.delay_max.as_micros()).unwrap_or(u64::MAX);
        let mut mixed = self.options.seed;
        for byte in agent.bytes().map(u64::from).chain([n]) {
            mixed = mix(mixed ^ byte);
        }
        Duration::from_micros(mixed % longest.saturating_add(1))
    }
}

impl Seen {
    /// Compares with the request before; gives how many bytes a server could have cached.
    fn check_prefix(&mut self, purpose: &str, raw: &[u8], faults: &mut Vec<String>) -> usize {
        match purpose {
            // After a compaction the history begins anew.
            "compact" => {
                self.prefix = None;
                0
            }
            "probe" => 0,
            _ => {
                let prefix = Prefix::of(raw);
                let cached = self.prefix.as_ref().map_or(0, Prefix::bytes);
                if let Some(earlier) = &self.prefix {
                    faults.extend(prefix.faults_after(earlier));
                }
                self.prefix = Some(prefix);
                cached
            }
        }
    }
}

/// Spreads a number over all 64 bits (the finishing step of splitmix64).
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
