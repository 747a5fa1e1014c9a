use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use whyslow_base::failure::Failure;
use whyslow_sources::lake::{Keeper, Parameter, QUESTIONS};

/// A lake, if the server has one.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) lake: Option<String>,
    pub(crate) keeper: Mutex<Option<Keeper>>,
    pub(crate) time: Duration,
}

impl Fleet {
    /// Starts what asks, while it still may have what the server gives up.
    pub(crate) fn start(lake: Option<&str>, engine: &str, time: Duration) -> Result<Self, Failure> {
        let keeper = lake.map(|lake| Keeper::start(lake, engine)).transpose()?;
        Ok(Self {
            lake: lake.map(str::to_owned),
            keeper: Mutex::new(keeper),
            time,
        })
    }

    /// Of whoever asks recordings only.
    pub(crate) fn none() -> Self {
        Self {
            lake: None,
            keeper: Mutex::new(None),
            time: Duration::ZERO,
        }
    }

    pub(crate) fn about(&self) -> Value {
        let parameter = |one: &Parameter| json!({"name": one.name, "default": one.default, "about": one.about, "flag": one.is_flag()});
        let questions = QUESTIONS.iter().map(|question| {
            let parameters: Vec<Value> = question.parameters.iter().map(parameter).collect();
            json!({"name": question.name, "about": question.about, "more": question.more, "parameters": parameters})
        });
        json!({"lake": self.lake, "questions": questions.collect::<Vec<Value>>()})
    }
}
