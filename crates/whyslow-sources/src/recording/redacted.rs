//! A recording of which is shown only what tells nothing of people and machines.

use whyslow_base::args::{RedactArgs, RedactScope};
use whyslow_base::failure::Failure;
use whyslow_export::redact::{Keep, Key, RedactedTables, Redactor, Scope};

use super::opened::Opened;

/// Its own name may be that of a machine.
const NAME: &str = "recording";

impl Opened {
    /// The same, with what the flags say hidden: whatever is asked of it, the answer has no other texts
    /// in it. What it is called is hidden, too.
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
            None => Key::random().map_err(|error| {
                Failure::new("there are no random numbers for a key").caused_by(&error)
            })?,
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
