//! Arguments in, exit code out. The only place that ends the process.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use s15::cli::{Cli, Command};
use s15::config::{Config, FrontEnd, Place, Which, process_env};
use s15::run::{Opening, run};
use s15::{demo, doctor, sessions};

/// Usage or configuration.
const EXIT_CONFIGURATION: u8 = 2;
/// Threads that carry the tasks; each task is short or waits.
const WORKERS: usize = 2;

fn main() -> ExitCode {
    // Before anything else: a guardian starts with every command.
    #[cfg(target_os = "linux")]
    if let Some(code) = s15::tools::guard_if_asked() {
        return code;
    }
    // And so does a look at what this machine can hold commands with.
    #[cfg(target_os = "linux")]
    if let Some(code) = s15::sandbox::probe_if_asked() {
        return code;
    }
    // While there is no other thread. A process that can't be looked into leaves no image of itself behind either.
    s15::secrets::seal();
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_dumpable(false);
    let cli = Cli::parse();
    restore_terminal_on_panic();
    let code = start(&cli).unwrap_or_else(|refusal| {
        // Nobody to tell it to changes nothing about the exit code.
        let _ = writeln!(std::io::stderr(), "s15: {refusal:#}");
        EXIT_CONFIGURATION
    });
    // Threads that wait for a key or a pipe must not keep the process alive.
    std::process::exit(i32::from(code))
}

fn start(cli: &Cli) -> anyhow::Result<u8> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .enable_all()
        .build()
        .context("the runtime can't be started")?;
    let place = Place::here();
    match cli.command {
        Some(Command::Demo { script }) => runtime.block_on(demo::run(cli, script, &process_env, &place)),
        Some(Command::Sessions) => list_sessions(cli, &place),
        Some(Command::Doctor { json }) => Ok(examine(cli, json, &place)),
        None => {
            let mut config = Config::resolve(cli, &process_env, &place)?;
            if config.resume == Some(Which::Choose) {
                config.resume = Some(choose_session(&config)?);
            }
            runtime.block_on(run(config, Opening::default()))
        }
    }
}

fn examine(cli: &Cli, json: bool, place: &Place) -> u8 {
    let report = doctor::examine(cli, &process_env, place);
    let text = if json { report.json() } else { report.text() };
    // A reader that has had enough closes the pipe, and that is no fault.
    let _ = writeln!(std::io::stdout(), "{text}");
    report.exit_code()
}

fn list_sessions(cli: &Cli, place: &Place) -> anyhow::Result<u8> {
    let sessions = sessions::all(&Config::state_dir_of(cli, &process_env, place)?);
    let mut out = std::io::stdout().lock();
    // A reader that has had enough closes the pipe, and that is no fault.
    for session in &sessions {
        let _ = writeln!(out, "{}\n          {}", session.line(), session.workspace.display());
    }
    if sessions.is_empty() {
        let _ = writeln!(out, "no sessions yet; s15 starts one");
    }
    Ok(0)
}

/// Shows the workspace's sessions and asks for one.
fn choose_session(config: &Config) -> anyhow::Result<Which> {
    let sessions = sessions::of_workspace(&config.state_dir, &config.workspace);
    let mut err = std::io::stderr().lock();
    for (index, session) in sessions.iter().enumerate() {
        writeln!(err, "{:>3}  {}", index + 1, session.line())?;
    }
    anyhow::ensure!(!sessions.is_empty(), "there is no session to go on with in {}", config.workspace.display());
    anyhow::ensure!(config.front == FrontEnd::Terminal, "name one of these: s15 --resume ID");
    write!(err, "Which one? [1] ")?;
    err.flush()?;
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    let number = if line.trim().is_empty() { Ok(1) } else { line.trim().parse::<usize>() };
    let chosen = number.ok().and_then(|number| sessions.get(number.checked_sub(1)?));
    let chosen = chosen.with_context(|| format!("{:?} is no number of the list", line.trim()))?;
    Ok(Which::Named(chosen.id.to_string()))
}

/// A panic in a task is caught and told by the session. One in the program's own threads ends it, and must not leave a
/// terminal without echo.
fn restore_terminal_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        if thread.name().is_some_and(|name| name != "tokio-rt-worker") {
            s15::ui::restore_terminal();
            let words = panic.to_string();
            let words = s15::journal::Mask::default().text(&words).into_owned();
            let _ = writeln!(std::io::stderr(), "s15: internal fault in {:?}: {words}", thread.name());
        }
    }));
}
