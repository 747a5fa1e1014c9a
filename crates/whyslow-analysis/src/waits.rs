//! How many waits for work a view of durations leaves out, and how long they last.

use std::sync::Arc;

use arrow_array::RecordBatch;
use whyslow_model::Ns;
use whyslow_model::answer::LeftOut;
use whyslow_model::sort::IndexSort;

use crate::AnalysisError;
use crate::context::Context;
use crate::filter::Kept;
use crate::fold::Spot;
use crate::keys::{Key, KeyValue};
use crate::pass::{Pass, Summing};
use crate::query::Query;
use crate::scan::{ColumnRef, Ints};
use crate::spec::{Spec, WaitRows, Waits};

impl Query {
    /// Whether the query selects waits for work: by its option, or by the name of the rows.
    pub(crate) fn selects_waits(&self, spec: &Spec) -> bool {
        let filter = &self.filter;
        let by_name = |name: &str| filter.values.iter().any(|values| values.key == name);
        self.waits
            || !filter.names.is_empty()
            || by_name("name")
            // States have no other names than their classes.
            || (!spec.classes.is_empty() && (!filter.ops.is_empty() || by_name("state")))
    }

    /// System calls that the query selects by name.
    pub(crate) fn named_calls(&self, spec: &Spec) -> Vec<String> {
        let ops = self.filter.ops.iter();
        ops.filter(|op| !(spec.hooks.is_class)(op))
            .cloned()
            .collect()
    }
}

impl Context<'_> {
    /// Whether waits for work are left out: in views of durations, unless the query selects them.
    pub(crate) fn leaves_waits_out(&self, spec: &Spec) -> bool {
        let is_view = |waits: &Waits| waits.views.contains(&self.query.verb);
        spec.hooks.waits.as_ref().is_some_and(is_view) && !self.query.selects_waits(spec)
    }

    /// Keeps only waits for work, or only the other rows.
    pub(crate) fn keep(&self, kept: Kept, spec: &Spec, pass: &mut Pass) {
        let Pass {
            selector,
            projection,
            ..
        } = pass;
        match spec.hooks.waits.map(|waits| waits.rows) {
            Some(WaitRows::Calls) => {
                selector.only_waits_of_calls(self.query.named_calls(spec), kept, projection);
            }
            Some(WaitRows::States) => {
                selector.only_idle_sleeps(Arc::clone(&self.sleeps), kept, projection);
            }
            None => {}
        }
    }
}

/// Waits for work among the rows of the query, if it leaves them out and there are some.
pub(crate) fn left_out(
    context: &Context<'_>,
    spec: &'static Spec,
) -> Result<Option<LeftOut>, AnalysisError> {
    let Some(waits) = spec.hooks.waits.filter(|_| context.leaves_waits_out(spec)) else {
        return Ok(None);
    };
    let (what, keys): (_, &[Key]) = match waits.rows {
        WaitRows::Calls => ("waits for work", &[Key::Name]),
        WaitRows::States => (
            "sleeps of idle kernel threads and in calls that wait for work",
            &[],
        ),
    };
    let mut pass = context.pass_of_waits(spec, keys)?;
    let durations = Durations(pass.projection.need("dur"));
    let mut left_out = LeftOut {
        what,
        count: 0,
        total_ns: 0,
        by_name: Vec::new(),
        option: "--waits",
    };
    for (group, (count, total)) in pass.run(context.tables, &durations)? {
        left_out.count += count;
        left_out.total_ns = left_out.total_ns.saturating_add(total);
        if let Some(KeyValue::Text(name)) = group.into_iter().next() {
            left_out.by_name.push((name.into(), count, total));
        }
    }
    left_out
        .by_name
        .index_sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
    Ok((left_out.count > 0).then_some(left_out))
}

/// Number of rows, and the sum of their known durations.
struct Durations(ColumnRef);

impl Summing for Durations {
    type Columns<'b> = Ints<'b>;
    type Sum = (u64, Ns);

    fn columns<'b>(&self, batch: &'b RecordBatch, _: Spot) -> Result<Ints<'b>, AnalysisError> {
        self.0.ints(batch)
    }

    #[inline]
    fn add(&self, (count, total): &mut (u64, Ns), durations: &Ints<'_>, row: u32) {
        *count += 1;
        *total = total.saturating_add(durations.or_zero(row));
    }

    fn merge(&self, sum: &mut (u64, Ns), other: (u64, Ns)) {
        sum.0 += other.0;
        sum.1 = sum.1.saturating_add(other.1);
    }
}
