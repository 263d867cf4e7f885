//! `s15 demo`: the sample backend in a temporary folder, a server that tells a scripted story, and the ordinary program between.
//!
//! Knows nothing of how a session works: it sets the stage, runs the program on it, and looks at what the server saw.

use std::fs;
use std::io;
use std::path::Path;

use std::time::Duration;

use anyhow::Context;
use tempfile::TempDir;

use crate::cli::Cli;
use crate::config::{Config, Env, Place, Stage};
use crate::run::{self, Opening};
use crate::scenario::{Scenario, ServeOptions, serve};

/// The request that begins the story; `--script` types it.
pub const DEMO_REQUEST: &str =
    "请重构这个示例后端，分别整理配置加载、认证逻辑和测试，保持现有接口兼容，并确保测试通过。";
/// The line that confirms the proposed team.
pub const DEMO_CONFIRMATION: &str = "开始吧";

const SCRIPT: &str = include_str!("../fixtures/scenarios/demo.toml");

/// What the scripted teammates write.
const EDITS: [(&str, &str); 3] = [
    ("edits/config.rs", include_str!("../fixtures/edits/config.rs")),
    ("edits/auth.rs", include_str!("../fixtures/edits/auth.rs")),
    ("edits/regression.rs", include_str!("../fixtures/edits/regression.rs")),
];

/// The sample, by its paths when unpacked. Some have other names in the repo, where a manifest in a folder below
/// would keep that folder out of the package.
const SAMPLE: [(&str, &str); 8] = [
    ("Cargo.toml", include_str!("../fixtures/sample-backend/Cargo.toml.txt")),
    (".gitignore", include_str!("../fixtures/sample-backend/gitignore.txt")),
    ("backend.conf", include_str!("../fixtures/sample-backend/backend.conf")),
    ("src/lib.rs", include_str!("../fixtures/sample-backend/src/lib.rs")),
    ("src/main.rs", include_str!("../fixtures/sample-backend/src/main.rs")),
    ("src/config.rs", include_str!("../fixtures/sample-backend/src/config.rs")),
    ("src/auth.rs", include_str!("../fixtures/sample-backend/src/auth.rs")),
    ("tests/basic.rs", include_str!("../fixtures/sample-backend/tests/basic.rs")),
];

/// The demo's scenario.
///
/// # Errors
/// Never in a build whose tests pass; the text names the rule.
pub fn demo_scenario() -> Result<Scenario, String> {
    Scenario::parse_with_files(SCRIPT, &EDITS)
}

/// Unpacks the sample into a new temporary folder, which is removed when the returned value is dropped
/// (`TempDir::keep` keeps it).
///
/// # Errors
/// When the folder can't be made or written.
pub fn unpack_sample() -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("s15-demo-").tempdir()?;
    unpack_sample_into(folder.path())?;
    Ok(folder)
}

/// Unpacks the sample into a folder that is there; files of the same names are overwritten.
///
/// # Errors
/// When a file can't be written.
pub fn unpack_sample_into(folder: &Path) -> io::Result<()> {
    for (path, text) in SAMPLE {
        let path = folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)?;
    }
    Ok(())
}

/// The longest random delay of a scripted reply, unless set: enough to see who waits for whom.
const DELAY_MAX_DEFAULT: Duration = Duration::from_millis(600);
/// Between two pieces of a scripted text, so that it is seen to grow.
const PIECE_DELAY: Duration = Duration::from_millis(25);
/// The name that the scripted replies go by.
const MODEL: &str = "scripted";
/// A request of the program's own that a strict server would refuse.
const EXIT_FAULT: u8 = 1;

const WORDS: &str = "\
demo: the model's replies are scripted; everything else is real: server, client, tools, files, mail, gates, cargo.
演示：模型的回复是预先写好的脚本，其余全部真实。示例在临时文件夹里，退出时删除。
Type 重构 (or: refactor) to begin, then 开始吧 / yes, or 不 / no. Ctrl-D leaves.";

/// Runs the demo; gives the process' exit code. `script`: nobody types, the story's two lines are said by themselves.
///
/// # Errors
/// One clear text for exit code 2: the stage can't be set.
pub async fn run(cli: &Cli, script: bool, env: Env<'_>, place: &Place) -> anyhow::Result<u8> {
    let folder = unpack_sample().context("the sample can't be put into a temporary folder")?;
    let state = tempfile::tempdir().context("no temporary folder can be had")?;
    let number = |name: &str| env(name).and_then(|text| text.parse::<u64>().ok());
    let options = ServeOptions {
        seed: number("S15_DEMO_SEED").unwrap_or_else(|| u64::from(std::process::id())),
        delay_max: number("S15_DEMO_DELAY_MS").map_or(DELAY_MAX_DEFAULT, Duration::from_millis),
        piece_delay: if script { Duration::ZERO } else { PIECE_DELAY },
        ..ServeOptions::default()
    };
    let server = serve(demo_scenario().map_err(anyhow::Error::msg)?, options).await.context("no port on 127.0.0.1")?;
    let stage = Stage {
        workspace: folder.path().to_owned(),
        state_dir: state.path().to_owned(),
        base_url: server.url(),
        model: MODEL.to_owned(),
    };
    let config = Config::for_demo(cli, &stage, env, place)?;
    let by_itself = script || !place.stdin_is_terminal || !place.stdout_is_terminal;
    let lines = vec![DEMO_REQUEST.to_owned(), DEMO_CONFIRMATION.to_owned()];
    let opening = Opening { words: Some(WORDS.to_owned()), script: by_itself.then_some(lines) };
    let code = run::run(config, opening).await?;
    match server.faults().first() {
        Some(fault) if code == 0 => {
            use std::io::Write;
            // Nobody to tell it to changes nothing about the exit code.
            let _ = writeln!(io::stderr(), "s15: a request that strict servers refuse: {fault}");
            Ok(EXIT_FAULT)
        }
        Some(_) | None => Ok(code),
    }
}

#[cfg(test)]
mod story_tests;
#[cfg(test)]
mod tests;
