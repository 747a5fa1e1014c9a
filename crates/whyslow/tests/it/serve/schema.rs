//! The part of JSON Schema that the description of the API uses.

use serde_json::Value;

/// A document with schemas to refer to.
pub(crate) struct Schemas<'d>(pub(crate) &'d Value);

impl Schemas<'_> {
    pub(crate) fn check(&self, place: &str, schema: &Value, value: &Value) {
        if let Some(wrong) = self.wrong(place, schema, value) {
            panic!("{wrong}");
        }
    }

    /// Violations of the schema in the value.
    pub(crate) fn wrong(&self, place: &str, schema: &Value, value: &Value) -> Option<String> {
        if let Some(at) = schema["$ref"].as_str() {
            let found = self.0.pointer(at.trim_start_matches('#'));
            return self.wrong(place, found.expect("it refers to something"), value);
        }
        if let Some(choices) = schema["oneOf"].as_array() {
            let fitting = |choice: &&Value| self.wrong(place, choice, value).is_none();
            let count = choices.iter().filter(fitting).count();
            return (count != 1).then(|| format!("{place}: {count} of the choices fit {value}"));
        }
        if schema.get("const").is_some_and(|only| only != value) {
            return Some(format!("{place}: {value} is not {}", schema["const"]));
        }
        if schema["enum"]
            .as_array()
            .is_some_and(|all| !all.contains(value))
        {
            return Some(format!("{place}: {value} is not one of {}", schema["enum"]));
        }
        if !is_of_type(&schema["type"], value) {
            return Some(format!("{place}: {value} is no {}", schema["type"]));
        }
        self.wrong_entry(place, schema, value)
            .or_else(|| self.wrong_item(place, schema, value))
    }

    fn wrong_entry(&self, place: &str, schema: &Value, value: &Value) -> Option<String> {
        let entries = value.as_object()?;
        let required = schema["required"].as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            if !entries.contains_key(name) {
                return Some(format!("{place}: {name} is missing in {value}"));
            }
        }
        entries.iter().find_map(|(name, entry)| {
            let place = format!("{place}.{name}");
            match (
                schema["properties"].get(name),
                &schema["additionalProperties"],
            ) {
                (Some(schema), _) => self.wrong(&place, schema, entry),
                (None, Value::Bool(false)) => Some(format!("{place} is too much")),
                (None, Value::Null | Value::Bool(true)) => None,
                (None, schema) => self.wrong(&place, schema, entry),
            }
        })
    }

    fn wrong_item(&self, place: &str, schema: &Value, value: &Value) -> Option<String> {
        let items = schema.get("items")?;
        let mut values = value.as_array()?.iter().enumerate();
        values.find_map(|(at, value)| self.wrong(&format!("{place}[{at}]"), items, value))
    }
}

fn is_of_type(types: &Value, value: &Value) -> bool {
    let is = |name: &str| match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no such type: {other}"),
    };
    match types {
        Value::Null => true,
        Value::String(name) => is(name),
        Value::Array(names) => names.iter().filter_map(Value::as_str).any(is),
        other => panic!("no type: {other}"),
    }
}
