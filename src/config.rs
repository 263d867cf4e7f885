//! What the command line, the environment and the settings files mean together: a [`Config`] is complete and valid, or there is none.
//!
//! Everything it looks at comes in as arguments. Knows nothing of agents, servers' answers or how anything is shown. A project's
//! `.env` is never read.

mod confinement;
mod key;
mod layers;
mod limits;
mod setting;
#[cfg(test)]
mod tests;
mod values;

use std::fmt;
use std::path::{Path, PathBuf};

use crate::cli::{Cli, Flags};
use crate::secrets;

pub use confinement::Confinement;
pub use key::Key;
pub use limits::Limits;

use layers::Layers;
use setting::Setting;

/// Where a key without a server goes.
pub const OPENAI_BASE_URL_DEFAULT: &str = "https://api.openai.com/v1";
/// The model where none is named, at OpenAI itself only; every other server has its own names.
pub const OPENAI_MODEL_DEFAULT: &str = "gpt-5-mini";
const OPENAI_HOST: &str = "api.openai.com";

/// A variable's value, if it is set. What isn't UTF-8 comes with `U+FFFD` in it and is refused.
pub type Env<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Everything one run needs to know, checked.
#[derive(Clone, Debug)]
pub struct Config {
    /// Absolute and canonical; a folder.
    pub workspace: PathBuf,
    /// The server, without a slash at the end.
    pub base_url: String,
    /// Its key; local servers mostly need none.
    pub api_key: Option<Key>,
    /// The lead's model.
    pub model: String,
    /// The teammates' model, where a proposal names none.
    pub teammate_model: String,
    /// Did the user confirm every proposal in advance (`--yes`)?
    pub yes: bool,
    /// Absolute; the folder `s15` keeps its locks and journals in. May not exist yet.
    pub state_dir: PathBuf,
    /// Where lines come from and answers go.
    pub front: FrontEnd,
    /// Typed before the first prompt: the first line of the session. `None` with `--print`.
    pub first_line: Option<String>,
    /// The session that goes on, if it isn't a new one.
    pub resume: Option<Which>,
    /// Names of secrets that commands get all the same, each perhaps with a `*` at its end.
    pub env_pass: Vec<String>,
    /// How commands are confined.
    pub confinement: Confinement,
    /// May colour be used?
    pub color: bool,
    /// All limits.
    pub limits: Limits,
    /// What the user should be told once, each on one line.
    pub warnings: Vec<String>,
}

/// Which session goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Which {
    /// The one that was used last.
    Last,
    /// The one that the user chooses from a list.
    Choose,
    /// The one with this id, or a part of it that no other has.
    Named(String),
}

fn resume(cli: &Cli) -> Option<Which> {
    match cli.resume.as_deref() {
        Some(id) if id.trim().is_empty() => Some(Which::Choose),
        Some(id) => Some(Which::Named(id.to_owned())),
        None => cli.continue_last.then_some(Which::Last),
    }
}

/// Where lines come from and answers go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrontEnd {
    /// Somebody types at a terminal.
    Terminal,
    /// Lines come from a pipe or file, or the output goes to one.
    Pipe,
    /// `--print`: one request, then exit.
    Print {
        /// The request; not blank.
        prompt: String,
        /// What goes to standard output.
        format: OutputFormat,
    },
}

/// What `--print` writes to standard output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// The lead's last words.
    Text,
    /// One JSON object at the end.
    Json,
    /// Every event as it happens, one JSON object a line.
    StreamJson,
}

/// The facts about the process that a configuration depends on.
#[derive(Clone, Debug)]
pub struct Place {
    /// The present folder.
    pub cwd: PathBuf,
    /// The user's home, if known.
    pub home: Option<PathBuf>,
    /// Is standard input a terminal?
    pub stdin_is_terminal: bool,
    /// Is standard output one?
    pub stdout_is_terminal: bool,
    /// Is standard error one?
    pub stderr_is_terminal: bool,
}

/// What the demo has set up for its run.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The sample project.
    pub workspace: PathBuf,
    /// A folder that goes when the demo ends.
    pub state_dir: PathBuf,
    /// The scripted server.
    pub base_url: String,
    /// The name its replies go by.
    pub model: String,
}

/// Why there is no configuration: one line that says what to do. Never holds a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(String);

impl Config {
    /// Reads all sources and checks them.
    ///
    /// # Errors
    /// The first thing that is wrong, with where it was said; the process should exit with 2.
    pub fn resolve(cli: &Cli, env: Env<'_>, place: &Place) -> Result<Self, ConfigError> {
        let mut layers = Layers::default();
        layers.add_flags(&cli.flags);
        layers.add_environment(env)?;
        layers.add_user_file(env, place)?;
        let workspace = workspace(&layers, place)?;
        layers.add_project_file(&workspace)?;
        Self::build(cli, layers, workspace, env, place)
    }

    /// The folder that `s15` keeps its locks and journals in; needs no model.
    ///
    /// # Errors
    /// As [`Config::resolve`].
    pub fn state_dir_of(cli: &Cli, env: Env<'_>, place: &Place) -> Result<PathBuf, ConfigError> {
        let mut layers = Layers::default();
        layers.add_flags(&cli.flags);
        layers.add_environment(env)?;
        layers.add_user_file(env, place)?;
        state_dir(&layers, env, place)
    }

    /// The configuration of `s15 demo`: colour and limits are the user's, but no key, server or settings file of theirs is read.
    ///
    /// # Errors
    /// As [`Config::resolve`].
    pub fn for_demo(cli: &Cli, stage: &Stage, env: Env<'_>, place: &Place) -> Result<Self, ConfigError> {
        let taken = [
            ("PROMPT", &cli.prompt),
            ("--print", &cli.print),
            ("--cd", &cli.flags.cd),
            ("--config", &cli.flags.config),
            ("--model", &cli.flags.model),
            ("--teammate-model", &cli.flags.teammate_model),
            ("--base-url", &cli.flags.base_url),
            ("--state-dir", &cli.flags.state_dir),
        ];
        if let Some((name, _)) = taken.iter().find(|(_, given)| given.is_some()) {
            let text = format!("{name}: the demo has its own; leave it out, or leave out `demo`");
            return Err(ConfigError(text));
        }
        let text = |path: &Path| Some(path.to_string_lossy().into_owned());
        let flags = Flags {
            cd: text(&stage.workspace),
            state_dir: text(&stage.state_dir),
            base_url: Some(stage.base_url.clone()),
            model: Some(stage.model.clone()),
            teammate_model: Some(stage.model.clone()),
            ..cli.flags.clone()
        };
        let env = |name: &str| env(name).filter(|_| !name.starts_with("OPENAI_") && name != "S15_YES");
        let mut layers = Layers::default();
        layers.add_flags(&flags);
        layers.add_environment(&env)?;
        let workspace = workspace(&layers, place)?;
        Self::build(cli, layers, workspace, &env, place)
    }

    fn build(
        cli: &Cli,
        mut layers: Layers,
        workspace: PathBuf,
        env: Env<'_>,
        place: &Place,
    ) -> Result<Self, ConfigError> {
        let api_key = layers.value(Setting::ApiKey, values::key)?.flatten();
        let base_url = match layers.value(Setting::BaseUrl, values::base_url)? {
            Some(url) => url,
            None if api_key.is_some() => OPENAI_BASE_URL_DEFAULT.to_owned(),
            None => return Err(no_server()),
        };
        let model = match layers.value(Setting::Model, values::model)? {
            Some(model) => model,
            None if is_openai(&base_url) => OPENAI_MODEL_DEFAULT.to_owned(),
            None => return Err(no_model(&base_url)),
        };
        let front = front_end(cli, &layers, place)?;
        let state_dir = state_dir(&layers, env, place)?;
        if state_dir.starts_with(&workspace) {
            layers.warnings.push(format!(
                "the state folder {} lies inside the workspace, where agents can change it; set S15_STATE_DIR to a folder outside",
                state_dir.display()
            ));
        }
        Ok(Self {
            teammate_model: layers.value(Setting::TeammateModel, values::model)?.unwrap_or_else(|| model.clone()),
            yes: layers.value(Setting::Yes, values::switch)?.unwrap_or(false),
            env_pass: layers.value(Setting::EnvPass, values::names)?.unwrap_or_default(),
            confinement: Confinement::read(&layers, env, place)?,
            color: color(&layers, &front, env, place)?,
            limits: Limits::read(&mut layers)?,
            resume: resume(cli),
            first_line: cli.prompt.clone().filter(|prompt| !prompt.trim().is_empty()),
            workspace,
            base_url,
            api_key,
            model,
            state_dir,
            front,
            warnings: layers.warnings,
        })
    }
}

impl Place {
    /// The facts about this process.
    #[must_use]
    pub fn here() -> Self {
        use std::io::IsTerminal;
        Self {
            // A present folder that is gone shows itself when it is looked for.
            cwd: std::env::current_dir().unwrap_or_else(|_| PathBuf::from(".")),
            home: std::env::home_dir().filter(|home| home.is_absolute()),
            stdin_is_terminal: std::io::stdin().is_terminal(),
            stdout_is_terminal: std::io::stdout().is_terminal(),
            stderr_is_terminal: std::io::stderr().is_terminal(),
        }
    }
}

/// What the process was started with, in the form that [`Config::resolve`] asks.
#[must_use]
pub fn process_env(name: &str) -> Option<String> {
    secrets::var(name).map(|value| value.to_string_lossy().into_owned())
}

fn workspace(layers: &Layers, place: &Place) -> Result<PathBuf, ConfigError> {
    let (path, origin) = match layers.get(Setting::Cd) {
        Some(said) => (place.cwd.join(&said.text), said.origin.as_str()),
        None => (place.cwd.clone(), "the present folder"),
    };
    let wrong = |why: &dyn fmt::Display| {
        ConfigError(format!("{origin}: can't work in {}: {why}; name a folder with -C DIR", path.display()))
    };
    let canonical = path.canonicalize().map_err(|error| wrong(&error))?;
    if !canonical.is_dir() {
        return Err(wrong(&"it is not a folder"));
    }
    std::fs::read_dir(&canonical).map_err(|error| wrong(&error))?;
    Ok(canonical)
}

fn state_dir(layers: &Layers, env: Env<'_>, place: &Place) -> Result<PathBuf, ConfigError> {
    let folder = match layers.get(Setting::StateDir) {
        Some(said) => Some(place.cwd.join(said.text.trim())),
        None => xdg(env, place, "XDG_STATE_HOME", ".local/state"),
    };
    let Some(folder) = folder else {
        let text = "there is no home folder to keep journals in; set S15_STATE_DIR to a folder that can be written";
        return Err(ConfigError(text.to_owned()));
    };
    Ok(folder.canonicalize().unwrap_or(folder))
}

/// `s15`'s folder below one of the XDG base folders; a relative one is to be ignored, by the XDG specification.
fn xdg(env: Env<'_>, place: &Place, variable: &str, below_home: &str) -> Option<PathBuf> {
    let named = env(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
    let base = named.or_else(|| Some(place.home.as_ref()?.join(below_home)))?;
    Some(base.join("s15"))
}

fn front_end(cli: &Cli, layers: &Layers, place: &Place) -> Result<FrontEnd, ConfigError> {
    let formats =
        [("text", OutputFormat::Text), ("json", OutputFormat::Json), ("stream-json", OutputFormat::StreamJson)];
    let format = layers.value(Setting::OutputFormat, |text| values::word(text, &formats))?;
    match &cli.print {
        Some(prompt) if prompt.trim().is_empty() => {
            Err(ConfigError("--print: the request is empty; write what is to be done after it".to_owned()))
        }
        Some(prompt) => Ok(FrontEnd::Print { prompt: prompt.clone(), format: format.unwrap_or(OutputFormat::Text) }),
        None if cli.flags.output_format.is_some() => {
            Err(ConfigError("--output-format: goes together with -p/--print only".to_owned()))
        }
        None if place.stdin_is_terminal && place.stdout_is_terminal => Ok(FrontEnd::Terminal),
        None => Ok(FrontEnd::Pipe),
    }
}

fn color(layers: &Layers, front: &FrontEnd, env: Env<'_>, place: &Place) -> Result<bool, ConfigError> {
    let shown_at_terminal = match front {
        FrontEnd::Terminal | FrontEnd::Pipe => place.stdout_is_terminal,
        FrontEnd::Print { .. } => place.stderr_is_terminal,
    };
    let auto = shown_at_terminal && env("TERM").as_deref() != Some("dumb");
    let words = [("auto", auto), ("always", true), ("never", false)];
    Ok(layers.value(Setting::Color, |text| values::word(text, &words))?.unwrap_or(auto))
}

fn is_openai(base_url: &str) -> bool {
    reqwest::Url::parse(base_url).is_ok_and(|url| url.host_str() == Some(OPENAI_HOST))
}

fn no_server() -> ConfigError {
    ConfigError(
        "no model server: set OPENAI_API_KEY for OpenAI, or OPENAI_BASE_URL and OPENAI_MODEL for any other compatible or local \
         server, or run `s15 demo`, which needs neither"
            .to_owned(),
    )
}

fn no_model(base_url: &str) -> ConfigError {
    ConfigError(format!("no model named for {base_url}: set OPENAI_MODEL or give --model NAME"))
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ConfigError {}
