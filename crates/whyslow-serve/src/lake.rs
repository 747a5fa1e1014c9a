use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};
use whyslow_base::failure::Failure;
use whyslow_sources::lake::{LakeWorker, Parameter, QUERIES};

/// The lake of the server, if any.
#[derive(Debug)]
pub(crate) struct Fleet {
    pub(crate) lake: Option<String>,
    pub(crate) worker: Mutex<Option<LakeWorker>>,
    pub(crate) time: Duration,
}

impl Fleet {
    /// Starts the query process before the server drops its privileges.
    pub(crate) fn start(lake: Option<&str>, engine: &str, time: Duration) -> Result<Self, Failure> {
        let worker = lake
            .map(|lake| LakeWorker::start(lake, engine))
            .transpose()?;
        Ok(Self {
            lake: lake.map(str::to_owned),
            worker: Mutex::new(worker),
            time,
        })
    }

    /// For a server without a lake.
    pub(crate) fn none() -> Self {
        Self {
            lake: None,
            worker: Mutex::new(None),
            time: Duration::ZERO,
        }
    }

    pub(crate) fn about(&self) -> Value {
        let parameter = |one: &Parameter| json!({"name": one.name, "default": one.default, "about": one.about, "flag": one.is_flag()});
        let queries = QUERIES.iter().map(|query| {
            let parameters: Vec<Value> = query.parameters.iter().map(parameter).collect();
            json!({"name": query.name, "about": query.about, "more": query.more, "parameters": parameters})
        });
        json!({"lake": self.lake, "queries": queries.collect::<Vec<Value>>()})
    }
}
