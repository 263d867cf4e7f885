//! No key reaches a command, a journal or the terminal, nor can it be found where the system shows processes.
#![cfg(target_os = "linux")]

use s15::scenario::ServeOptions;

use crate::harness::{Bench, results};

/// Not the key of any other test that runs at the same time.
const KEY: &str = "sk-proof-5f1d77aa90";

fn one_call(command: &str) -> String {
    assert!(!command.contains("'''"));
    format!(
        "[fallback]\nlead = \"ok\"\n[[rule]]\nagent = \"lead\"\nn = 1\ncalls = [{{ tool = \"bash\", arguments = {{ command = '''{command}''' }} }}]\n"
    )
}

fn result(bench: &Bench) -> String {
    let run = bench.run(&["-p", "go"], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    results(&bench.requests()[1])[0].clone()
}

#[test]
fn i12_no_process_shows_the_key_or_another_secret() {
    // The program, its guardians, the command and all others: environment and arguments.
    let look = "for at in /proc/[0-9]*; do tr '\\0' '\\n' < $at/environ; tr '\\0' '\\n' < $at/cmdline; done 2>/dev/null \
                | grep -c -e 'sk-pro[o]f' -e 'hidden-[t]oken'; \
                tr '\\0' '\\n' < /proc/$(ps -o ppid= -p $PPID | tr -d ' ')/environ | grep -c '^GH_TOKEN=$'; ls .. >/dev/null";
    let bench = Bench::new(&one_call(look))
        .env("OPENAI_API_KEY", KEY)
        .env("GH_TOKEN", "hidden-token-1")
        .env("COPY_OF_TOKEN", KEY)
        // It would keep the command from looking at all.
        .env("S15_SANDBOX", "off");
    assert_eq!(result(&bench), "0\n1\nexit code: 0", "and it was the program's environment that was looked at");
}

#[test]
fn i12_the_user_lets_secrets_through_but_never_the_model_s_key() {
    let env = "env | grep -e TOKEN -e KEY -e S15 | sort";
    let bench = |pass: &str| {
        Bench::new(&one_call(env))
            .env("OPENAI_API_KEY", KEY)
            .env("GH_TOKEN", "t1")
            .env("AWS_SECRET_KEY", "t2")
            .env("MY_TOKEN", KEY)
            .env("S15_ENV_PASS", pass)
    };
    assert_eq!(result(&bench("")), "(no output)\nexit code: 0");
    assert_eq!(result(&bench("GH_TOKEN,AWS_*")), "AWS_SECRET_KEY=t2\nGH_TOKEN=t1\nexit code: 0");
    assert_eq!(result(&bench("*")), "AWS_SECRET_KEY=t2\nGH_TOKEN=t1\nexit code: 0");
    let project = bench("").file(".s15.toml", "env_pass = [\"*\"]\n");
    let run = project.run(&["-p", "go"], "");
    assert!(run.stderr.contains("ignored"), "{run:?}");
    assert_eq!(results(&project.requests()[1])[0], "(no output)\nexit code: 0");
    let wrong = bench("A=b").run(&["-p", "go"], "");
    assert!(wrong.code == Some(2) && wrong.stderr.contains("S15_ENV_PASS: \"A=b\" is neither"), "{wrong:?}");
}

/// All that lies below a folder, as one text.
fn all_below(folder: &std::path::Path) -> String {
    let mut text = String::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            text.push_str(&all_below(&path));
        } else {
            text.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()));
        }
    }
    text
}

#[test]
fn i12_what_looks_like_a_key_is_masked_where_it_is_shown_and_stored_but_not_for_model_and_tools() {
    let found = format!("ghp_{}", "a1b2".repeat(9));
    let command = format!("echo token={found}; echo {found} > file; cat file | wc -c");
    // A lenient server: the mask in a resumed history is a change of what it was sent before, and the only one.
    let lenient = ServeOptions { strict: false, ..ServeOptions::default() };
    let bench = Bench::with(&one_call(&command), lenient);
    let run = bench.run(&["-p", "go", "--output-format", "stream-json"], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    let result = format!("token={found}\n41\nexit code: 0");
    assert_eq!(results(&bench.requests()[1]), std::slice::from_ref(&result), "the model sees what there is");
    assert_eq!(bench.read("file"), Some(format!("{found}\n")), "and the tool works on it");
    for shown in [run.stdout, run.stderr, all_below(&bench.state())] {
        assert!(!shown.contains(&found), "{shown}");
    }
    let run = bench.run(&["--continue", "-p", "more"], "");
    assert_eq!(run.code, Some(0), "{run:?}");
    let after = results(bench.requests().last().unwrap());
    assert_eq!(after, [result.replace(&found, "[key hidden]")], "a history from a journal has the mask");
    let faults = bench.faults();
    assert!(faults.len() == 1 && faults[0].contains("the prefix changed"), "{faults:#?}");
}
