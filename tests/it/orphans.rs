//! No process outlives its owner: a command's processes end with the command, and all of them with the program, however it ends.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "how long it took, for those who ask with --nocapture")]

use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use s15::tools::{BashArgs, LocalCall, Stop, Workshop};

use crate::harness::{Bench, Finished, results, wait_for};
use crate::pty::Terminal;

/// The ways in which a process tries to stay. Each writes its kind and number into `pids`, and sleeps.
const ALL_KINDS: &str = r#"
stay='echo "$0" $$ >> pids; exec sleep 1000'
deaf="trap '' TERM HUP INT; $stay"
bash -c "$stay" background &
bash -c "$deaf" deaf >/dev/null 2>&1 &
setsid bash -c "$stay" session >/dev/null 2>&1 &
setsid bash -c "$deaf" deaf-session >/dev/null 2>&1 &
(setsid bash -c "$stay" double-fork >/dev/null 2>&1 &)
(set -m; bash -c "$stay" group >/dev/null 2>&1 &)
setsid bash -c "bash -c '$stay' inner & $stay" outer >/dev/null 2>&1 &
echo guardian $PPID >> pids
until [ $(wc -l < pids) -eq 9 ]; do sleep 0.01; done
"#;
const KINDS: usize = 9;

/// One call of bash, then an answer.
fn calling(command: &str, seconds: u64) -> String {
    assert!(!command.contains("'''"));
    format!(
        "[fallback]\n\"*\" = \"done\"\n[[rule]]\nagent = \"lead\"\nn = 1\ncalls = [{{ tool = \"bash\", arguments = {{ timeout = {seconds}, command = '''{command}''' }} }}]\n"
    )
}

/// Runs one call to the end of the program; gives the call's result. Without a sandbox, which would keep the command from
/// what it tries here.
fn result_of(command: &str, seconds: u64) -> (Bench, String) {
    result_in("off", command, seconds)
}

fn result_in(sandbox: &str, command: &str, seconds: u64) -> (Bench, String) {
    let bench = Bench::new(&calling(command, seconds)).env("S15_SANDBOX", sandbox);
    let Finished { code, stderr, .. } = bench.run(&["-p", "go"], "");
    assert_eq!(code, Some(0), "{command}: {stderr}");
    let result = results(&bench.requests()[1])[0].clone();
    (bench, result)
}

fn started(bench: &Bench) -> Child {
    let mut command = bench.command(&["-p", "go"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts")
}

fn pids(bench: &Bench) -> Vec<(String, i32)> {
    let text = bench.read("pids").unwrap_or_default();
    let lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    lines.map(|(kind, pid)| (kind.to_owned(), pid.parse().expect("a number"))).collect()
}

/// A process that has ended is there until somebody has taken its status.
fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Waits until nobody of `pids` is left; how long that took.
fn all_gone(bench: &Bench) -> Duration {
    let since = Instant::now();
    for (kind, pid) in pids(bench) {
        wait_for(&format!("the end of {kind} ({pid})"), || (!is_alive(pid)).then_some(()));
    }
    since.elapsed()
}

/// The guardians of a program: that of its command, and that which waits for the next.
fn guardians(program: &Child) -> Vec<i32> {
    let parent = format!(" {} ", program.id());
    let numbers = std::fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let stat = |pid: i32| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The parent is the first number after the state.
    numbers.filter(|pid| stat(*pid).rsplit_once(") ").is_some_and(|(_, rest)| rest[1..].starts_with(&parent))).collect()
}

/// Ends the program by a signal while a command with processes of all kinds runs.
fn end_by(signal: Signal, before: &str) {
    end_in("off", signal, before);
    end_in("auto", signal, before);
}

fn end_in(sandbox: &str, signal: Signal, before: &str) {
    let bench = Bench::new(&calling(&format!("{ALL_KINDS} {before}; exec bash -c \"$stay\" foreground"), 300));
    let bench = bench.env("S15_SANDBOX", sandbox);
    let mut program = started(&bench);
    wait_for("all kinds", || (pids(&bench).len() == KINDS + 1).then_some(()));
    let guardians = wait_for("both guardians", || Some(guardians(&program)).filter(|guardians| guardians.len() == 2));
    assert!(pids(&bench).iter().all(|(_, pid)| is_alive(*pid)), "{:?}", pids(&bench));
    kill(Pid::from_raw(i32::try_from(program.id()).expect("a pid")), signal).expect("it runs");
    let taken = if signal == Signal::SIGTERM {
        program.wait().expect("it ends");
        all_gone(&bench)
    } else {
        let taken = all_gone(&bench);
        program.wait().expect("it ends");
        taken
    };
    for guardian in guardians {
        wait_for("the guardians' end", || (!is_alive(guardian)).then_some(()));
    }
    println!("{signal}: all gone after {taken:?}");
    bench.assert_no_faults();
}

#[test]
fn i9_nothing_outlives_the_program_that_is_killed() {
    end_by(Signal::SIGKILL, "true");
}

#[test]
fn i9_nothing_outlives_the_program_that_is_killed_after_its_guardian_was_stopped() {
    end_by(Signal::SIGKILL, "kill -STOP $PPID");
}

#[test]
fn i9_nothing_outlives_the_program_that_aborts() {
    end_by(Signal::SIGABRT, "true");
}

#[test]
fn i9_nothing_outlives_the_program_that_is_asked_to_end() {
    end_by(Signal::SIGTERM, "true");
}

#[test]
fn i9_nothing_outlives_its_command() {
    for sandbox in ["off", "auto"] {
        let (bench, result) = result_in(sandbox, &format!("{ALL_KINDS} echo started"), 60);
        let (said, left) = result.split_once("\nexit code: 0\n").unwrap_or_else(|| panic!("{result}"));
        assert_eq!(said, "started");
        assert!(left.starts_with("A background process was ended with the command: sleep ("), "{left}");
        assert_eq!(pids(&bench).len(), KINDS);
        all_gone(&bench);
    }
}

#[test]
fn i9_nothing_outlives_the_time_limit_of_its_command() {
    let (bench, result) = result_of(&format!("{ALL_KINDS} echo said; exec sleep 1000"), 3);
    assert!(result.starts_with("error: timed out after 3 s; the command and what it started were ended."), "{result}");
    assert!(result.ends_with("Its output:\nsaid"), "{result}");
    assert_eq!(pids(&bench).len(), KINDS);
    all_gone(&bench);
}

/// A workshop as the program has it, in the workspace of a bench.
fn workshop(bench: &Bench) -> Workshop {
    let workshop = Workshop::new(&bench.workspace(), bench.state().join("out"), Duration::from_secs(60));
    workshop.expect("a workshop").guarded_by(Path::new(env!("CARGO_BIN_EXE_s15")))
}

fn call(command: String) -> LocalCall {
    LocalCall::Bash(BashArgs { command, timeout: None, run_in_background: None })
}

/// Runs what waits beside the bench, which has a runtime of its own.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

#[test]
fn i9_nothing_outlives_a_panic() {
    let bench = Bench::new("[fallback]\n\"*\" = \"done\"\n");
    let (workshop, pids_file) = (workshop(&bench), bench.path("pids"));
    let call = async move {
        let call = call(format!("{ALL_KINDS} exec bash -c \"$stay\" foreground"));
        let never: Stop<'_> = Box::pin(std::future::pending());
        tokio::select! {
            output = workshop.run(call, never) => output,
            () = lines(&pids_file, KINDS + 1) => panic!("in the middle of a call"),
        }
    };
    let ended = block_on(async { tokio::spawn(call).await });
    assert!(ended.expect_err("it panics").is_panic());
    all_gone(&bench);
}

async fn lines(file: &Path, count: usize) {
    while std::fs::read_to_string(file).unwrap_or_default().lines().count() < count {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[test]
fn i9_a_command_that_kills_its_guardian_ends_all_the_same() {
    let (bench, result) = result_of(
        "sleep 1000 & echo sleep $! >> pids; (set -m; sleep 1000 >/dev/null 2>&1 & echo group $! >> pids)\n\
         echo shell $$ >> pids; echo guardian $PPID >> pids; echo said; kill -9 $PPID; exec sleep 1000",
        60,
    );
    assert!(result.starts_with("said\nexit code: unknown\n"), "{result}");
    assert!(result.contains("The process that guards the command was killed"), "{result}");
    assert_eq!(pids(&bench).len(), 4);
    all_gone(&bench);
}

#[test]
fn i9_a_command_cannot_end_or_stop_its_guardian_by_less() {
    let (_, result) = result_of(
        "for signal in TERM INT HUP QUIT USR1 ALRM TSTP; do kill -$signal $PPID; done; echo still; exit 4",
        60,
    );
    assert_eq!(result, "still\nexit code: 4");
    let (_, result) = result_of("echo $$ > pid; kill -TERM -- -$$; sleep 1000", 60);
    assert_eq!(result, "(no output)\nended by signal 15 SIGTERM");
    let (bench, result) =
        result_of("echo shell $$ >> pids; echo guardian $PPID >> pids; kill -STOP $PPID; sleep 1000", 1);
    assert!(result.starts_with("error: timed out after 1 s;"), "{result}");
    all_gone(&bench);
}

/// How many processes have the workspace as their folder.
fn living_in(bench: &Bench) -> usize {
    let folder = bench.workspace().canonicalize().expect("a folder");
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    entries.filter(|entry| std::fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == folder)).count()
}

#[test]
fn i9_a_family_that_grows_all_the_while_is_ended_too() {
    // Deaf to TERM, each in a session of its own, and a new one every few milliseconds.
    let grow = "trap '' TERM; while :; do (setsid sleep 1000 >/dev/null 2>&1 &); sleep 0.003; done";
    let grow = format!("for n in 1 2 3; do setsid bash -c \"{grow}\" >/dev/null 2>&1 & done");
    let (bench, result) = result_of(&format!("{grow}; sleep 0.3; echo started"), 60);
    assert!(result.starts_with("started\nexit code: 0\n") && result.ends_with(" more"), "{result}");
    wait_for("an empty workspace", || (living_in(&bench) == 0).then_some(()));

    let bench = Bench::new(&calling(&format!("{grow}; touch ready; sleep 1000"), 300));
    let mut program = started(&bench);
    wait_for("a family", || (bench.path("ready").exists() && living_in(&bench) > 50).then_some(()));
    program.kill().expect("it runs");
    let since = Instant::now();
    wait_for("an empty workspace", || (living_in(&bench) == 0).then_some(()));
    println!("a growing family: gone after {:?}", since.elapsed());
    program.wait().expect("it ends");
}

#[test]
fn i11_a_command_that_forks_without_end_is_ended() {
    // The second doubles all the while, its first process is gone at once; by itself it would go on for ten seconds.
    let forks = "b() { [ $SECONDS -lt 10 ] && b | b & }; b";
    for forks in
        [forks.to_owned(), "for n in $(seq 600); do sleep 1000 & done; wait".to_owned(), format!("{forks}; sleep 1000")]
    {
        let (bench, result) = result_of(&format!("echo begun; {forks}"), 60);
        let expected = "error: more than 512 processes at once; the command and what it started were ended. Start fewer. Its output:\nbegun";
        let gone_at_once = result.starts_with("begun\nexit code: 0\nA background process was ended");
        assert!(result.starts_with(expected) || gone_at_once, "{forks}: {result}");
        wait_for("an empty workspace", || (living_in(&bench) == 0).then_some(()));
    }
    let (_, result) = result_of("for n in $(seq 200); do sleep 0.3 & done; wait; echo done", 60);
    assert_eq!(result, "done\nexit code: 0");
}

/// What the program may hold while a command floods it, in MiB: itself, and two ends of an output.
const FLOODED_MIB_MAX: u64 = 64;

#[test]
fn i8_a_flood_of_output_takes_no_memory() {
    let peak = "awk '/VmHWM/ { print $2 }' /proc/$(ps -o ppid= -p $PPID | tr -d ' ')/status";
    for (flood, place) in [
        ("yes | head -n 10000000", "the whole is in "),
        ("head -c 1G /dev/zero | tr '\\0' x; echo", "the first 67108864 bytes are in "),
        ("head -c 200M /dev/zero", "the first 67108864 bytes are in "),
    ] {
        let (_, result) = result_of(&format!("{flood}; {peak}"), 300);
        assert!(result.contains(place) && result.len() < 40_000, "{flood}: {result:.300}");
        let last = result.strip_suffix("\nexit code: 0").and_then(|text| text.lines().last()).expect("a number");
        let kib: u64 = last.rsplit("x00").next().and_then(|number| number.trim().parse().ok()).expect("a number");
        println!("{flood}: at most {} MiB", kib / 1024);
        assert!(kib / 1024 < FLOODED_MIB_MAX, "{flood}: {kib} KiB");
    }
}

#[test]
fn a_command_has_no_terminal() {
    let scenario = calling("printf 'writ%s' ten > /dev/tty; tty; ps -o tty= -p $$", 60);
    let bench = Bench::new(&scenario);
    let mut terminal = Terminal::start(&bench, 80, 24);
    terminal.line("go");
    terminal.see("done");
    let result = &results(&bench.requests()[1])[0];
    assert!(result.contains("/dev/tty: No such device or address\nnot a tty\n?\n"), "{result}");
    assert!(!terminal.text().contains("written"), "{}", terminal.text());
}

#[test]
fn i12_a_guardian_shows_no_key_and_no_command() {
    let (_, result) = result_of(
        "tr '\\0' '\\n' < /proc/$PPID/environ; tr '\\0' ' ' < /proc/$PPID/cmdline; echo; cat /proc/$PPID/comm",
        60,
    );
    assert!(!result.contains("sk-test") && !result.contains("S15_") && !result.contains("environ"), "{result}");
    assert!(result.contains("PATH=") && result.ends_with("cmd-guardian \ncmd-guardian\nexit code: 0"), "{result}");
}

#[test]
fn guarded_commands_run_side_by_side() {
    let bench = Bench::new("[fallback]\n\"*\" = \"done\"\n");
    let workshop = workshop(&bench);
    let calls = (0..32)
        .map(|number| workshop.run(call(format!("echo {number}; exit {number}")), Box::pin(std::future::pending())));
    for (number, output) in block_on(futures_util::future::join_all(calls)).into_iter().enumerate() {
        assert_eq!(output.text, format!("{number}\nexit code: {number}"));
    }
}

#[test]
fn a_guarded_command_runs_like_any_other() {
    let bench = Bench::new("[fallback]\n\"*\" = \"done\"\n");
    let workshop = workshop(&bench);
    let run = |command: &str| block_on(workshop.run(call(command.to_owned()), Box::pin(std::future::pending())));
    let long = format!("echo {} | wc -c", "\\\"".repeat(50_000));
    for (command, ok, text) in [
        ("echo a; echo b >&2; echo c; echo d >&2", true, "a\nb\nc\nd\nexit code: 0"),
        ("", true, "(no output)\nexit code: 0"),
        ("exit 7", false, "(no output)\nexit code: 7"),
        ("no-such-command-here 2>/dev/null", false, "(no output)\nexit code: 127"),
        ("kill -9 $$", false, "(no output)\nended by signal 9 SIGKILL"),
        ("kill -40 $$", false, "(no output)\nexit code: unknown"),
        ("exec 2>/dev/null; bash -c 'kill -40 $$'; echo $?", true, "168\nexit code: 0"),
        ("read -r x; echo \"got:[$x]\"; cat | wc -c", true, "got:[]\n0\nexit code: 0"),
        ("exec >&- 2>&-; exit 3", false, "(no output)\nexit code: 3"),
        ("printf 'A\\xff\\0B'", true, "A\\xff\\x00B\nexit code: 0"),
        (
            "printf '%s' \"$0 'quoted' \\\\ 汉\"; echo; pwd -P | sed 's|.*/||'",
            true,
            "bash 'quoted' \\ 汉\nws\nexit code: 0",
        ),
        // Nobody waits for what its parent has left, and it can be seen to end.
        (
            "(sleep 0.05 & echo $! > orphan); while kill -0 $(cat orphan) 2>/dev/null; do sleep 0.01; done",
            true,
            "(no output)\nexit code: 0",
        ),
        (
            "ps -o sid= -p $$ | tr -d ' ' | grep -qx $PPID && ps -o pgid= -p $$ | tr -d ' ' | grep -qx $$ && echo own",
            true,
            "own\nexit code: 0",
        ),
        (long.as_str(), true, "50001\nexit code: 0"),
    ] {
        let output = run(command);
        assert_eq!((output.ok, output.text.as_str()), (ok, text), "{command:.200}");
    }
    let direct = Workshop::new(&bench.workspace(), bench.state().join("out"), Duration::from_secs(60)).unwrap();
    for command in ["grep -E '^Sig(Blk|Ign)' /proc/self/status", "env | grep -v '^_=' | sort", "ulimit -a; umask; nice"]
    {
        let unguarded = block_on(direct.run(call(command.to_owned()), Box::pin(std::future::pending())));
        assert_eq!(run(command), unguarded, "{command}");
    }
    for (command, text) in [
        (format!(": {}", "x".repeat(300_000)), "error: the command is too long (300002 bytes); write it to a file"),
        ("echo a\0b".to_owned(), "error: the command has a zero byte; leave it out"),
    ] {
        let output = run(&command);
        assert!(output.text.starts_with(text), "{}", output.text);
    }
    let nobody = direct.guarded_by(Path::new("/no/such/guardian"));
    let output = block_on(nobody.run(call("touch made".to_owned()), Box::pin(std::future::pending())));
    assert!(output.text.starts_with("error: the process that guards commands could not be started"), "{}", output.text);
    assert!(!bench.path("made").exists());
}
