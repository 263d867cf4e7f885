//! Arguments in, exit code out. The only place that ends the process.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use clap::Parser;
use s15::cli::{Cli, Command};
use s15::config::{Config, Place, process_env};
use s15::demo;
use s15::run::{Opening, run};

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
        None => {
            let config = Config::resolve(cli, &process_env, &place)?;
            runtime.block_on(run(config, Opening::default()))
        }
    }
}

/// A panic in a task is caught and told by the session. One in the program's own threads ends it, and must not leave a
/// terminal without echo.
fn restore_terminal_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        if thread.name().is_some_and(|name| name != "tokio-rt-worker") {
            s15::ui::restore_terminal();
            let _ = writeln!(std::io::stderr(), "s15: internal fault in {:?}: {panic}", thread.name());
        }
    }));
}
