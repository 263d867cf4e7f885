//! The table of tools: name, who has it, what the model reads of it, how its arguments are parsed.

use std::sync::OnceLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::arguments::{self, team};
use super::{Call, LocalCall, Role, fit};

/// The tool that ends the lead's turn and stands alone in a reply.
pub const PROPOSE_TEAM: &str = "propose_team";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Audience {
    Everyone,
    Lead,
    Teammate,
}

/// One tool.
pub(super) struct Spec {
    name: &'static str,
    audience: Audience,
    description: &'static str,
    schema: fn() -> Value,
    pub(super) parse: fn(Map<String, Value>) -> Result<Call, String>,
}

macro_rules! local {
    ($name:literal, $call:ident, $arguments:ty) => {
        Spec {
            name: $name,
            audience: Audience::Everyone,
            description: include_str!(concat!("../../prompts/tools/", $name, ".md")),
            schema: schema_of::<$arguments>,
            parse: |arguments| Ok(Call::Local(LocalCall::$call(fit(arguments)?))),
        }
    };
}

macro_rules! team {
    ($name:literal, $audience:ident, $call:ident) => {
        Spec {
            name: $name,
            audience: Audience::$audience,
            description: include_str!(concat!("../../prompts/tools/", $name, ".md")),
            schema: schema_of::<team::$call>,
            parse: |arguments| Ok(Call::Team(fit::<team::$call>(arguments)?.into())),
        }
    };
}

static TABLE: [Spec; 20] = [
    local!("bash", Bash, arguments::BashArgs),
    local!("read_file", ReadFile, arguments::ReadFileArgs),
    local!("write_file", WriteFile, arguments::WriteFileArgs),
    local!("edit_file", EditFile, arguments::EditFileArgs),
    local!("glob", Glob, arguments::GlobArgs),
    local!("grep", Grep, arguments::GrepArgs),
    team!("send_message", Everyone, SendMessage),
    team!("list_teammates", Everyone, ListTeammates),
    team!("propose_team", Lead, ProposeTeam),
    team!("spawn_teammate", Lead, SpawnTeammate),
    team!("assign_task", Lead, AssignTask),
    team!("broadcast", Lead, Broadcast),
    team!("request_plan", Lead, RequestPlan),
    team!("review_plan", Lead, ReviewPlan),
    team!("request_shutdown", Lead, RequestShutdown),
    team!("request_status", Lead, RequestStatus),
    team!("list_requests", Lead, ListRequests),
    team!("report_status", Teammate, ReportStatus),
    team!("submit_plan", Teammate, SubmitPlan),
    team!("shutdown_response", Teammate, ShutdownResponse),
];

fn has(role: Role, spec: &Spec) -> bool {
    match (spec.audience, role) {
        (Audience::Everyone, _) | (Audience::Lead, Role::Lead) | (Audience::Teammate, Role::Teammate) => true,
        (Audience::Lead, Role::Teammate) | (Audience::Teammate, Role::Lead) => false,
    }
}

fn of(role: Role) -> impl Iterator<Item = &'static Spec> {
    TABLE.iter().filter(move |spec| has(role, spec))
}

pub(super) fn find(role: Role, name: &str) -> Option<&'static Spec> {
    of(role).find(|spec| spec.name == name)
}

pub(super) fn names(role: Role) -> Vec<&'static str> {
    of(role).map(|spec| spec.name).collect()
}

/// The `tools` array of a request. Always the same bytes for a role, so that servers can cache the prefix.
pub fn definitions(role: Role) -> &'static Value {
    static LEAD: OnceLock<Value> = OnceLock::new();
    static TEAMMATE: OnceLock<Value> = OnceLock::new();
    let cell = match role {
        Role::Lead => &LEAD,
        Role::Teammate => &TEAMMATE,
    };
    cell.get_or_init(|| of(role).map(definition).collect())
}

fn definition(spec: &Spec) -> Value {
    json!({"type": "function", "function": {
        "name": spec.name, "description": spec.description.trim(), "parameters": (spec.schema)(),
    }})
}

/// A flat schema in the plainest form, since strict servers refuse references, formats and null types.
fn schema_of<T: JsonSchema + for<'de> Deserialize<'de>>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    plain(&mut schema);
    schema
}

/// Descriptions on fields that were written for the model stay (they begin in lower case here); doc comments for people go.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for key in ["$schema", "title", "format", "default", "minimum", "maximum"] {
                if map.get(key).is_some_and(|value| !value.is_object()) {
                    map.remove(key);
                }
            }
            let for_people = map
                .get("description")
                .and_then(Value::as_str)
                .is_some_and(|words| words.starts_with(|c: char| c.is_uppercase() || c == '`'));
            if for_people {
                map.remove("description");
            }
            if let Some(Value::Array(types)) = map.get("type") {
                let first = types.iter().find(|kind| *kind != "null").cloned();
                map.insert("type".to_owned(), first.unwrap_or(Value::Null));
            }
            for value in map.values_mut() {
                plain(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(plain),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_small_flat_and_stable() {
        for (role, bytes_max) in [(Role::Lead, 7_000), (Role::Teammate, 4_200)] {
            let text = definitions(role).to_string();
            assert!(text.len() <= bytes_max, "{role:?}: {} bytes\n{text}", text.len());
            for odd in ["$ref", "$schema", "\"title\"", "\"format\"", "\"null\"", "oneOf", "anyOf"] {
                assert!(!text.contains(odd), "{odd} in {text}");
            }
            assert_eq!(text, definitions(role).to_string());
        }
    }

    #[test]
    fn i3_every_local_tool_has_an_effect_and_no_role_has_the_others_tools() {
        assert!(find(Role::Teammate, "spawn_teammate").is_none());
        assert!(find(Role::Teammate, "review_plan").is_none());
        assert!(find(Role::Lead, "submit_plan").is_none());
        assert_eq!(names(Role::Lead).len(), 17);
        assert_eq!(names(Role::Teammate).len(), 11);
    }
}
