//! Ways out of the sandbox, each tried with every means that this machine has, and each refused with what lies outside unchanged.
#![cfg(target_os = "linux")]
#![allow(clippy::print_stdout, reason = "what this machine can't show is said")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use s15::sandbox::{Bounds, Ground, Means, Network, Policy, Support, Wanted};
use s15::tools::{BashArgs, LocalCall, Output, Workshop};

use crate::harness::{Bench, Finished, results};

const PROGRAM: &str = env!("CARGO_BIN_EXE_s15");
/// A user without any rights of their own.
const NOBODY: u32 = 65_534;

/// A workspace with a repository, a home with secrets, a state folder, and something outside of all.
struct Stage {
    root: PathBuf,
    _folder: tempfile::TempDir,
    wanted: Wanted,
    workshop: Workshop,
    bounds: Bounds,
}

/// What must be the same after every attempt, and what it holds.
const KEPT: [(&str, &str); 9] = [
    ("outside/victim", "ORIG"),
    ("outside/run.sh", "ORIG"),
    ("home/.ssh/id", "SECRET"),
    ("home/.profile", "ORIG"),
    ("state/key/sessions/1/lead.jsonl", "JOURNAL"),
    ("ws/.git/config", "[core]\n"),
    ("ws/.git/hooks/sample", "ORIG"),
    ("ws/.mailboxes/lead.jsonl", ""),
    ("ws/.s15.toml", "max_teammates = 1\n"),
];

fn means(wanted: Wanted) -> Means {
    Support::of_this_machine(Path::new(PROGRAM)).means(wanted)
}

/// Every way of holding that this machine has.
fn ways() -> Vec<Wanted> {
    let ways = [Wanted::Landlock, Wanted::Namespaces, Wanted::Auto];
    let had: Vec<_> = ways.into_iter().filter(|way| means(*way).any()).collect();
    for way in ways.iter().filter(|way| !had.contains(way)) {
        println!("skipped: {way:?} can't be had here: {:?}", Support::of_this_machine(Path::new(PROGRAM)));
    }
    had
}

impl Stage {
    fn new(wanted: Wanted) -> Self {
        Self::with(wanted, Network::Allowed, &[])
    }

    fn with(wanted: Wanted, network: Network, opened: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for (path, content) in KEPT {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        for folder in ["tmp", "ws/src", "home/opened", "state/key/sessions/1/out", "ws/.team"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("state/key/sessions/1/out/long.txt"), "LONG").unwrap();
        let opened: Vec<_> = opened.iter().map(|path| root.join(path)).collect();
        let bounds = Bounds::for_session(&Ground {
            workspace: &root.join("ws"),
            temp: &root.join("tmp"),
            state_dir: &root.join("state"),
            out_dir: &root.join("state/key/sessions/1/out"),
            settings: None,
            home: Some(&root.join("home")),
            runtime_dir: None,
            opened: &opened,
            network,
            means: means(wanted),
        });
        let workshop = Workshop::new(&root.join("ws"), root.join("state/key/sessions/1/out"), Duration::from_secs(60));
        let workshop = workshop.unwrap().guarded_by(Path::new(PROGRAM)).under(Policy::Confined(bounds.clone()));
        Self { root, _folder: folder, wanted, workshop, bounds }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// `ROOT` in a command is the stage's own folder.
    fn run(&self, command: &str) -> Output {
        self.run_under(None, command)
    }

    fn run_under(&self, policy: Option<&Policy>, command: &str) -> Output {
        let command = command.replace("ROOT", self.root.to_str().unwrap());
        let call = LocalCall::Bash(BashArgs { command, timeout: None, run_in_background: None });
        let never = Box::pin(std::future::pending());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(self.workshop.run_under(policy, call, never, Box::new(|_| {})))
    }

    fn succeeds(&self, command: &str) -> String {
        let output = self.run(command);
        assert!(output.ok, "{:?}: {command}: {}", self.wanted, output.text);
        output.text
    }

    /// Nothing outside is changed, and nothing new is there.
    fn assert_unchanged(&self, after: &str) {
        for (path, content) in KEPT {
            let now = fs::read_to_string(self.path(path)).unwrap_or_else(|error| panic!("{after}: {path}: {error}"));
            assert_eq!(now, content, "{:?}: {after}: {path}", self.wanted);
        }
        for (folder, count) in [("outside", 2), ("home", 3), ("ws/.git/hooks", 1), ("state/key/sessions/1", 2), ("", 5)]
        {
            let names: Vec<_> =
                fs::read_dir(self.path(folder)).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(names.len(), count, "{:?}: {after}: {folder} has {names:?}", self.wanted);
        }
    }
}

/// Each is to change or read something that is closed. What it leaves in the workspace is its own.
const ATTEMPTS: [&str; 34] = [
    "echo X > ROOT/outside/victim",
    "echo X >> ../outside/victim",
    "echo X > src/../../outside/new",
    "rm -f ROOT/outside/victim",
    "mv ROOT/outside/victim ROOT/ws/src/taken",
    "mv ROOT/outside ROOT/elsewhere",
    "mkdir ROOT/new",
    "ln -s ROOT/outside src/link && echo X > src/link/victim",
    "ln -s ROOT/outside/victim src/to-victim && echo X > src/to-victim",
    "ln ROOT/outside/victim src/hard && echo X > src/hard",
    "ln ROOT/outside/run.sh tmp-hard; cp -l ROOT/outside/run.sh src/hard2 && echo X > src/hard2",
    "mkdir -p src/a && mv src/a src/b && ln -s ROOT/outside src/a && echo X > src/a/victim",
    "echo X > /proc/self/root/ROOT/outside/victim",
    "cd src && echo X > /proc/self/cwd/../../outside/victim",
    "echo X > /proc/$PPID/root/ROOT/outside/victim",
    "echo X > /proc/$PPID/cwd/../outside/victim",
    "exec 7< ROOT/outside/victim && echo X > /proc/self/fd/7",
    "(sleep 0.1; echo X > ROOT/outside/victim) & wait $!",
    "setsid -w bash -c 'echo X > ROOT/outside/victim'",
    "truncate -s 0 ROOT/outside/victim",
    "dd if=/dev/zero of=ROOT/outside/victim count=1",
    "sed -i s/ORIG/X/ ROOT/home/.profile",
    "echo X > .git/hooks/pre-commit",
    "echo X > src/hook && mv src/hook .git/hooks/pre-commit",
    "ln src/hook .git/hooks/pre-commit",
    "mv .git/hooks .git/hooks-old && mkdir .git/hooks && echo X > .git/hooks/sample",
    "mv .git git-old && mkdir -p .git/hooks && echo X > .git/config",
    "rm -rf .git",
    "echo '[alias] x = !sh' >> .git/config",
    "git config core.fsmonitor 'touch X'",
    "echo '{\"from\":\"x\",\"content\":\"x\"}' >> .mailboxes/lead.jsonl",
    "rm -rf .mailboxes .team",
    "echo 'yes = true' > .s15.toml",
    "echo X > ROOT/state/key/sessions/1/lead.jsonl",
];

#[test]
fn i9_no_command_writes_outside_its_bounds() {
    for way in ways() {
        let stage = Stage::new(way);
        for attempt in ATTEMPTS {
            let output = stage.run(attempt);
            assert!(!output.ok, "{way:?}: {attempt}: {}", output.text);
            stage.assert_unchanged(attempt);
        }
    }
}

#[test]
fn i9_no_command_takes_the_mounts_away_or_finds_another_way_in() {
    for way in ways() {
        let stage = Stage::new(way);
        for attempt in [
            "umount ROOT/ws/.git/hooks; echo X > .git/hooks/pre-commit",
            "mount -o remount,rw,bind ROOT/ws/.git/hooks; echo X > .git/hooks/pre-commit",
            "mount -o remount,rw / ; echo X > ROOT/outside/victim",
            "unshare -rm bash -c 'umount -l ROOT/ws/.git/hooks; mount -o remount,rw,bind /; echo X > ROOT/outside/victim'",
            "unshare -m bash -c 'mount -o remount,rw,bind /; echo X > ROOT/outside/victim'",
            "nsenter -t $PPID -m bash -c 'echo X > ROOT/outside/victim'",
            "mknod src/disk b 254 0 && head -c 1 src/disk",
            "head -c 1 /dev/vda",
            "chroot /proc/$PPID/root bash -c 'echo X > ROOT/outside/victim'",
        ] {
            let output = stage.run(attempt);
            assert!(!output.ok, "{way:?}: {attempt}: {}", output.text);
            stage.assert_unchanged(attempt);
        }
    }
}

#[test]
fn i9_what_is_hidden_is_not_read() {
    for way in ways() {
        let stage = Stage::new(way);
        for attempt in [
            "cat ROOT/home/.ssh/id",
            "cat ROOT/state/key/sessions/1/lead.jsonl",
            "cp ROOT/home/.ssh/id src/copy; cat src/copy",
            "ln ROOT/home/.ssh/id src/hard-id; cat src/hard-id",
            "cat /proc/$PPID/root/ROOT/home/.ssh/id",
            "cat /proc/1/root/ROOT/home/.ssh/id",
            "cat < ROOT/home/.ssh/id",
            "tar c ROOT/home ROOT/state | tar xO",
            "grep -r . ROOT/home/.ssh ROOT/state/key/sessions/1/lead.jsonl",
        ] {
            let output = stage.run(attempt);
            assert!(
                !output.text.contains("SECRET") && !output.text.contains("JOURNAL"),
                "{way:?}: {attempt}: {}",
                output.text
            );
        }
        assert!(stage.succeeds("cat ROOT/state/key/sessions/1/out/long.txt").starts_with("LONG"));
        assert!(stage.succeeds("cat ROOT/outside/victim ROOT/home/.profile").starts_with("ORIGORIG"));
        let output = stage.run("echo X > ROOT/state/key/sessions/1/out/long.txt");
        assert!(!output.ok, "{}", output.text);
    }
}

/// The program itself, and whoever else runs as the same user.
#[test]
fn i9_no_command_reaches_into_other_processes() {
    for way in ways() {
        let stage = Stage::new(way);
        let own = std::process::id();
        for attempt in [
            format!("head -c 1 /proc/{own}/mem"),
            format!("tr '\\0' '\\n' < /proc/{own}/environ | grep ."),
            format!("readlink /proc/{own}/fd/0"),
            format!("echo X > /proc/{own}/root/{}", stage.path("outside/victim").display()),
            format!("echo X > /proc/{own}/cwd/sandbox-escape"),
        ] {
            let output = stage.run(&attempt);
            assert!(!output.ok, "{way:?}: {attempt}: {}", output.text);
        }
        stage.assert_unchanged("other processes");
        let signals = Support::of_this_machine(Path::new(PROGRAM)).landlock >= Some(6) && stage.bounds.means.landlock;
        if signals {
            let mut other = Command::new("sleep").arg("1000").spawn().unwrap();
            for victim in [own, other.id()] {
                let output = stage.run(&format!("kill -KILL {victim} || kill -0 {victim}"));
                assert!(!output.ok && output.text.contains("not permitted"), "{way:?}: {}", output.text);
            }
            assert!(other.try_wait().unwrap().is_none());
            other.kill().unwrap();
            other.wait().unwrap();
        } else {
            println!("skipped: {way:?} doesn't hold signals");
        }
    }
}

#[test]
fn ordinary_work_goes_on() {
    for way in ways() {
        let stage = Stage::with(way, Network::Allowed, &["home/opened"]);
        let identity = stage.succeeds("id -u; id -g");
        let own = nix::unistd::geteuid();
        assert!(identity.starts_with(&format!("{own}\n")), "{identity}");
        for command in [
            "echo x > src/new && cat src/new && mkdir -p src/deep/er && mv src/new src/deep/er/ && rm -r src/deep",
            "ln -s ../x src/l && chmod 755 src && touch src/t && cp src/t src/u && ln src/t src/v",
            "echo x > \"$TMPDIR/f\" && f=$(mktemp) && echo y > \"$f\" && case $f in \"$TMPDIR\"/*) ;; *) exit 9 ;; esac",
            "echo x > ROOT/home/opened/x",
            "echo gone > /dev/null; echo err > /dev/stderr; echo out > /dev/stdout; head -c 4 /dev/urandom | wc -c",
            "cat <<< here; cat <(echo sub); sort <<EOF\nb\na\nEOF",
            "cat /proc/self/status /proc/cpuinfo /etc/passwd > /dev/null && ls / > /dev/null",
            "(sleep 1000 & kill $!; wait) 2> /dev/null; true",
            "mkfifo src/p && (echo through > src/p &) && cat src/p",
            "bash -c 'exit 0' && env true && timeout 5 true",
        ] {
            stage.succeeds(command);
        }
        if stage.bounds.means.mounts {
            stage.succeeds("echo x > /dev/shm/x && [ $(ls /dev/shm | wc -l) = 1 ]");
            stage.succeeds("script -qec 'tty && test -t 1' /dev/null");
            stage.succeeds(
                "echo x > new && mkdir -p target/debug && echo y > .git/index.lock && mv .git/index.lock .git/index",
            );
        } else {
            let output = stage.run("mkdir target");
            assert!(output.text.contains("can't make or remove anything directly in"), "{}", output.text);
        }
    }
}

fn git(folder: &Path, arguments: &str) {
    let status = Command::new("bash").arg("-c").arg(format!("git {arguments}")).current_dir(folder).status();
    assert!(status.unwrap().success(), "git {arguments}");
}

/// Commits work, in a worktree too, where namespaces hold what git would run; where Landlock alone does, they are refused.
#[test]
fn a_repository_is_worked_in_but_not_made_to_run_anything() {
    const NAMED: &str = "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; ";
    for way in ways() {
        let stage = Stage::new(way);
        fs::create_dir(stage.path("main")).unwrap();
        git(
            &stage.path("main"),
            "init -q && mkdir src && echo x > src/file && git add . && \
             git -c user.name=a -c user.email=a@b commit -qm first && git worktree add -q ../tree 2>/dev/null",
        );
        for folder in ["main", "tree"] {
            let bounds = Bounds::for_session(&Ground {
                workspace: &stage.path(folder),
                temp: &stage.path("tmp"),
                state_dir: &stage.path("state"),
                out_dir: &stage.path("state/key/sessions/1/out"),
                settings: None,
                home: Some(&stage.path("home")),
                runtime_dir: None,
                opened: &[],
                network: Network::Allowed,
                means: means(way),
            });
            bounds.make_ready(&stage.path(folder));
            let policy = Policy::Confined(bounds);
            let run = |command: &str| {
                let command = format!("{NAMED} cd ROOT/{folder}; {command}");
                stage.run_under(Some(&policy), &command)
            };
            let hooks = stage.path("main/.git/hooks/post-commit");
            for attempt in [
                format!("echo 'touch ran' > {}", hooks.display()),
                "git config core.hooksPath src".to_owned(),
                "git config --worktree core.hooksPath src".to_owned(),
                "rm -rf \"$(git rev-parse --git-common-dir)\"/hooks \"$(git rev-parse --git-common-dir)\"/config"
                    .to_owned(),
                "mv .git moved; cp -r moved .git; echo X > .git/hooks/post-commit".to_owned(),
            ] {
                assert!(!run(&attempt).ok, "{way:?}: {folder}: {attempt}");
                assert!(!hooks.exists() && stage.path("main/.git/config").exists(), "{way:?}: {folder}: {attempt}");
                assert!(stage.path(folder).join(".git").exists(), "{way:?}: {folder}: {attempt}");
            }
            let commit = run(
                "echo y >> src/file && git add . && git commit -qm second && git checkout -q -b other-$$ && git log --oneline | wc -l",
            );
            if means(way).mounts {
                assert!(commit.ok && commit.text.starts_with("2\n"), "{way:?}: {folder}: {}", commit.text);
            } else if folder == "main" {
                assert!(!commit.ok && commit.text.contains("outside_sandbox: true"), "{folder}: {}", commit.text);
            } else {
                // Of a worktree most lies in a folder of its own.
                assert!(commit.ok && commit.text.contains("\n2\n"), "{folder}: {}", commit.text);
            }
        }
    }
}

#[test]
fn a_refusal_is_told_as_the_sandbox_s() {
    for way in ways() {
        let stage = Stage::new(way);
        for (command, place) in [
            ("echo X > ROOT/outside/victim", "outside/victim"),
            ("touch ROOT/outside/new", "outside/new"),
            ("echo X > .git/hooks/pre-commit", "ws/.git/hooks/pre-commit"),
        ] {
            let output = stage.run(command);
            let said = format!("the sandbox closed: {} (", stage.path(place).display());
            assert!(
                output.text.contains(&said) && output.text.contains("outside_sandbox: true"),
                "{way:?}: {}",
                output.text
            );
        }
        assert!(!stage.run("false").text.contains("sandbox"));
    }
}

#[test]
fn a_call_of_its_own_policy_is_held_to_that() {
    for way in ways() {
        let stage = Stage::new(way);
        for path in ["ws/src/mine.rs", "ws/src/theirs.rs", "ws/other/file"] {
            fs::create_dir_all(stage.path(path).parent().unwrap()).unwrap();
            fs::write(stage.path(path), "ORIG").unwrap();
        }
        let scope = stage.bounds.writing_only(&[stage.path("ws/src"), stage.path("outside"), stage.path("ws/none")]);
        assert!(!scope.is_writable(&stage.path("outside/victim")) && scope.is_writable(&stage.path("ws/src/mine.rs")));
        let scope = Policy::Confined(scope.keeping(&[stage.path("ws/src/theirs.rs")]));
        let run = |command: &str| stage.run_under(Some(&scope), command).ok;
        assert!(run("echo X > src/mine.rs; echo x > \"$TMPDIR/x\""));
        assert!(!run("echo X > src/theirs.rs") && !run("rm -f src/theirs.rs") && !run("mv src src2"), "{way:?}");
        assert!(!run("echo X > other/file") && !run("echo X > ROOT/outside/victim") && !run("echo X > .git/config"));
        let one = Policy::Confined(stage.bounds.writing_only(&[stage.path("ws/other/file")]));
        assert!(stage.run_under(Some(&one), "echo X > other/file && ! echo X > other/new").ok, "{way:?}");
        assert!(!stage.run_under(Some(&one), "rm other/file").ok);
        assert_eq!(fs::read_to_string(stage.path("ws/src/theirs.rs")).unwrap(), "ORIG");
        assert!(stage.run_under(Some(&Policy::Full), "echo X > ROOT/outside/free && rm ROOT/outside/free").ok);
        stage.assert_unchanged("a scope");
    }
}

#[test]
fn a_place_that_became_a_link_is_not_opened() {
    for way in ways() {
        let stage = Stage::new(way);
        fs::create_dir(stage.path("ws/src/scope")).unwrap();
        let scope = Policy::Confined(stage.bounds.writing_only(&[stage.path("ws/src/scope")]));
        fs::remove_dir(stage.path("ws/src/scope")).unwrap();
        symlink(stage.path("outside"), stage.path("ws/src/scope")).unwrap();
        let output = stage.run_under(Some(&scope), "echo X > src/scope/victim");
        assert!(!output.ok, "{way:?}: {}", output.text);
        // One among the entries that are granted one by one, too.
        symlink(stage.path("outside"), stage.path("ws/link")).unwrap();
        assert!(!stage.run("echo X > link/victim").ok);
        stage.assert_unchanged("a link");
    }
}

/// TCP to a listener of this process: there without a word, gone when the network is off.
#[test]
fn the_network_is_off_when_it_is_to_be() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!("exec 3<> /dev/tcp/127.0.0.1/{}", listener.local_addr().unwrap().port());
    for way in ways() {
        assert!(Stage::with(way, Network::Allowed, &[]).run(&connect).ok, "{way:?}");
        let stage = Stage::with(way, Network::Denied, &[]);
        let means = stage.bounds.means;
        if !means.network && Support::of_this_machine(Path::new(PROGRAM)).landlock < Some(4) {
            println!("skipped: {way:?} has no rules for the network");
            continue;
        }
        assert!(!stage.run(&connect).ok, "{way:?}");
        if means.network {
            // Its own loopback is there.
            let served = "python3 -c 'import socket; s=socket.socket(); s.bind((\"127.0.0.1\",0)); s.listen(); \
                          c=socket.create_connection(s.getsockname()); print(1)'";
            stage.succeeds(served);
            assert!(stage.succeeds("tail -n +3 /proc/net/dev").lines().filter(|line| line.contains(':')).count() <= 2);
        }
    }
}

/// All of the above by a user without rights, whose namespaces are another matter than root's.
#[test]
fn i9_the_same_holds_for_an_ordinary_user() {
    if !nix::unistd::geteuid().is_root() {
        println!("skipped: only root can become another user");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let reachable = Command::new(PROGRAM).arg("--version").uid(NOBODY).gid(NOBODY).output();
    if !reachable.is_ok_and(|output| output.status.success()) {
        println!("skipped: another user can't run {PROGRAM}");
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["sandbox::", "--skip", "ordinary_user", "--nocapture", "--test-threads", "2"])
        .env("TMPDIR", folder.path())
        .env("HOME", folder.path())
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().filter(|line| line.starts_with("skipped: ")).for_each(|line| println!("as an ordinary user: {line}"));
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
}

/// One call of bash in the real program; gives its result and what the program said.
fn in_the_program(bench: Bench, command: &str) -> (Bench, String, String) {
    let Finished { code, stderr, .. } = bench.run(&["-p", "go"], "");
    assert_eq!(code, Some(0), "{command}: {stderr}");
    let result = results(&bench.requests()[1])[0].clone();
    (bench, result, stderr)
}

fn bench(command: &str) -> Bench {
    assert!(!command.contains("'''"));
    let call = format!("{{ tool = \"bash\", arguments = {{ command = '''{command}''' }} }}");
    Bench::new(&format!("[fallback]\nlead = \"ok\"\n[[rule]]\nagent = \"lead\"\nn = 1\ncalls = [{call}]\n"))
}

#[test]
fn i9_the_program_s_own_commands_are_confined_by_default() {
    let command = "echo X > ../victim; echo $?; cat ~/.ssh/id; cat \"$S15_STATE_DIR\"/*/lock ../home/state/*/lock; \
                   echo $TMPDIR; echo x > $TMPDIR/x; echo $?; kill -0 $(ps -o ppid= -p $PPID) && echo reached; \
                   echo x > ~/new; echo x >> .mailboxes/lead.jsonl";
    let bench = bench(command);
    let home = bench.workspace().with_file_name("home");
    fs::create_dir(home.join(".ssh")).unwrap();
    fs::write(home.join(".ssh/id"), "SECRET").unwrap();
    fs::write(bench.workspace().with_file_name("victim"), "ORIG").unwrap();
    let bench = bench.file(".mailboxes/.gitignore", "*\n");
    let (bench, result, said) = in_the_program(bench, command);
    assert!(
        result.starts_with("bash: line 1: ../victim: ") && !result.contains("SECRET") && !result.contains("reached"),
        "{result}"
    );
    assert!(!result.contains("\"pid\""), "the state folder is out of reach: {result}");
    assert_eq!(fs::read_to_string(bench.workspace().with_file_name("victim")).unwrap(), "ORIG");
    assert!(!home.join("new").exists() && !bench.path(".mailboxes/lead.jsonl").exists(), "{result}");
    let temp = result.lines().find(|line| line.contains("/s15-")).unwrap_or_else(|| panic!("{result}"));
    assert!(result.contains(&format!("{temp}\n0\n")), "{result}");
    assert!(!Path::new(temp).exists(), "it goes with the session");
    assert!(result.contains("the sandbox closed: "), "{result}");
    assert!(!said.contains("there is no sandbox"), "{said}");
}

#[test]
fn a_long_output_is_read_by_the_next_command() {
    for sandbox in ["auto", "landlock"] {
        let call = |n: u8, command: &str| {
            format!(
                "[[rule]]\nagent = \"lead\"\nn = {n}\ncalls = [{{ tool = \"bash\", arguments = {{ command = \"{command}\" }} }}]\n"
            )
        };
        let calls = [call(1, "seq 100000"), call(2, "cat ../home/state/*/sessions/*/out/* | tail -n 1")].concat();
        let bench = Bench::new(&format!("[fallback]\nlead = \"ok\"\n{calls}")).env("S15_SANDBOX", sandbox);
        let Finished { code, stderr, .. } = bench.run(&["-p", "go"], "");
        assert_eq!(code, Some(0), "{stderr}");
        assert!(results(&bench.requests()[2])[1].starts_with("100000\n"), "{:?}", results(&bench.requests()[2]));
    }
}

#[test]
fn i9_a_run_without_a_sandbox_says_so() {
    let (bench, result, said) =
        in_the_program(bench("echo X > ../victim && cat ../victim").env("S15_SANDBOX", "off"), "off");
    assert!(result.starts_with("X\n"), "{result}");
    assert!(said.contains("the sandbox is off"), "{said}");
    drop(bench);
    let project = self::bench("echo X > ../victim").file(".s15.toml", "sandbox = 'off'\nsandbox_write = ['/']\n");
    let (_bench, result, said) = in_the_program(project, "project");
    assert!(result.contains("the sandbox closed: ") && said.matches("ignored").count() == 2, "{result}\n{said}");
}
