//! Fits what a model sent to what a tool takes: mends what can be meant in one way only, and names what can't.
//!
//! Works by the schema alone; knows no tool.

use serde_json::{Map, Number, Value};

use super::spec::{is_required, kind};

/// Whole numbers above this are no line, second or count that anybody means.
const WHOLE_NUMBER_MAX: f64 = 9e15;

/// Arguments in the types of the form.
///
/// # Errors
/// Which field is missing or wrong, and what it must be.
pub(super) fn fit(arguments: Map<String, Value>, form: &Value) -> Result<Map<String, Value>, String> {
    fit_object(arguments, form, "")
}

/// What a tool takes, in words: `bash takes command (a string), timeout (a whole number, optional)`.
pub(super) fn takes(tool: &str, form: &Value) -> String {
    let fields: Vec<String> = properties(form)
        .map(|(field, property)| {
            let optional = if is_required(form, field) { "" } else { ", optional" };
            format!("{field} ({}{optional})", expected(property))
        })
        .collect();
    if fields.is_empty() { format!("{tool} takes no arguments") } else { format!("{tool} takes {}", fields.join(", ")) }
}

fn properties(form: &Value) -> impl Iterator<Item = (&String, &Value)> {
    form.get("properties").and_then(Value::as_object).into_iter().flatten()
}

fn fit_object(mut arguments: Map<String, Value>, form: &Value, path: &str) -> Result<Map<String, Value>, String> {
    let mut fitted = Map::new();
    for (field, property) in properties(form) {
        let place = if path.is_empty() { field.clone() } else { format!("{path}.{field}") };
        let required = is_required(form, field);
        let value = arguments.remove(field).filter(|value| !stands_for_nothing(value, property, required));
        match value {
            Some(value) => {
                fitted.insert(field.clone(), fit_value(value, property, &place)?);
            }
            None if required => return Err(format!("`{place}` is missing: it must be {}", expected(property))),
            None => {}
        }
    }
    Ok(fitted)
}

/// Small models fill in every field: null, an empty text or "null" where nothing is meant.
fn stands_for_nothing(value: &Value, form: &Value, required: bool) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) if kind(form) == "string" => !required && text.is_empty(),
        Value::String(text) => ["", "null", "none"].contains(&text.trim().to_ascii_lowercase().as_str()),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

fn fit_value(value: Value, form: &Value, place: &str) -> Result<Value, String> {
    let found = found(&value);
    let fitted = match kind(form) {
        "string" => text(value),
        "integer" => whole_number(&value).map(Value::from),
        "boolean" => truth(&value).map(Value::from),
        "array" => match list(value) {
            Some(items) => return fit_items(items, form, place),
            None => None,
        },
        // The rest are objects.
        _object => match object(value) {
            Some(fields) => return fit_object(fields, form, place).map(Value::Object),
            None => None,
        },
    };
    fitted.ok_or_else(|| format!("`{place}` must be {}, not {found}", expected(form)))
}

fn fit_items(items: Vec<Value>, form: &Value, place: &str) -> Result<Value, String> {
    let form = form.get("items").unwrap_or(&Value::Null);
    let items = items.into_iter().enumerate().map(|(at, item)| fit_value(item, form, &format!("{place}[{at}]")));
    items.collect()
}

fn text(value: Value) -> Option<Value> {
    match value {
        Value::String(_) => Some(value),
        // Texts that look like numbers lose their quotes; a fraction could be written in several ways.
        Value::Number(number) if !number.is_f64() => Some(Value::from(number.to_string())),
        Value::Bool(truth) => Some(Value::from(truth.to_string())),
        Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Fractions are taken up to the next whole number: a limit of 1.5 s is no shorter than asked for.
fn whole_number(value: &Value) -> Option<u64> {
    let number = match value {
        Value::Number(number) => number.clone(),
        Value::String(text) => match text.trim().parse::<u64>() {
            Ok(whole) => Number::from(whole),
            Err(_) => Number::from_f64(text.trim().parse().ok()?)?,
        },
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
    };
    match (number.as_u64(), number.as_f64()) {
        (Some(whole), _) => Some(whole),
        // In range and whole, so the conversion is exact.
        (None, Some(number)) if (0.0..WHOLE_NUMBER_MAX).contains(&number) => Some(number.ceil() as u64),
        (None, Some(_) | None) => None,
    }
}

fn truth(value: &Value) -> Option<bool> {
    let word = match value {
        Value::Bool(truth) => return Some(*truth),
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.trim().to_ascii_lowercase(),
        Value::Null | Value::Array(_) | Value::Object(_) => return None,
    };
    match word.as_str() {
        "true" | "yes" | "1" => Some(true),
        "false" | "no" | "0" => Some(false),
        _other => None,
    }
}

/// A list, one written as a text, or a single entry without its list.
fn list(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items),
        Value::Object(_) => Some(vec![value]),
        Value::String(text) => match serde_json::from_str(&text).ok()? {
            Value::Array(items) => Some(items),
            entry @ Value::Object(_) => Some(vec![entry]),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn object(value: Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(fields) => Some(fields),
        Value::String(text) => match serde_json::from_str(&text).ok()? {
            Value::Object(fields) => Some(fields),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => None,
        },
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    }
}

fn expected(form: &Value) -> String {
    let fields = |form: &Value| properties(form).map(|(field, _)| field.as_str()).collect::<Vec<_>>().join(", ");
    match kind(form) {
        "string" => "a string".to_owned(),
        "integer" => "a whole number from 0".to_owned(),
        "boolean" => "true or false".to_owned(),
        "array" => {
            let items = form.get("items").map(fields).unwrap_or_default();
            format!("a list of objects with {items}")
        }
        _object => format!("an object with {}", fields(form)),
    }
}

fn found(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(truth) => truth.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("{:?}", text.chars().take(60).collect::<String>()),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}
