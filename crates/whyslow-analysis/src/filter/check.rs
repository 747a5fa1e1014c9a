//! Rejects filters on columns that a kind does not have.

use crate::AnalysisError;
use crate::keys::Key;
use crate::query::Filter;
use crate::spec::Spec;

impl Spec {
    /// Rejects filters on columns that the kind does not have, which would match nothing.
    pub(crate) fn check(&self, filter: &Filter) -> Result<(), AnalysisError> {
        let has = |column| self.table.column(column).is_some();
        let refuse = |is_set: bool, what: &str| {
            if is_set {
                let message = format!("cannot filter {} by {what}", self.name);
                return Err(AnalysisError::query(message, self.hint_for(what)));
            }
            Ok(())
        };
        refuse(!filter.devices.is_empty() && !has("dev"), "device")?;
        refuse(!filter.files.is_empty() && !has("path"), "file")?;
        let sized = filter
            .size
            .or(filter.size_min)
            .or(filter.size_max)
            .is_some();
        refuse(sized && self.size.is_none(), "size")?;
        let has_errors = self.errno.is_some() || self.hooks.failure.is_some();
        refuse(filter.errors_only && !has_errors, "error")?;
        refuse(!filter.cpus.is_empty() && !has("cpu"), "CPU")?;
        let bounded = filter.dur_min.or(filter.dur_max).is_some();
        refuse(bounded && !has("dur"), "duration")?;
        refuse(filter.ended_in.is_some() && !has("ts_end"), "end")?;
        refuse(!filter.ops.is_empty() && !has(self.class), "operation")?;
        refuse(!filter.names.is_empty() && !has("name"), "name")?;
        refuse(!filter.tids.is_empty() && !has("tid"), "thread")?;
        refuse(!filter.pids.is_empty() && !has("pid"), "process")?;
        refuse(!filter.threads.is_empty() && !has("comm"), "thread")?;
        refuse(filter.is_of_stacks() && !has("callsite_id"), "stack")?;
        refuse(!filter.cgroups.is_empty() && !has("upid"), "process")?;
        for values in &filter.values {
            refuse(Key::parse(self, values.key).is_err(), values.key)?;
        }
        let unknown =
            |op: &&String| !self.classes.is_empty() && !self.classes.contains(&op.as_str());
        if let Some(op) = filter.ops.iter().find(unknown) {
            let message = format!("unknown operation `{op}` of {}", self.name);
            let hint = format!("use one of {}", self.classes.join(", "));
            return Err(AnalysisError::query(message, hint));
        }
        Ok(())
    }

    fn hint_for(&self, what: &str) -> String {
        let kind = match what {
            "device" => "block",
            "stack" => "stacks",
            _ => self.hooks.hint,
        };
        format!("use `whyslow {kind}`, or remove the filter")
    }
}
