//! Configuration from given arguments, variables and files; the process' own environment is never touched.

use std::fs;
use std::path::Path;
use std::time::Duration;

use clap::{CommandFactory, Parser};

use super::setting::Setting;
use super::*;
use crate::sandbox::{Network, Wanted};

/// A home, a workspace and a set of variables.
struct Scene {
    root: tempfile::TempDir,
    variables: Vec<(String, String)>,
    terminal: bool,
}

impl Scene {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("home/.config/s15")).unwrap();
        fs::create_dir(root.path().join("ws")).unwrap();
        Self { root, variables: Vec::new(), terminal: true }
    }

    /// A scene with a local server and a model, so that only what a test is about can be wrong.
    fn ready() -> Self {
        Self::new().set("OPENAI_BASE_URL", "http://127.0.0.1:1/v1").set("OPENAI_MODEL", "m")
    }

    fn set(mut self, name: &str, value: &str) -> Self {
        self.variables.insert(0, (name.to_owned(), value.to_owned()));
        self
    }

    fn user_file(self, text: &str) -> Self {
        fs::write(self.root.path().join("home/.config/s15/config.toml"), text).unwrap();
        self
    }

    fn project_file(self, text: &str) -> Self {
        fs::write(self.root.path().join("ws/.s15.toml"), text).unwrap();
        self
    }

    fn place(&self) -> Place {
        Place {
            cwd: self.root.path().join("ws"),
            home: Some(self.root.path().join("home")),
            stdin_is_terminal: self.terminal,
            stdout_is_terminal: self.terminal,
            stderr_is_terminal: self.terminal,
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn resolve(&self, arguments: &[&str]) -> Result<Config, String> {
        let cli = Cli::try_parse_from([&["s15"], arguments].concat()).unwrap();
        Config::resolve(&cli, &|name| self.get(name), &self.place()).map_err(|error| error.to_string())
    }

    fn fails(&self, arguments: &[&str], parts: &[&str]) {
        let error = self.resolve(arguments).expect_err("must be refused");
        assert_eq!(error.lines().count(), 1, "{error}");
        for part in parts {
            assert!(error.contains(part), "{part:?} is not in: {error}");
        }
    }
}

#[test]
fn without_key_and_server_one_line_names_the_three_ways() {
    Scene::new().fails(&[], &["OPENAI_API_KEY", "OPENAI_BASE_URL", "s15 demo"]);
    Scene::new().set("OPENAI_API_KEY", "  ").set("OPENAI_BASE_URL", "").fails(&[], &["s15 demo"]);
}

#[test]
fn a_key_alone_means_openai_and_a_server_alone_needs_a_model() {
    let config = Scene::new().set("OPENAI_API_KEY", "sk-1").resolve(&[]).unwrap();
    assert_eq!((config.base_url.as_str(), config.model.as_str()), (OPENAI_BASE_URL_DEFAULT, OPENAI_MODEL_DEFAULT));
    let local = Scene::new().set("OPENAI_BASE_URL", "http://localhost:8080/v1");
    local.fails(&[], &["http://localhost:8080/v1", "OPENAI_MODEL", "--model"]);
    let config = local.resolve(&["-m", "qwen"]).unwrap();
    assert_eq!((config.api_key, config.model, config.teammate_model), (None, "qwen".into(), "qwen".into()));
}

#[test]
fn a_flag_beats_the_environment_beats_the_file_beats_the_project_beats_the_default() {
    type Row<'a> = (&'a str, &'a [&'a str], &'a [(&'a str, &'a str)], &'a str, &'a str, &'a str);
    let rows: [Row<'_>; 8] = [
        ("default", &[], &[], "", "", "gpt-5-mini"),
        ("project", &[], &[], "", "model = 'p'", "p"),
        ("file over project", &[], &[], "model = 'f'", "model = 'p'", "f"),
        ("environment over file", &[], &[("OPENAI_MODEL", "e")], "model = 'f'", "", "e"),
        ("its own variable first", &[], &[("OPENAI_MODEL", "e"), ("S15_MODEL", "s")], "", "", "s"),
        ("an empty variable says nothing", &[], &[("OPENAI_MODEL", " ")], "model = 'f'", "", "f"),
        ("flag over all", &["-m", "c"], &[("OPENAI_MODEL", "e")], "model = 'f'", "model = 'p'", "c"),
        ("white space is dropped", &["-m", " c\t"], &[], "", "", "c"),
    ];
    for (what, flags, variables, user, project, expected) in rows {
        let mut scene = Scene::new().set("OPENAI_API_KEY", "sk-1").user_file(user).project_file(project);
        for (name, value) in variables {
            scene = scene.set(name, value);
        }
        assert_eq!(scene.resolve(flags).unwrap().model, expected, "{what}");
    }
}

#[test]
fn every_setting_has_its_flag_and_its_line_in_the_readme() {
    let command = Cli::command();
    let readme = include_str!("../../README.md");
    for setting in Setting::ALL {
        assert_eq!(Setting::from_key(setting.key()), Some(setting));
        for variable in setting.variables() {
            assert!(readme.contains(&format!("`{variable}`")), "{variable} is not in the README");
        }
        let Some(flag) = setting.flag() else { continue };
        let known = command.get_arguments().filter_map(clap::Arg::get_long).any(|long| flag[2..] == *long);
        assert!(known, "{flag} can't be typed");
        assert!(readme.contains(&flag), "{flag} is not in the README");
        if setting.in_user_file() {
            assert!(readme.contains(&format!("`{}`", setting.key())), "{} is not in the README", setting.key());
        }
    }
    let flags = command.get_arguments().filter_map(clap::Arg::get_long);
    for flag in flags.filter(|flag| !["print", "continue", "resume", "help", "version"].contains(flag)) {
        assert!(Setting::from_key(&flag.replace('-', "_")).is_some(), "--{flag} is no setting");
    }
}

#[test]
fn every_setting_can_come_from_the_environment_and_every_limit_from_the_file() {
    let config = Scene::ready()
        .set("S15_MAX_TEAMMATES", "3")
        .set("S15_BASH_TIMEOUT", "7")
        .set("S15_REQUEST_TIMEOUT", "8")
        .set("S15_STATE_DIR", "/nowhere/state")
        .set("S15_TEAMMATE_MODEL", "small")
        .set("S15_YES", "true")
        .user_file("turn_calls_max = 9\nretries_max = 0\nretry_base_ms = 20\nretry_wait_max = 2\nconnect_timeout = 3\nfirst_byte_timeout = 4\nidle_timeout = \"5\"\njob_timeout = 6\nenv_pass = ['GH_TOKEN', 'AWS_*']\nsandbox = 'landlock'\nsandbox_write = ['~/.cargo/registry', '/srv/a b']\nsandbox_network = false\ncolor = 'always'")
        .resolve(&[])
        .unwrap();
    let seconds = Duration::from_secs;
    let limits = Limits {
        teammates_max: 3,
        turn_calls_max: 9,
        bash_timeout: seconds(7),
        job_timeout: seconds(6),
        request_timeout: seconds(8),
        retries_max: 0,
        retry_base: Duration::from_millis(20),
        retry_wait_max: seconds(2),
        connect_timeout: seconds(3),
        first_byte_timeout: seconds(4),
        idle_timeout: seconds(5),
    };
    assert_eq!(config.limits, limits);
    assert_eq!((config.state_dir.as_path(), config.teammate_model.as_str()), (Path::new("/nowhere/state"), "small"));
    assert!(config.yes && config.color);
    assert_eq!(config.env_pass, ["GH_TOKEN", "AWS_*"]);
    let Confinement { wanted, write, network, home, settings, runtime_dir } = config.confinement;
    let home = home.unwrap();
    assert_eq!((wanted, network, runtime_dir), (Wanted::Landlock, Network::Denied, None));
    assert_eq!(write, [home.join(".cargo/registry"), "/srv/a b".into()]);
    assert_eq!(settings, Some(home.join(".config/s15/config.toml")));
}

#[test]
fn what_is_out_of_bounds_is_refused_with_its_name_and_its_bounds() {
    for (flag, value, parts) in [
        ("--max-teammates", "0", ["--max-teammates", "1 to 256"]),
        ("--max-teammates", "-1", ["--max-teammates", "whole number"]),
        ("--bash-timeout", "2h", ["--bash-timeout", "seconds"]),
        ("--retry-base-ms", "1.5", ["--retry-base-ms", "milliseconds"]),
        ("--turn-calls-max", "99999999999999", ["--turn-calls-max", "whole number"]),
        ("--model", "", ["--model", "not the name"]),
        ("--model", "a\nb", ["--model", "not the name"]),
        ("--base-url", "api.example.com/v1", ["--base-url", "like https://"]),
        ("--base-url", "ftp://example.com", ["--base-url", "http"]),
        ("--base-url", "http://a.example/v1?x=1", ["--base-url", "without"]),
        ("--cd", "nowhere", ["--cd", "nowhere"]),
        ("--config", "nowhere.toml", ["--config", "nowhere.toml"]),
    ] {
        Scene::ready().fails(&[&format!("{flag}={value}")], &parts);
    }
    Scene::ready().set("S15_YES", "perhaps").fails(&[], &["S15_YES", "neither"]);
    Scene::ready().set("S15_COLOR", "pink").fails(&[], &["S15_COLOR", "auto, always, never"]);
    Scene::ready().set("S15_MODEL", "\u{fffd}").fails(&[], &["S15_MODEL", "UTF-8"]);
    Scene::ready().fails(&["-p", " "], &["--print", "empty"]);
    Scene::ready().fails(&["--output-format", "json"], &["--output-format", "--print"]);
}

#[test]
fn the_workspace_is_canonical_and_must_be_a_folder() {
    let scene = Scene::ready();
    fs::write(scene.root.path().join("ws/file"), "").unwrap();
    fs::create_dir(scene.root.path().join("ws/sub")).unwrap();
    scene.fails(&["-C", "file"], &["file", "not a folder", "-C"]);
    let expected = scene.root.path().canonicalize().unwrap().join("ws/sub");
    assert_eq!(scene.resolve(&["-C", "sub/../sub/"]).unwrap().workspace, expected);
}

#[test]
fn a_base_url_loses_its_last_slash_and_the_path_of_a_call() {
    for given in ["http://h:1/v1", "http://h:1/v1/", " http://h:1/v1// ", "http://h:1/v1/chat/completions"] {
        assert_eq!(Scene::ready().resolve(&["--base-url", given]).unwrap().base_url, "http://h:1/v1", "{given}");
    }
}

#[test]
fn i12_no_key_and_no_password_is_in_an_error_or_a_debug_text() {
    let key = "sk-very-secret";
    let config = Scene::new().set("OPENAI_API_KEY", &format!(" {key}\n")).resolve(&[]).unwrap();
    assert_eq!(config.api_key.as_ref().unwrap().expose(), key);
    assert!(!format!("{config:?} {}", config.api_key.as_ref().unwrap()).contains(key));
    let hides = |scene: Scene, arguments: &[&str], name: &str| {
        let error = scene.resolve(arguments).unwrap_err();
        assert!(error.contains(name) && !error.contains("secret"), "{error}");
    };
    hides(Scene::new().set("OPENAI_API_KEY", "sk-very\nsecret"), &[], "OPENAI_API_KEY");
    hides(Scene::new().set("OPENAI_API_KEY", "sk-secret-é"), &[], "OPENAI_API_KEY");
    hides(Scene::ready(), &["--base-url", "http://me:secret@h/v1"], "--base-url");
    hides(Scene::ready(), &["--base-url", "me:secret@h/v1"], "--base-url");
    hides(Scene::ready().user_file("api_key = \"sk-secret\nmodel = 3"), &[], "config.toml line 1");
    hides(Scene::ready().user_file("api_key = [\"sk-secret\"]"), &[], "api_key in");
    hides(Scene::ready().user_file("api_keys = \"sk-secret\""), &[], "`api_keys`");
}

#[test]
fn an_unknown_key_in_the_users_file_is_named_with_the_file() {
    Scene::ready().user_file("modle = 'x'").fails(&[], &["config.toml", "`modle`", "teammate_model"]);
    Scene::ready().user_file("cd = '/'").fails(&[], &["`cd`"]);
    Scene::ready().user_file("model = [1]").fails(&[], &["model in", "text"]);
    Scene::ready().user_file("= 1").fails(&[], &["config.toml line 1"]);
}

#[test]
fn i2_a_project_can_only_narrow() {
    let scene = Scene::ready().set("OPENAI_API_KEY", "sk-1").project_file(
        "base_url = 'http://evil.example/v1'\napi_key = 'planted'\nyes = true\nstate_dir = '/tmp'\nmax_teammates = 2\nwhat = {}",
    );
    let config = scene.resolve(&[]).unwrap();
    assert_eq!(config.base_url, "http://127.0.0.1:1/v1");
    assert_eq!(config.api_key.as_ref().unwrap().expose(), "sk-1");
    assert_eq!((config.yes, config.limits.teammates_max), (false, 2));
    for key in ["base_url", "api_key", "yes", "state_dir", "what"] {
        let warned = config.warnings.iter().filter(|warning| warning.starts_with(&format!("{key} in"))).count();
        assert_eq!(warned, 1, "{key}: {:?}", config.warnings);
    }
    assert_eq!(scene.resolve(&["--max-teammates", "1"]).unwrap().limits.teammates_max, 1);

    let config = Scene::ready().project_file("max_teammates = 99").resolve(&[]).unwrap();
    assert_eq!(config.limits.teammates_max, 8);
    assert!(config.warnings[0].contains("can't raise"), "{:?}", config.warnings);
    Scene::ready().project_file("max_teammates = ").fails(&[], &[".s15.toml line 1"]);
    Scene::ready().project_file("max_teammates = 0").fails(&[], &["max_teammates in", ".s15.toml"]);
}

#[test]
fn a_projects_env_file_is_never_read() {
    let scene = Scene::new();
    let text = "OPENAI_BASE_URL=http://evil.example/v1\nOPENAI_API_KEY=sk-planted\nOPENAI_MODEL=m\n";
    fs::write(scene.root.path().join("ws/.env"), text).unwrap();
    scene.fails(&[], &["no model server"]);
}

#[test]
fn the_front_end_follows_from_flags_and_terminals() {
    let mut scene = Scene::ready();
    let front = |scene: &Scene, arguments: &[&str]| scene.resolve(arguments).unwrap().front;
    assert_eq!(front(&scene, &["hello"]), FrontEnd::Terminal);
    assert_eq!(scene.resolve(&["hello"]).unwrap().first_line.as_deref(), Some("hello"));
    let print = |format| FrontEnd::Print { prompt: "hi".into(), format };
    assert_eq!(front(&scene, &["-p", "hi"]), print(OutputFormat::Text));
    assert_eq!(front(&scene, &["-p", "hi", "--output-format", "stream-json"]), print(OutputFormat::StreamJson));
    scene.terminal = false;
    assert_eq!(front(&scene, &[]), FrontEnd::Pipe);
    let scene = scene.set("S15_OUTPUT_FORMAT", "json");
    assert_eq!(front(&scene, &[]), FrontEnd::Pipe);
    assert_eq!(front(&scene, &["-p", "hi"]), print(OutputFormat::Json));
}

#[test]
fn colour_is_for_terminals_unless_somebody_says_otherwise() {
    let color = |scene: &Scene, arguments: &[&str]| scene.resolve(arguments).unwrap().color;
    let scene = Scene::ready();
    assert!(color(&scene, &[]));
    assert!(!color(&scene, &["--color", "never"]));
    let scene = scene.set("NO_COLOR", "1").user_file("color = 'always'");
    assert!(!color(&scene, &[]));
    assert!(color(&scene, &["--color", "always"]));
    assert!(color(&scene.set("S15_COLOR", "always"), &[]));
    assert!(!color(&Scene::ready().set("TERM", "dumb"), &[]));
    let mut piped = Scene::ready();
    piped.terminal = false;
    assert!(!color(&piped, &[]));
}

#[test]
fn the_state_folder_follows_xdg_and_is_outside_the_workspace() {
    let scene = Scene::ready();
    assert_eq!(scene.resolve(&[]).unwrap().state_dir, scene.root.path().join("home/.local/state/s15"));
    let scene = scene.set("XDG_STATE_HOME", "/somewhere");
    assert_eq!(scene.resolve(&[]).unwrap().state_dir, Path::new("/somewhere/s15"));
    let scene = scene.set("XDG_STATE_HOME", "relative/is/ignored");
    assert_eq!(scene.resolve(&[]).unwrap().state_dir, scene.root.path().join("home/.local/state/s15"));
    assert!(scene.resolve(&[]).unwrap().warnings.is_empty());
    let inside = scene.root.path().canonicalize().unwrap().join("ws/state");
    let config = scene.set("S15_STATE_DIR", inside.to_str().unwrap()).resolve(&[]).unwrap();
    assert!(config.warnings[0].contains("inside the workspace"), "{:?}", config.warnings);
    let homeless = Place { home: None, ..Scene::ready().place() };
    let cli = Cli::try_parse_from(["s15", "-C", "/"]).unwrap();
    let env = |name: &str| Scene::ready().get(name);
    assert!(Config::resolve(&cli, &env, &homeless).unwrap_err().to_string().contains("S15_STATE_DIR"));
}

#[test]
fn the_demo_uses_nothing_of_the_users_server() {
    let scene = Scene::new()
        .set("OPENAI_API_KEY", "sk-real")
        .set("OPENAI_BASE_URL", "https://real.example/v1")
        .set("S15_MODEL", "real")
        .set("S15_YES", "1")
        .set("S15_BASH_TIMEOUT", "9")
        .user_file("api_key = 'sk-file'\nnonsense = 1");
    let stage = Stage {
        workspace: scene.root.path().join("ws"),
        state_dir: scene.root.path().join("state"),
        base_url: "http://127.0.0.1:9/v1".into(),
        model: "scripted".into(),
    };
    let cli = Cli::try_parse_from(["s15", "demo"]).unwrap();
    let config = Config::for_demo(&cli, &stage, &|name| scene.get(name), &scene.place()).unwrap();
    assert_eq!((config.base_url.as_str(), config.model.as_str()), ("http://127.0.0.1:9/v1", "scripted"));
    assert_eq!((config.api_key, config.yes, config.limits.bash_timeout), (None, false, Duration::from_secs(9)));
    for arguments in [&["-m", "x", "demo"][..], &["hello", "demo"], &["-p", "hello", "demo"], &["-C", "/", "demo"]] {
        let cli = Cli::try_parse_from([&["s15"], arguments].concat()).unwrap();
        let error = Config::for_demo(&cli, &stage, &|_| None, &scene.place()).unwrap_err().to_string();
        assert!(error.contains("the demo has its own"), "{error}");
    }
}
