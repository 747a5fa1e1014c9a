//! A recording without personal and machine-specific texts.

use whyslow_base::args::{RedactArgs, RedactScope};
use whyslow_base::failure::Failure;
use whyslow_export::redact::{Keep, Key, RedactedTables, Redactor, Scope};

use super::opened::Opened;

/// Its own name may be the name of a machine.
const NAME: &str = "recording";

impl Opened {
    /// Hides the texts that the flags select, including the name of the recording: no answer
    /// contains them.
    pub fn redacted(self, args: &RedactArgs) -> Result<Self, Failure> {
        let Some(scope) = args.redact else {
            return Ok(self);
        };
        let scope = match scope {
            RedactScope::Texts => Scope::Texts,
            RedactScope::Names => Scope::Names,
        };
        let key = match &args.redact_key {
            Some(path) => Key::read(path).map_err(|error| Failure::reading(path, error))?,
            None => Key::random()
                .map_err(|error| Failure::new("cannot generate a random key").caused_by(&error))?,
        };
        let keep = Keep::new(args.keep.iter().map(String::as_str)).map_err(Failure::usage)?;
        let redactor = Redactor::new(key, scope).keeping(keep);
        Ok(Self {
            tables: Box::new(RedactedTables::new(self.tables, redactor)?),
            name: NAME.to_owned(),
            ..self
        })
    }
}
