//! What was typed: the command line as text, nothing more.
//!
//! Knows no environment, no files and no defaults; what the words mean is decided in `config`.

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand};

/// A lead agent and its team, working on one project.
#[derive(Clone, Debug, Default, Parser)]
#[command(
    name = "s15",
    version,
    about = "A lead agent proposes a team, you confirm it, and the team works on your project side by side.",
    after_help = "Without a key and a network: s15 demo. Every flag has a variable (S15_MODEL for --model); --help tells them all.",
    after_long_help = AFTER_LONG_HELP,
    max_term_width = 100
)]
pub struct Cli {
    /// Something else than a session.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The first request; the session goes on after it.
    #[arg(value_name = "PROMPT", conflicts_with = "print")]
    pub prompt: Option<String>,
    /// Do this one request without a terminal, print the answer, and exit.
    #[arg(short, long, value_name = "PROMPT", help_heading = "Headless")]
    pub print: Option<String>,
    /// Go on with the session that was last used in this workspace.
    #[arg(short = 'c', long = "continue", conflicts_with = "resume")]
    pub continue_last: bool,
    /// Go on with this session (s15 sessions lists them); without an ID, choose from a list.
    #[arg(short, long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,
    /// All that can also be said by the environment or a file.
    #[command(flatten)]
    pub flags: Flags,
}

/// What `s15` does besides a session.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// A whole run on a sample project, without a key and without a network.
    Demo {
        /// Run by itself instead of waiting for you to type.
        #[arg(long)]
        script: bool,
    },
    /// The sessions of all workspaces, the last used first.
    Sessions,
    /// What is in force on this machine: the sandbox, the environment of commands, server, state folder, terminal.
    Doctor {
        /// As one JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// The flags, each as its text.
#[derive(Args, Clone, Debug, Default)]
pub struct Flags {
    /// Work in this folder instead of the present one.
    #[arg(short = 'C', long, value_name = "DIR")]
    pub cd: Option<String>,
    /// Read this file instead of ~/.config/s15/config.toml.
    #[arg(long, value_name = "FILE")]
    pub config: Option<String>,
    /// When to use colour.
    #[arg(long, global = true, value_name = "WHEN", value_parser = PossibleValuesParser::new(["auto", "always", "never"]))]
    pub color: Option<String>,

    /// The lead's model, and the teammates' unless they have their own.
    #[arg(short, long, value_name = "NAME", help_heading = "Model")]
    pub model: Option<String>,
    /// The teammates' model.
    #[arg(long, value_name = "NAME", help_heading = "Model")]
    pub teammate_model: Option<String>,
    /// An OpenAI-compatible server, up to and with its version (http://127.0.0.1:11434/v1).
    #[arg(long, value_name = "URL", help_heading = "Model")]
    pub base_url: Option<String>,

    /// Most teammates alive at once [default: 8].
    #[arg(long, value_name = "N", help_heading = "Team")]
    pub max_teammates: Option<String>,
    /// Confirm every proposed team in advance; confirms nothing else.
    #[arg(long, help_heading = "Team")]
    pub yes: bool,

    /// What --print prints [default: text].
    #[arg(long, value_name = "FORMAT", help_heading = "Headless", value_parser = PossibleValuesParser::new(["text", "json", "stream-json"]))]
    pub output_format: Option<String>,

    /// Where locks and journals are kept [default: ~/.local/state/s15].
    #[arg(long, value_name = "DIR", help_heading = "Limits", hide_short_help = true)]
    pub state_dir: Option<String>,
    /// Secrets in the environment that commands get all the same: names, * at the end for any rest.
    #[arg(long, value_name = "NAMES", help_heading = "Limits", hide_short_help = true)]
    pub env_pass: Option<String>,
    /// How commands are confined: auto, landlock, namespaces, off [default: auto].
    #[arg(long, value_name = "HOW", help_heading = "Limits", hide_short_help = true, value_parser = PossibleValuesParser::new(["auto", "landlock", "namespaces", "off"]))]
    pub sandbox: Option<String>,
    /// What commands may write besides the workspace: paths with commas between them.
    #[arg(long, value_name = "PATHS", help_heading = "Limits", hide_short_help = true)]
    pub sandbox_write: Option<String>,
    /// May commands reach other machines? [default: true].
    #[arg(long, value_name = "BOOL", help_heading = "Limits", hide_short_help = true)]
    pub sandbox_network: Option<String>,
    /// Longest time a command may run, in seconds [default: 120].
    #[arg(long, value_name = "SECONDS", help_heading = "Limits", hide_short_help = true)]
    pub bash_timeout: Option<String>,
    /// Longest time a command may run in the background, in seconds [default: 3600].
    #[arg(long, value_name = "SECONDS", help_heading = "Limits", hide_short_help = true)]
    pub job_timeout: Option<String>,
    /// How long a plan may wait for the lead's review, in seconds [default: 1800].
    #[arg(long, value_name = "SECONDS", help_heading = "Limits", hide_short_help = true)]
    pub request_timeout: Option<String>,
    /// Most model calls in one piece of work [default: 200].
    #[arg(long, value_name = "N", help_heading = "Limits", hide_short_help = true)]
    pub turn_calls_max: Option<String>,
    /// How often a failed model call is tried again [default: 5].
    #[arg(long, value_name = "N", help_heading = "Limits", hide_short_help = true)]
    pub retries_max: Option<String>,
    /// Wait before the first retry, in milliseconds; doubles each time [default: 500].
    #[arg(long, value_name = "MS", help_heading = "Limits", hide_short_help = true)]
    pub retry_base_ms: Option<String>,
    /// Longest wait before a retry, whatever the server asks for, in seconds [default: 60].
    #[arg(long, value_name = "SECONDS", help_heading = "Limits", hide_short_help = true)]
    pub retry_wait_max: Option<String>,
    /// Longest time to reach the server, in seconds [default: 10].
    #[arg(long, value_name = "SECONDS", help_heading = "Limits", hide_short_help = true)]
    pub connect_timeout: Option<String>,
    /// Longest time to an answer's first byte, in seconds [default: 300].
    #[arg(long, value_name = "SECONDS", help_heading = "Limits", hide_short_help = true)]
    pub first_byte_timeout: Option<String>,
    /// Longest silence within an answer, in seconds [default: 120].
    #[arg(long, value_name = "SECONDS", help_heading = "Limits", hide_short_help = true)]
    pub idle_timeout: Option<String>,
}

const AFTER_LONG_HELP: &str = "\
Environment:
  OPENAI_API_KEY   the server's key; enough by itself for OpenAI
  OPENAI_BASE_URL  any OpenAI-compatible server; most local ones need no key
  OPENAI_MODEL     the model's name; needed for every server but OpenAI
  S15_<FLAG>       every flag above except --print, such as S15_MAX_TEAMMATES=4
  NO_COLOR         no colour

A flag wins over the environment, that over ~/.config/s15/config.toml, that over the default.
A project's .s15.toml can lower max_teammates and suggest a model, nothing else.

Exit codes: 0 done, 1 failed, 2 usage or configuration, 3 limit, 4 needs a person, 130 interrupted.";

impl Flags {
    /// The flags that were given: a setting's key and its text.
    pub(crate) fn given(&self) -> Vec<(&'static str, String)> {
        let texts = [
            ("cd", &self.cd),
            ("config", &self.config),
            ("color", &self.color),
            ("model", &self.model),
            ("teammate_model", &self.teammate_model),
            ("base_url", &self.base_url),
            ("max_teammates", &self.max_teammates),
            ("output_format", &self.output_format),
            ("state_dir", &self.state_dir),
            ("env_pass", &self.env_pass),
            ("sandbox", &self.sandbox),
            ("sandbox_write", &self.sandbox_write),
            ("sandbox_network", &self.sandbox_network),
            ("bash_timeout", &self.bash_timeout),
            ("job_timeout", &self.job_timeout),
            ("request_timeout", &self.request_timeout),
            ("turn_calls_max", &self.turn_calls_max),
            ("retries_max", &self.retries_max),
            ("retry_base_ms", &self.retry_base_ms),
            ("retry_wait_max", &self.retry_wait_max),
            ("connect_timeout", &self.connect_timeout),
            ("first_byte_timeout", &self.first_byte_timeout),
            ("idle_timeout", &self.idle_timeout),
        ];
        let mut given: Vec<_> = texts.into_iter().filter_map(|(key, text)| Some((key, text.clone()?))).collect();
        if self.yes {
            given.push(("yes", "true".to_owned()));
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(arguments: &[&str]) -> Result<Cli, clap::Error> {
        Cli::try_parse_from([&["s15"], arguments].concat())
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_prompt_a_print_and_a_demo_are_told_apart() {
        let cli = parse(&["重构这个后端"]).unwrap();
        assert_eq!((cli.prompt.as_deref(), cli.print, cli.command), (Some("重构这个后端"), None, None));
        let cli = parse(&["-p", "hello", "--yes", "-m", "x"]).unwrap();
        assert_eq!((cli.prompt, cli.print.as_deref(), cli.flags.yes), (None, Some("hello"), true));
        assert_eq!(parse(&["demo"]).unwrap().command, Some(Command::Demo { script: false }));
        assert_eq!(parse(&["demo", "--script"]).unwrap().command, Some(Command::Demo { script: true }));
        assert_eq!(parse(&["--", "demo"]).unwrap().prompt.as_deref(), Some("demo"));
    }

    #[test]
    fn a_flag_before_demo_does_not_make_it_a_prompt() {
        let cli = parse(&["--color", "never", "--bash-timeout", "9", "demo"]).unwrap();
        assert_eq!((cli.prompt, cli.command), (None, Some(Command::Demo { script: false })));
        let cli = parse(&["demo", "--color", "never"]).unwrap();
        assert_eq!(cli.flags.color.as_deref(), Some("never"));
    }

    #[test]
    fn a_session_is_continued_named_or_chosen() {
        assert!(parse(&["-c"]).unwrap().continue_last);
        let named = parse(&["--resume", "3f2a", "-p", "go on"]).unwrap();
        assert_eq!((named.resume.as_deref(), named.print.as_deref()), (Some("3f2a"), Some("go on")));
        assert_eq!(parse(&["-r"]).unwrap().resume.as_deref(), Some(""));
        assert!(parse(&["-c", "-r", "x"]).is_err());
        assert_eq!(parse(&["sessions"]).unwrap().command, Some(Command::Sessions));
    }

    #[test]
    fn usage_errors_end_with_2_and_help_with_0() {
        for wrong in [
            &["--nonsense"][..],
            &["a", "b"],
            &["a", "-p", "b"],
            &["-p"],
            &["--color", "pink"],
            &["--output-format", "xml"],
            &["demo", "--nonsense"],
        ] {
            assert_eq!(parse(wrong).unwrap_err().exit_code(), 2, "{wrong:?}");
        }
        for asked in ["-h", "--help", "help", "-V", "--version"] {
            assert_eq!(parse(&[asked]).unwrap_err().exit_code(), 0, "{asked}");
        }
    }

    #[test]
    fn what_is_not_built_yet_is_not_offered() {
        let help = Cli::command().render_long_help().to_string();
        for later in ["--record", "--replay", "--permission-mode"] {
            assert!(!help.contains(later), "{later}");
        }
        assert!(parse(&["--record", "x"]).is_err());
    }

    #[test]
    fn short_help_fits_a_screen() {
        let help = Cli::command().render_help().to_string();
        assert!(help.lines().count() <= 45, "{} lines:\n{help}", help.lines().count());
    }
}
