//! The table of tools: name, effect, who has it, and the words and the schema that a model reads of it.
//!
//! Knows nothing of how a call is carried out.

use std::sync::OnceLock;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::Role;
use super::calls::LocalCall;
use super::team::TeamCall;
use crate::protocol::Effect;

/// The tool that ends the lead's turn and stands alone in a reply.
pub const PROPOSE_TEAM: &str = PROPOSE.name;

/// The field that tells one call from another in their types; never seen by a model.
pub(super) const TAG: &str = "tool";

#[derive(Clone, Copy)]
enum Audience {
    Everyone,
    Lead,
    Teammate,
}

/// One tool.
pub(super) struct Spec {
    pub(super) name: &'static str,
    pub(super) effect: Effect,
    audience: Audience,
    /// Its description, then perhaps a line `- field: hint` for fields whose names don't say enough.
    pub(super) prompt: &'static str,
}

macro_rules! table {
    ($($constant:ident = $name:literal, $effect:ident, $audience:ident;)*) => {
        $(pub(super) const $constant: Spec = Spec {
            name: $name,
            effect: Effect::$effect,
            audience: Audience::$audience,
            prompt: include_str!(concat!("../../prompts/tools/", $name, ".md")),
        };)*
        static TABLE: &[Spec] = &[$($constant),*];
    };
}

table! {
    BASH = "bash", Execute, Everyone;
    BASH_OUTPUT = "bash_output", Read, Everyone;
    // No `execute`: what one has started can be ended with a closed gate too.
    BASH_STOP = "bash_stop", Team, Everyone;
    READ_FILE = "read_file", Read, Everyone;
    WRITE_FILE = "write_file", Write, Everyone;
    EDIT_FILE = "edit_file", Write, Everyone;
    GLOB = "glob", Read, Everyone;
    GREP = "grep", Read, Everyone;
    SEND_MESSAGE = "send_message", Team, Everyone;
    WITHDRAW_MESSAGE = "withdraw_message", Team, Everyone;
    LIST_TEAMMATES = "list_teammates", Team, Everyone;
    PROPOSE = "propose_team", Team, Lead;
    SPAWN_TEAMMATE = "spawn_teammate", Team, Lead;
    ASSIGN_TASK = "assign_task", Team, Lead;
    BROADCAST = "broadcast", Team, Lead;
    REQUEST_PLAN = "request_plan", Team, Lead;
    REVIEW_PLAN = "review_plan", Team, Lead;
    REQUEST_SHUTDOWN = "request_shutdown", Team, Lead;
    STOP_TEAMMATE = "stop_teammate", Team, Lead;
    REQUEST_STATUS = "request_status", Team, Lead;
    LIST_REQUESTS = "list_requests", Team, Lead;
    REPORT_STATUS = "report_status", Team, Teammate;
    SUBMIT_PLAN = "submit_plan", Team, Teammate;
    SHUTDOWN_RESPONSE = "shutdown_response", Team, Teammate;
}

/// The tools of a role, in the order in which a model reads them.
pub(super) fn of(role: Role) -> impl Iterator<Item = &'static Spec> {
    TABLE.iter().filter(move |spec| match (spec.audience, role) {
        (Audience::Everyone, _) | (Audience::Lead, Role::Lead) | (Audience::Teammate, Role::Teammate) => true,
        (Audience::Lead, Role::Teammate) | (Audience::Teammate, Role::Lead) => false,
    })
}

pub(super) fn find(role: Role, name: &str) -> Option<&'static Spec> {
    of(role).find(|spec| spec.name == name)
}

pub(super) fn names(role: Role) -> Vec<&'static str> {
    of(role).map(|spec| spec.name).collect()
}

/// Does this tool work on something, rather than talk?
#[must_use]
pub fn is_work(name: &str) -> bool {
    TABLE.iter().any(|spec| spec.name == name && spec.effect != Effect::Team)
}

/// The `tools` array of a request. Always the same bytes for a role, so that servers can cache the prefix.
#[must_use]
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
    let (description, hints) = words(spec.prompt);
    let mut parameters = shown(form(spec));
    for (field, hint) in hints {
        if let Some(Value::Object(property)) = parameters.pointer_mut(&format!("/properties/{field}")) {
            property.insert("description".to_owned(), Value::from(hint));
        }
    }
    json!({"type": "function", "function": {
        "name": spec.name, "description": description, "parameters": parameters,
    }})
}

/// A prompt file's description, and its hints by field.
pub(super) fn words(prompt: &str) -> (String, Vec<(&str, &str)>) {
    let hints = prompt.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": ")).collect();
    let description: Vec<&str> = prompt.lines().filter(|line| !line.is_empty() && !line.starts_with("- ")).collect();
    (description.join(" "), hints)
}

/// Tools by their names, each with its arguments as `schemars` describes their type.
struct Forms {
    local: Vec<(String, Value)>,
    team: Vec<(String, Value)>,
}

fn forms() -> &'static Forms {
    static FORMS: OnceLock<Forms> = OnceLock::new();
    FORMS.get_or_init(|| Forms { local: variants::<LocalCall>(), team: variants::<TeamCall>() })
}

/// The arguments of a tool.
pub(super) fn form(spec: &Spec) -> &'static Value {
    let found = forms().local.iter().chain(&forms().team).find(|(name, _)| name == spec.name);
    // A test looks up every tool of the table.
    found.map(|(_, form)| form).expect("every tool of the table is a variant of LocalCall or TeamCall")
}

/// Is it carried out in a workshop, and not by the owner of the team?
pub(super) fn is_local(spec: &Spec) -> bool {
    forms().local.iter().any(|(name, _)| name == spec.name)
}

/// The variants of an enum that is told apart by [`TAG`], each with its fields alone.
fn variants<T: JsonSchema>() -> Vec<(String, Value)> {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    let Some(Value::Array(variants)) = schema.get_mut("oneOf").map(Value::take) else { return Vec::new() };
    let named = variants.into_iter().filter_map(|mut form| {
        let tag = form.get_mut("properties")?.as_object_mut()?.shift_remove(TAG)?;
        if let Some(Value::Array(required)) = form.get_mut("required") {
            required.retain(|field| field != TAG);
        }
        Some((tag.get("const")?.as_str()?.to_owned(), form))
    });
    named.collect()
}

/// A form in the plainest words, since strict servers refuse references, formats and null types and every token is
/// paid at every call: type, properties, required, items. A field with a default text is asked for all the same.
fn shown(form: &Value) -> Value {
    let mut plain = Map::new();
    plain.insert("type".to_owned(), Value::from(kind(form)));
    if let Some(Value::Object(properties)) = form.get("properties") {
        let required: Vec<&String> = properties
            .iter()
            .filter(|(field, property)| {
                is_required(form, field) || property.get("default").is_some_and(Value::is_string)
            })
            .map(|(field, _)| field)
            .collect();
        let properties: Map<_, _> = properties.iter().map(|(field, form)| (field.clone(), shown(form))).collect();
        plain.insert("properties".to_owned(), Value::Object(properties));
        if !required.is_empty() {
            plain.insert("required".to_owned(), json!(required));
        }
    }
    if let Some(items) = form.get("items") {
        plain.insert("items".to_owned(), shown(items));
    }
    Value::Object(plain)
}

/// The JSON type of a form's values, null aside.
pub(super) fn kind(form: &Value) -> &str {
    match form.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        Some(kind) => kind.as_str(),
        None => None,
    }
    .unwrap_or("object")
}

/// Can the arguments not be understood without this field?
pub(super) fn is_required(form: &Value, field: &str) -> bool {
    form.get("required").and_then(Value::as_array).is_some_and(|required| required.iter().any(|name| name == field))
}
