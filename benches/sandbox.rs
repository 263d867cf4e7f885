//! What the sandbox costs a call of bash: the same command with every means that this machine has, in turn with none.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a benchmark that can't go on just ends")]

use std::path::Path;
use std::time::{Duration, Instant};

use s15::sandbox::{Bounds, Ground, Network, Policy, Support, Wanted};
use s15::tools::{BashArgs, LocalCall, Workshop};

/// Calls of each kind; as a test, one.
const ROUNDS: usize = 300;

fn main() {
    let measuring = std::env::args().any(|argument| argument == "--bench");
    let program = Path::new(env!("CARGO_BIN_EXE_s15"));
    let before = Instant::now();
    let support = Support::of_this_machine(program);
    println!("probe: {:?}: {support:?}", before.elapsed());
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    for folder in ["ws/.git/hooks", "ws/.mailboxes", "ws/.team", "ws/src", "tmp", "state/out"] {
        std::fs::create_dir_all(root.join(folder)).unwrap();
    }
    std::fs::write(root.join("ws/.git/config"), "").unwrap();
    let home = std::env::home_dir();
    let policy = |wanted, network| {
        Policy::Confined(Bounds::for_session(&Ground {
            workspace: &root.join("ws"),
            temp: &root.join("tmp"),
            state_dir: &root.join("state"),
            out_dir: &root.join("state/out"),
            settings: None,
            home: home.as_deref(),
            runtime_dir: None,
            opened: &[],
            network,
            means: support.means(wanted),
        }))
    };
    let mut kinds = vec![
        ("none", Policy::Full),
        ("Landlock", policy(Wanted::Landlock, Network::Allowed)),
        ("mounts", policy(Wanted::Namespaces, Network::Allowed)),
        ("mounts and Landlock", policy(Wanted::Auto, Network::Allowed)),
        ("the same, without network", policy(Wanted::Auto, Network::Denied)),
    ];
    kinds.retain(|(_, policy)| policy.bounds().is_none_or(|bounds| bounds.means.any()));
    let workshop = Workshop::new(&root.join("ws"), root.join("state/out"), Duration::from_secs(60)).unwrap();
    let workshop = workshop.guarded_by(program);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let mut times = vec![Vec::new(); kinds.len()];
    for _ in 0..if measuring { ROUNDS } else { 1 } {
        for ((_, policy), times) in kinds.iter().zip(&mut times) {
            let call = BashArgs { command: ":".to_owned(), timeout: None, run_in_background: None };
            let never = Box::pin(std::future::pending());
            let begun = Instant::now();
            let output =
                runtime.block_on(workshop.run_under(Some(policy), LocalCall::Bash(call), never, Box::new(|_| {})));
            times.push(begun.elapsed());
            assert!(output.ok, "{}", output.text);
            // The next guardian has its time to get ready, as it has between a model's calls.
            std::thread::sleep(Duration::from_millis(10));
        }
    }
    let none = median(&mut times[0]);
    for ((name, _), times) in kinds.iter().zip(&mut times) {
        let (middle, slow) = (median(times), times[times.len() * 9 / 10]);
        println!(
            "{name:28} median {middle:>9.1?}  p90 {slow:>9.1?}  more than none: {:>9.1?}",
            middle.saturating_sub(none)
        );
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}
