//! No key reaches a command, a journal or the terminal, nor can it be found where the system shows processes.
#![cfg(target_os = "linux")]

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
