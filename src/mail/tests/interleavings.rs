//! Inside and outside writers, half lines, held descriptors, drains, acknowledgements and removals, in any order, against a model.

use proptest::prelude::*;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Step {
    /// The runtime sends so many messages in one write.
    Send(usize),
    /// Somebody opens the mailbox and writes two equal lines.
    Outside,
    /// Somebody begins a line by the mailbox' name, and finishes it.
    Half,
    Rest,
    /// Somebody opens the mailbox, writes whole or half lines now and then, and closes it.
    Open,
    Write,
    Close,
    Drain,
    /// What was drained is acknowledged, or the older half of it.
    Acknowledge,
    AcknowledgeSome,
    /// Somebody removes the mailbox with whatever of the runtime's lies in it.
    Remove,
    /// Half lines are old from now on, or aren't.
    Patience(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1..4_usize).prop_map(Step::Send),
        3 => Just(Step::Outside),
        2 => Just(Step::Half),
        2 => Just(Step::Rest),
        2 => Just(Step::Open),
        3 => Just(Step::Write),
        1 => Just(Step::Close),
        4 => Just(Step::Drain),
        3 => Just(Step::Acknowledge),
        1 => Just(Step::AcknowledgeSome),
        1 => Just(Step::Remove),
        1 => any::<bool>().prop_map(Step::Patience),
    ]
}

/// The mailbox and what must come out of it.
struct World {
    folder: tempfile::TempDir,
    post: Post,
    count: usize,
    inside: Vec<String>,
    /// By writer: those who open and close, and the one that keeps its file open. Order is held within each.
    shells: Vec<String>,
    job: Vec<String>,
    half: Option<String>,
    job_file: Option<File>,
    /// What the job has begun and not finished.
    job_half: Option<String>,
    got: Vec<Mail>,
    unacknowledged: Vec<MailKey>,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let post = post(folder.path());
        Self {
            folder,
            post,
            count: 0,
            inside: Vec::new(),
            shells: Vec::new(),
            job: Vec::new(),
            half: None,
            job_file: None,
            job_half: None,
            got: Vec::new(),
            unacknowledged: Vec::new(),
        }
    }

    fn next(&mut self, writer: &str) -> String {
        self.count += 1;
        format!("{writer}{}", self.count)
    }

    /// Does the file that bears the mailbox' name end in somebody's half line? Then whole lines of others would be glued to it.
    fn is_torn(&self) -> bool {
        fs::read(mailbox_path(self.folder.path(), &lead()))
            .is_ok_and(|bytes| !bytes.is_empty() && !bytes.ends_with(b"\n"))
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Send(count) => {
                let contents: Vec<String> = (0..count).map(|_| self.next("i")).collect();
                let batch = contents.iter().map(|content| message(&mut self.post, content)).collect();
                self.post.send(batch).unwrap();
                self.inside.extend(contents);
            }
            Step::Outside if !self.is_torn() => {
                let content = self.next("s");
                outside(self.folder.path(), &format!("{{\"content\":\"{content}\"}}\n").repeat(2));
                self.shells.extend([content.clone(), content]);
            }
            // A half line lives as long as its writer is patient with: the model holds it against those that are not old.
            Step::Half if !self.is_torn() && self.half.is_none() && self.post.patience.torn == LONG => {
                let content = self.next("s");
                outside(self.folder.path(), &format!("{{\"content\":\"{content}"));
                self.half = Some(content);
            }
            Step::Rest => self.finish_half(),
            Step::Open if self.job_file.is_none() => self.job_file = Some(open_mailbox(self.folder.path())),
            Step::Write => self.job_writes(),
            Step::Close if self.job_half.is_none() => self.job_file = None,
            Step::Drain => self.drain(),
            Step::Acknowledge => self.acknowledge(self.unacknowledged.len()),
            Step::AcknowledgeSome => self.acknowledge(self.unacknowledged.len() / 2),
            Step::Remove => self.remove(),
            Step::Patience(old) if self.half.is_none() => {
                self.post.patience.torn = if old { Duration::ZERO } else { LONG };
            }
            Step::Outside | Step::Half | Step::Open | Step::Close | Step::Patience(_) => {}
        }
    }

    fn finish_half(&mut self) {
        if let Some(content) = self.half.take() {
            outside(self.folder.path(), "-rest\"}\n");
            self.shells.push(format!("{content}-rest"));
        }
    }

    /// A whole line, half a line, or the rest of one, in turns. Never into somebody else's half line.
    fn job_writes(&mut self) {
        if self.half.is_some() {
            return;
        }
        let content = self.next("j");
        let Some(file) = &mut self.job_file else { return };
        if let Some(half) = self.job_half.take() {
            file.write_all(b"-rest\"}\n").unwrap();
            self.job.push(format!("{half}-rest"));
        } else if self.count.is_multiple_of(3) {
            write!(file, "{{\"content\":\"{content}").unwrap();
            self.job_half = Some(content);
        } else {
            writeln!(file, "{{\"content\":\"{content}\"}}").unwrap();
            self.job.push(content);
        }
    }

    fn drain(&mut self) {
        let drain = self.post.drain(&lead());
        assert!(drain.set_aside.is_empty() && drain.trouble.is_none(), "{drain:?}");
        self.unacknowledged.extend(keys(&drain));
        self.got.extend(drain.mail);
    }

    fn acknowledge(&mut self, count: usize) {
        let keys: Vec<MailKey> = self.unacknowledged.drain(..count).collect();
        self.post.acknowledge(&lead(), &keys).unwrap();
    }

    /// Only when nothing of an outsider's lies in it unread: that would be lost by their own hand.
    fn remove(&mut self) {
        if self.half.is_none() && self.job_file.is_none() {
            self.drain();
            let content = self.next("i");
            send(&mut self.post, &content);
            self.inside.push(content);
            fs::remove_file(mailbox_path(self.folder.path(), &lead())).unwrap();
        }
    }

    /// Everybody finishes; all is drained and acknowledged.
    fn end(&mut self) {
        self.finish_half();
        if self.job_half.is_some() {
            self.job_writes();
        }
        self.job_file = None;
        self.drain();
        while has_mail(&self.post) {
            self.drain();
            self.acknowledge(self.unacknowledged.len());
        }
        self.acknowledge(self.unacknowledged.len());
    }

    fn got(&self, writer: char) -> Vec<String> {
        let inside = writer == 'i';
        let got = self.got.iter().filter(|mail| matches!(mail, Mail::Inside(_)) == inside);
        got.map(Mail::content).filter(|content| content.starts_with(writer)).map(str::to_owned).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn i1_each_message_exactly_once_and_in_order_of_its_sender(steps in proptest::collection::vec(step(), 0..80)) {
        let mut world = World::new();
        for step in steps {
            world.take(step);
        }
        world.end();
        prop_assert_eq!(world.got('i'), world.inside.clone());
        prop_assert_eq!(world.got('s'), world.shells.clone());
        prop_assert_eq!(world.got('j'), world.job.clone());
        prop_assert_eq!(world.got.len(), world.inside.len() + world.shells.len() + world.job.len());
        let keys: HashSet<MailKey> = world.got.iter().map(Mail::key).collect();
        prop_assert_eq!(keys.len(), world.got.len(), "no key stands for two messages");
        let World { folder, mut post, .. } = world;
        let_go(&mut post, folder.path());
        let left = fs::read(mailbox_path(folder.path(), &lead())).unwrap_or_default();
        prop_assert!(left.is_empty(), "nothing unread is left behind");
    }
}
