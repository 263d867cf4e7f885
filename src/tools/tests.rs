//! The tools over ordinary, edge and hostile input. Nothing here waits for a clock.

mod edits;
mod files;
mod hostile;
mod limited;
mod parsing;
mod paths;
mod schemas;
mod searches;
mod shells;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};

use super::*;

/// A workspace `ws` with a folder beside it that must stay as it is.
struct Bench {
    folder: tempfile::TempDir,
    workshop: Workshop,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("ws")).unwrap();
        std::fs::create_dir(folder.path().join("outside")).unwrap();
        let workshop =
            Workshop::new(&folder.path().join("ws"), folder.path().join("state/out"), Duration::from_secs(60)).unwrap();
        Self { folder, workshop }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("ws").join(path)
    }

    fn outside(&self, path: &str) -> PathBuf {
        self.folder.path().join("outside").join(path)
    }

    fn file(self, path: &str, content: impl AsRef<[u8]>) -> Self {
        std::fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        std::fs::write(self.path(path), content).unwrap();
        self
    }

    fn link(self, target: impl AsRef<Path>, path: &str) -> Self {
        std::os::unix::fs::symlink(target, self.path(path)).unwrap();
        self
    }

    fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.path(path)).unwrap()
    }

    /// Everything below the workspace by its name, so that nothing is left behind unseen.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.path(""))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    async fn run(&self, tool: &str, arguments: Value) -> Output {
        self.run_until(tool, arguments, Box::pin(std::future::pending())).await
    }

    async fn run_until(&self, tool: &str, arguments: Value, stop: Stop<'_>) -> Output {
        match parse(Role::Lead, tool, fields(arguments)) {
            Ok(Call::Local(call)) => check(self.workshop.run(call, stop).await),
            Ok(Call::Team(_)) => panic!("{tool} is a team tool"),
            Err(text) => check(Output { ok: false, text }),
        }
    }
}

/// What holds for every output.
fn check(output: Output) -> Output {
    assert!(!output.text.is_empty());
    assert!(!output.ok || !output.text.starts_with("error:"), "{}", output.text);
    output
}

fn fields(arguments: Value) -> Map<String, Value> {
    match arguments {
        Value::Object(fields) => fields,
        other => panic!("an object, not {other}"),
    }
}
