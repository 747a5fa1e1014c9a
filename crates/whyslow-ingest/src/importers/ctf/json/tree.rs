//! A JSON value that preserves the order of properties, which is the order of labels.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Json {
    Null,
    Truth(bool),
    Integer(i128),
    /// Not used by the format.
    Fraction,
    Text(String),
    Array(Vec<Json>),
    Object(Object),
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Object(pub(super) Vec<(String, Json)>);

impl Object {
    pub(super) fn get(&self, name: &str) -> Option<&Json> {
        let mut properties = self.0.iter();
        properties
            .find(|(own, value)| own == name && *value != Json::Null)
            .map(|(_, value)| value)
    }

    /// The first present of several spellings.
    pub(super) fn get_any(&self, names: &[&str]) -> Option<&Json> {
        names.iter().find_map(|name| self.get(name))
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<&str>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::Text(text)) => Ok(Some(text)),
            Some(other) => Err(format!("`{name}` is {}, not a string", other.kind())),
        }
    }

    pub(super) fn integer(&self, name: &str) -> Result<Option<i128>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::Integer(integer)) => Ok(Some(*integer)),
            Some(other) => Err(format!("`{name}` is {}, not an integer", other.kind())),
        }
    }

    pub(super) fn unsigned(&self, name: &str) -> Result<Option<u64>, String> {
        self.integer(name)?
            .map(|value| u64::try_from(value).map_err(|_| format!("invalid `{name}` {value}")))
            .transpose()
    }

    pub(super) fn object(&self, name: &str) -> Result<Option<&Object>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::Object(object)) => Ok(Some(object)),
            Some(other) => Err(format!("`{name}` is {}, not an object", other.kind())),
        }
    }

    pub(super) fn array(&self, name: &str) -> Result<Option<&[Json]>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Json::Array(array)) => Ok(Some(array)),
            Some(other) => Err(format!("`{name}` is {}, not an array", other.kind())),
        }
    }
}

impl Json {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Json::Null => "null",
            Json::Truth(_) => "a truth value",
            Json::Integer(_) => "an integer",
            Json::Fraction => "a fraction",
            Json::Text(_) => "a string",
            Json::Array(_) => "an array",
            Json::Object(_) => "an object",
        }
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, truth: bool) -> Result<Json, E> {
        Ok(Json::Truth(truth))
    }

    fn visit_i64<E>(self, integer: i64) -> Result<Json, E> {
        Ok(Json::Integer(integer.into()))
    }

    fn visit_u64<E>(self, integer: u64) -> Result<Json, E> {
        Ok(Json::Integer(integer.into()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Json, E> {
        Ok(Json::Fraction)
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Json, E> {
        Ok(Json::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element()? {
            array.push(item);
        }
        Ok(Json::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut properties: A) -> Result<Json, A::Error> {
        let mut object = Vec::new();
        while let Some(property) = properties.next_entry()? {
            object.push(property);
        }
        Ok(Json::Object(Object(object)))
    }
}
