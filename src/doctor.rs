//! `s15 doctor`: what is in force on this machine, for this workspace, before any model is asked.
//!
//! Looks and tells; changes nothing, asks no server, and never tells a key.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};
use serde::Serialize;

use crate::cli::Cli;
use crate::config::{Config, Env, Place};
use crate::fence::{self, THIS_PROGRAM};
use crate::lock::{self, workspace_folder};
use crate::sandbox::{Bounds, Network, Support, Wanted};
use crate::tools::Environment;

/// Nothing is wrong.
const EXIT_WELL: u8 = 0;
/// Something is.
const EXIT_WRONG: u8 = 1;

/// All that was found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Is nothing wrong?
    ok: bool,
    findings: Vec<Finding>,
    support: Support,
    /// What commands are held to, if they are.
    bounds: Option<Told>,
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Finding {
    topic: &'static str,
    state: State,
    text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Well,
    /// Works, and leaves something open that the user should know of.
    Weak,
    Wrong,
}

/// Bounds, as far as their places exist.
#[derive(Debug, Serialize)]
struct Told {
    writable: Vec<String>,
    read_only: Vec<String>,
    hidden: Vec<String>,
    network: bool,
}

/// Looks at everything.
#[must_use]
pub fn examine(cli: &Cli, env: Env<'_>, place: &Place) -> Report {
    let support = Support::of_this_machine(Path::new(THIS_PROGRAM)).clone();
    let mut findings = vec![kernel(&support)];
    let bounds = match Config::resolve(cli, env, place) {
        Ok(config) => of_config(&config, &support, &mut findings),
        Err(error) => {
            findings.push(finding("configuration", State::Wrong, error.to_string()));
            None
        }
    };
    findings.push(programs());
    findings.push(terminal(place, env));
    Report { ok: findings.iter().all(|finding| finding.state != State::Wrong), findings, support, bounds }
}

fn finding(topic: &'static str, state: State, text: impl Into<String>) -> Finding {
    Finding { topic, state, text: text.into() }
}

fn of_config(config: &Config, support: &Support, findings: &mut Vec<Finding>) -> Option<Told> {
    let notes = config.warnings.iter().map(|warning| finding("configuration", State::Weak, warning.clone()));
    findings.extend(notes);
    let folder = workspace_folder(&config.state_dir, &config.workspace);
    // A session would have folders of its own; these stand for them.
    let bounds =
        fence::bounds(config, support, &std::env::temp_dir().join("s15-SESSION"), &folder.join("sessions/ID/out"));
    findings.push(sandbox(config, support, &bounds));
    let weakness = fence::weakness(&bounds, &config.workspace).filter(|_| bounds.means.any());
    findings.extend(weakness.map(|text| finding("sandbox", State::Weak, text)));
    if bounds.means.any() {
        findings.extend(old_kernel(support, &bounds));
        findings.push(places("writable", &bounds.writable));
        findings.push(places("read-only in it", &there(&bounds.read_only)));
        findings.push(places("hidden", &there(&bounds.hidden)));
        findings.push(network(&bounds));
    }
    findings.push(environment(config));
    findings.push(server(config));
    findings.push(state_folder(&config.state_dir));
    findings.push(workspace(config));
    bounds.means.any().then(|| Told {
        writable: names(&bounds.writable),
        read_only: names(&there(&bounds.read_only)),
        hidden: names(&there(&bounds.hidden)),
        network: bounds.network == Network::Allowed,
    })
}

fn kernel(support: &Support) -> Finding {
    let landlock = match support.landlock {
        Some(version) => format!("Landlock: version {version}"),
        None => "Landlock: no".to_owned(),
    };
    let namespaces = match &support.no_mounts_since {
        None => "namespaces with mounts: yes".to_owned(),
        Some(why) => format!("namespaces with mounts: no ({why})"),
    };
    let network = if support.network { "a network of one's own: yes" } else { "a network of one's own: no" };
    let mut text = format!("{landlock}; {namespaces}; {network}");
    if support.seatbelt {
        text = "sandbox-exec: yes (untested)".to_owned();
    }
    finding("machine", State::Well, text)
}

fn sandbox(config: &Config, support: &Support, bounds: &Bounds) -> Finding {
    let means = bounds.means;
    let with: Vec<_> =
        [(means.mounts, "read-only mounts"), (means.landlock, "Landlock"), (means.seatbelt, "sandbox-exec")]
            .into_iter()
            .filter(|(had, _)| *had)
            .map(|(_, name)| name)
            .collect();
    match (with.is_empty(), config.confinement.wanted) {
        (false, _) => finding("sandbox", State::Well, format!("on, with {}", with.join(" and "))),
        (true, Wanted::Off) => finding("sandbox", State::Weak, fence::OFF),
        (true, wanted) => finding("sandbox", State::Wrong, fence::no_means(wanted, support)),
    }
}

/// What older kernels can't hold.
fn old_kernel(support: &Support, bounds: &Bounds) -> Vec<Finding> {
    let version = if bounds.means.landlock { support.landlock.unwrap_or(0) } else { 0 };
    if bounds.means.seatbelt {
        return Vec::new();
    }
    let alone = !bounds.means.mounts;
    let open = [
        (alone && version < 2, "a file can't be moved to another folder by commands (Linux 5.19 can do that)"),
        (alone && version < 3, "a file that commands can't write can be cut off by them (until Linux 6.2)"),
        (alone, "modes, owners and times of files outside can be changed by commands, where you can"),
        (alone && version < 9, "commands can talk to sockets of other programs, docker's too"),
        (version < 6, "commands can send signals to other processes of yours (until Linux 6.12)"),
    ];
    let open = open.into_iter().filter(|(holds, _)| *holds);
    open.map(|(_, text)| finding("left open", State::Weak, text)).collect()
}

fn places(topic: &'static str, places: &[PathBuf]) -> Finding {
    let names = names(places);
    finding(topic, State::Well, if names.is_empty() { "nothing that exists".to_owned() } else { names.join("\n") })
}

fn there(places: &[PathBuf]) -> Vec<PathBuf> {
    places.iter().filter(|place| place.symlink_metadata().is_ok()).cloned().collect()
}

fn names(places: &[PathBuf]) -> Vec<String> {
    places.iter().map(|place| place.display().to_string()).collect()
}

fn network(bounds: &Bounds) -> Finding {
    let text = match bounds.network {
        Network::Allowed => "open to commands; sandbox_network = false closes it",
        Network::Denied if bounds.means.network => "closed to commands but for a loopback of their own",
        Network::Denied => "TCP is closed to commands",
    };
    finding("network", State::Well, text)
}

fn environment(config: &Config) -> Finding {
    let told = Environment::new(&config.env_pass, config.api_key.as_ref().map(crate::config::Key::expose)).told();
    let list = |names: &[String]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    let text = format!(
        "commands get all variables but: {}\nand of those that look like secrets: {}",
        list(&told.held_back),
        list(&told.passed)
    );
    finding("environment", State::Well, text)
}

fn server(config: &Config) -> Finding {
    let key = if config.api_key.is_some() { "with a key" } else { "without a key" };
    finding("server", State::Well, format!("{} {key}, model {}", config.base_url, config.model))
}

fn state_folder(folder: &Path) -> Finding {
    let existing = folder.ancestors().find(|folder| folder.exists()).unwrap_or(folder);
    let shown = folder.display();
    match access(existing, AccessFlags::W_OK | AccessFlags::X_OK) {
        Ok(()) if existing.is_dir() => finding("state folder", State::Well, shown.to_string()),
        Ok(()) => finding("state folder", State::Wrong, format!("{shown}: {} is no folder", existing.display())),
        Err(error) => {
            finding("state folder", State::Wrong, format!("{shown}: {} can't be written ({error})", existing.display()))
        }
    }
}

fn workspace(config: &Config) -> Finding {
    let shown = config.workspace.display();
    if let Err(error) = access(&config.workspace, AccessFlags::W_OK) {
        return finding("workspace", State::Wrong, format!("{shown} can't be written ({error})"));
    }
    match lock::is_held(&config.state_dir, &config.workspace) {
        Some(holder) => {
            let text = format!("{shown}; another s15 works here (process {}, since {})", holder.pid, holder.since);
            finding("workspace", State::Weak, text)
        }
        None => finding("workspace", State::Well, format!("{shown}; no other s15 works here")),
    }
}

fn programs() -> Finding {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |name: &str| {
        let places = std::env::split_paths(&path).map(|folder| folder.join(name));
        places.into_iter().find(|place| access(place, AccessFlags::X_OK).is_ok() && place.is_file())
    };
    match found("bash") {
        Some(bash) => finding("bash", State::Well, bash.display().to_string()),
        None => finding("bash", State::Wrong, "not found in PATH; commands can't be run"),
    }
}

fn terminal(place: &Place, env: Env<'_>) -> Finding {
    let term = env("TERM").unwrap_or_else(|| "not set".to_owned());
    let text = match (place.stdin_is_terminal, place.stdout_is_terminal) {
        (true, true) => format!("yes, TERM={term}"),
        (false, _) => "no: standard input is a pipe or file; lines are read from it".to_owned(),
        (true, false) => "no: standard output goes to a pipe or file".to_owned(),
    };
    finding("terminal", State::Well, text)
}

impl Report {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        const TOPIC_COLUMNS: usize = 16;
        let mut text = String::new();
        for Finding { topic, state, text: what } in &self.findings {
            let mark = match state {
                State::Well => ' ',
                State::Weak => '!',
                State::Wrong => 'X',
            };
            for (number, line) in what.lines().enumerate() {
                let (mark, topic) = if number == 0 { (mark, *topic) } else { (' ', "") };
                // Writing to a String can't fail.
                let _ = writeln!(text, "{mark} {topic:TOPIC_COLUMNS$}{line}");
            }
        }
        text + if self.ok { "nothing is wrong" } else { "X marks what is wrong" }
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> String {
        // Texts, numbers and lists have no way to fail.
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// 0 if nothing is wrong.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        if self.ok { EXIT_WELL } else { EXIT_WRONG }
    }
}
