//! Agents that only talk to each other: counted, so that it is noticed, said once, and slowed.
//!
//! Two models can thank each other for ever, and each message is paid for twice. Work ends such a count; talk goes on with it.

use super::name::AgentName;

/// So many messages between two agents, with nothing else done by either, are noticed.
pub const NOTICED_AT: u32 = 12;
/// So many of them must have come from each: reports that nobody answers are no talk.
const FROM_EACH_MIN: u32 = 3;
/// What the first message after that costs its sender, in seconds of waiting; it doubles with each.
const PAUSE_FIRST: u64 = 2;
/// The most that it costs.
const PAUSE_MAX: u64 = 60;

/// Who has only talked to whom, and how much.
#[derive(Clone, Debug, Default)]
pub struct Chatter {
    pairs: Vec<Pair>,
}

#[derive(Clone, Debug)]
struct Pair {
    /// Each with the number of its messages to the other.
    sides: [(AgentName, u32); 2],
    /// The messages since it was noticed, that one included; 0 before.
    slowed: u32,
}

/// What a message is to its pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Talk {
    /// One among other things.
    Fine,
    /// The one with which it has become too much, the first of those that cost a pause.
    Noticed {
        /// How many there were.
        messages: u32,
    },
    /// One after that.
    Slowed,
}

impl Chatter {
    /// A message was sent.
    pub fn sent(&mut self, from: &AgentName, to: &AgentName) -> Talk {
        let pair = self.pair_of(from, to);
        pair.sides.iter_mut().filter(|(name, _)| name == from).for_each(|(_, count)| *count += 1);
        let [one, other] = [pair.sides[0].1, pair.sides[1].1];
        if one + other < NOTICED_AT || one.min(other) < FROM_EACH_MIN {
            return Talk::Fine;
        }
        pair.slowed += 1;
        if pair.slowed == 1 { Talk::Noticed { messages: one + other } } else { Talk::Slowed }
    }

    /// For how many seconds the sender of the last message between these two waits; 0 for most.
    #[must_use]
    pub fn pause(&self, one: &AgentName, other: &AgentName) -> u64 {
        let slowed = self.pairs.iter().find(|pair| pair.is_of(one, other)).map_or(0, |pair| pair.slowed);
        match slowed {
            0 => 0,
            // Doubling overflows long after it has reached the most.
            1..=6 => PAUSE_MAX.min(PAUSE_FIRST << (slowed - 1)),
            7.. => PAUSE_MAX,
        }
    }

    /// An agent did something else: it doesn't only talk.
    pub fn acted(&mut self, name: &AgentName) {
        self.pairs.retain(|pair| pair.sides.iter().all(|(side, _)| side != name));
    }

    fn pair_of(&mut self, one: &AgentName, other: &AgentName) -> &mut Pair {
        let at = self.pairs.iter().position(|pair| pair.is_of(one, other)).unwrap_or_else(|| {
            self.pairs.push(Pair { sides: [(one.clone(), 0), (other.clone(), 0)], slowed: 0 });
            self.pairs.len() - 1
        });
        &mut self.pairs[at]
    }
}

impl Pair {
    fn is_of(&self, one: &AgentName, other: &AgentName) -> bool {
        [one, other].iter().all(|name| self.sides.iter().any(|(side, _)| side == *name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> AgentName {
        AgentName::parse(text).unwrap()
    }

    /// Sends as many messages each way by turns; what each was.
    fn talk(chatter: &mut Chatter, one: &str, other: &str, times: usize) -> Vec<Talk> {
        let (one, other) = (name(one), name(other));
        (0..times)
            .map(|turn| if turn % 2 == 0 { chatter.sent(&one, &other) } else { chatter.sent(&other, &one) })
            .collect()
    }

    #[test]
    fn talk_that_nothing_comes_of_is_noticed_once_and_costs_more_and_more() {
        let mut chatter = Chatter::default();
        let said = talk(&mut chatter, "auth", "tests", 11);
        assert!(said.iter().all(|talk| *talk == Talk::Fine));
        assert_eq!(talk(&mut chatter, "tests", "auth", 2), [Talk::Noticed { messages: 12 }, Talk::Slowed]);
        assert_eq!(chatter.pause(&name("auth"), &name("tests")), 4);
        let mut last = 0;
        for _ in 0..100 {
            talk(&mut chatter, "auth", "tests", 1);
            let pause = chatter.pause(&name("tests"), &name("auth"));
            assert!((last..=PAUSE_MAX).contains(&pause));
            last = pause;
        }
        assert_eq!(last, PAUSE_MAX);
        assert_eq!(chatter.pause(&name("auth"), &name("docs")), 0, "nobody else pays for it");
    }

    #[test]
    fn work_by_either_ends_the_count() {
        let mut chatter = Chatter::default();
        talk(&mut chatter, "auth", "tests", 20);
        chatter.acted(&name("docs"));
        assert_eq!(talk(&mut chatter, "auth", "tests", 1), [Talk::Slowed]);
        chatter.acted(&name("tests"));
        assert_eq!(chatter.pause(&name("auth"), &name("tests")), 0);
        assert_eq!(talk(&mut chatter, "auth", "tests", 11), [Talk::Fine; 11]);
    }

    #[test]
    fn reports_that_nobody_answers_are_no_talk() {
        let mut chatter = Chatter::default();
        for _ in 0..100 {
            assert_eq!(chatter.sent(&name("auth"), &AgentName::lead()), Talk::Fine);
        }
        for _ in 0..2 {
            assert_eq!(chatter.sent(&AgentName::lead(), &name("auth")), Talk::Fine);
        }
        assert_eq!(chatter.sent(&AgentName::lead(), &name("auth")), Talk::Noticed { messages: 103 });
    }
}
