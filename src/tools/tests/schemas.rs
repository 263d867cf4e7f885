//! What a model is told of its tools: small, flat, stable, and exactly the contract.

use serde_json::Value;

use super::super::{Role, definitions, spec};
use crate::protocol::Effect;

/// A name with what a model may call it with: `*` is required, a word before the colon the type.
fn signature(tool: &Value) -> String {
    let function = &tool["function"];
    assert_eq!(tool["type"], "function");
    format!("{}({})", function["name"].as_str().unwrap(), fields(&function["parameters"]))
}

fn fields(parameters: &Value) -> String {
    assert_eq!(parameters["type"], "object", "{parameters}");
    let required: Vec<&str> =
        parameters["required"].as_array().into_iter().flatten().map(|name| name.as_str().unwrap()).collect();
    assert!(required.iter().all(|name| !parameters["properties"][name].is_null()), "{parameters}");
    let field = |(name, form): (&String, &Value)| {
        let optional = if required.contains(&name.as_str()) { "" } else { "?" };
        let inner = match form.get("items") {
            Some(items) if items["type"] == "object" => format!("[{}]", fields(items)),
            Some(items) => format!("[{}]", items["type"].as_str().unwrap()),
            None => String::new(),
        };
        format!("{name}{optional}:{}{inner}", form["type"].as_str().unwrap())
    };
    parameters["properties"].as_object().unwrap().iter().map(field).collect::<Vec<_>>().join(", ")
}

#[test]
fn the_tools_of_each_role_are_those_of_the_contract() {
    let everyone = [
        "bash(command:string, timeout?:integer, run_in_background?:boolean)",
        "bash_output(id:string)",
        "bash_stop(id:string)",
        "read_file(path:string, offset?:integer, limit?:integer)",
        "write_file(path:string, content:string)",
        "edit_file(path:string, old_text:string, new_text:string, replace_all?:boolean)",
        "glob(pattern:string, path?:string)",
        "grep(pattern:string, path?:string, glob?:string)",
        "send_message(to:string, content:string, wake?:boolean, reply_to?:string)",
        "withdraw_message(id:string)",
        "list_teammates()",
    ];
    let lead = [
        "propose_team(members:array[name:string, role:string, prompt:string, require_plan?:boolean, model?:string], reason:string)",
        "spawn_teammate(name:string, role?:string, prompt?:string, require_plan?:boolean, model?:string)",
        "assign_task(to:string, task:string, require_plan?:boolean)",
        "broadcast(content:string, wake?:boolean)",
        "request_plan(teammate:string, task:string)",
        "review_plan(request_id:string, approve:boolean, feedback?:string, paths?:array[string])",
        "request_shutdown(teammate:string, reason?:string)",
        "stop_teammate(teammate:string, how:string, reason?:string)",
        "request_status(request_id:string)",
        "list_requests(status?:string)",
    ];
    let teammate = [
        "report_status(text:string)",
        "submit_plan(plan:string, paths?:array[string], commands?:array[string])",
        "shutdown_response(request_id:string, approve:boolean, reason?:string)",
    ];
    for (role, own) in [(Role::Lead, &lead[..]), (Role::Teammate, &teammate[..])] {
        let signatures: Vec<String> = definitions(role).as_array().unwrap().iter().map(signature).collect();
        assert_eq!(signatures, [&everyone[..], own].concat());
    }
}

#[test]
fn definitions_are_small_flat_and_stable() {
    for (role, bytes_max) in [(Role::Lead, 6_800), (Role::Teammate, 4_450)] {
        let text = definitions(role).to_string();
        assert!(text.len() <= bytes_max, "{role:?}: {} bytes\n{text}", text.len());
        assert_eq!(text, definitions(role).to_string());
        keys(definitions(role), &mut |key| {
            let odd = ["$ref", "$schema", "$defs", "title", "format", "default", "oneOf", "anyOf", "const", "minimum"];
            assert!(!odd.contains(&key), "{key} in {text}");
        });
        assert!(!text.contains("null"), "{text}");
    }
}

fn keys(value: &Value, look: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| {
            look(key);
            keys(value, look);
        }),
        Value::Array(items) => items.iter().for_each(|item| keys(item, look)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_prompt_is_one_description_and_hints_for_fields_that_exist() {
    for role in [Role::Lead, Role::Teammate] {
        for (spec, tool) in spec::of(role).zip(definitions(role).as_array().unwrap()) {
            let function = &tool["function"];
            let description = function["description"].as_str().unwrap();
            assert!(description.ends_with(['.', '?']) && !description.contains('\n'), "{description}");
            for (field, hint) in spec::words(spec.prompt).1 {
                assert_eq!(function["parameters"]["properties"][field]["description"], hint, "{}.{field}", spec.name);
            }
        }
    }
}

#[test]
fn i3_every_tool_declares_its_effect_and_team_tools_touch_nothing() {
    let of = |effect| {
        let mut names: Vec<&str> = [Role::Lead, Role::Teammate]
            .into_iter()
            .flat_map(spec::of)
            .filter(|spec| spec.effect == effect)
            .map(|spec| spec.name)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    assert_eq!(of(Effect::Execute), ["bash"]);
    assert_eq!(of(Effect::Write), ["edit_file", "write_file"]);
    assert_eq!(of(Effect::Read), ["bash_output", "glob", "grep", "read_file"]);
    assert_eq!(of(Effect::Team).len(), 17);
}
