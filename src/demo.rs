//! What `s15 demo` runs on: the sample backend, unpacked into a temporary folder, and the scenario that tells its story.
//!
//! Knows nothing of terminals or sessions: it only gives the folder and the scenario.

use std::fs;
use std::io;
use std::path::Path;

use tempfile::TempDir;

use crate::scenario::Scenario;

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

#[cfg(test)]
mod story_tests;
#[cfg(test)]
mod tests;
