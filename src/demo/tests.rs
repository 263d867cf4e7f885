//! The sample is a working crate before and after the story; the script is valid.

pub(super) mod driver;

use std::path::Path;
use std::process::Command;

use super::*;

/// Runs the sample's own tests with nothing outside its folder; gives what cargo printed.
pub(super) fn cargo_test(folder: &Path) -> (bool, String) {
    let output = Command::new("cargo")
        .args(["test", "--offline", "--quiet"])
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", folder.join("target"))
        .env("CARGO_TERM_COLOR", "never")
        .env_remove("RUSTFLAGS")
        .output()
        .expect("cargo runs: it runs this test");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&text).into_owned())
}

#[test]
fn the_script_is_valid() {
    demo_scenario().unwrap();
}

#[test]
fn the_sample_passes_its_tests_in_every_mix_of_old_and_new() {
    let folder = unpack_sample().unwrap();
    let [config, auth, regression] = EDITS;
    let originals = [SAMPLE[5].1, SAMPLE[6].1];
    // Gray code: each step changes one file, as a teammate would.
    let mixes = [(originals[0], originals[1]), (config.1, originals[1]), (config.1, auth.1), (originals[0], auth.1)];
    let (ok, text) = cargo_test(folder.path());
    assert!(ok && text.contains("3 passed"), "{text}");
    fs::write(folder.path().join("tests/regression.rs"), regression.1).unwrap();
    for (config, auth) in mixes {
        fs::write(folder.path().join("src/config.rs"), config).unwrap();
        fs::write(folder.path().join("src/auth.rs"), auth).unwrap();
        let (ok, text) = cargo_test(folder.path());
        assert!(ok && text.contains("10 passed") && !text.contains("warning"), "{text}");
    }
}
