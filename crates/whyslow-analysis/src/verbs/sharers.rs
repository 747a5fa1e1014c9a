//! Everyone who used an object: `fd 3 in apache2 (31517)`.

use rustc_hash::FxHashMap;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::grouping::Object;
use crate::keys::{Key, KeyValue};
use crate::kinds::Spec;
use crate::pass::Summing;

/// Sharers of each of `groups`, those with the most calls first: processes, or their descriptors.
/// `roles` are those that objects have in the calls of the question. Where it asks for intervals,
/// groups have the begin of theirs after their keys.
pub(crate) fn of(
    context: &Context<'_>,
    spec: &'static Spec,
    (keys, user): (&[Key], &[Key]),
    roles: &[Object],
    groups: &[&[KeyValue]],
) -> Result<Vec<Vec<String>>, AnalysisError> {
    let mut by = keys.to_vec();
    by.extend(user);
    let places: FxHashMap<&[KeyValue], usize> = groups
        .iter()
        .enumerate()
        .map(|(place, group)| (*group, place))
        .collect();
    let mut counted: Vec<FxHashMap<Vec<KeyValue>, u64>> = vec![FxHashMap::default(); groups.len()];
    for object in roles.iter().copied() {
        let mut pass = match object {
            Object::First => context.pass(spec, &by)?,
            Object::Second => context.pass_second(spec, &by)?,
        };
        let interval = context.interval;
        if let Some(width) = interval {
            pass.group_by_time(context.span, width);
        }
        for (key, values) in keys.iter().zip(columns(keys.len(), groups)) {
            if key.is_object() {
                let projection = &mut pass.projection;
                pass.selector
                    .only_objects((*key, object), values, projection);
            }
        }
        let grouping = std::slice::from_ref(&pass.grouping);
        let found = pass.run_by(context.tables, &Calls, grouping)?;
        for (mut group, calls) in found.into_iter().flatten() {
            let time = interval.and_then(|_| group.pop());
            let user = group.split_off(keys.len());
            group.extend(time);
            if let Some(place) = places.get(&*group) {
                *counted[*place].entry(user).or_default() += calls;
            }
        }
    }
    let mut processes: FxHashMap<KeyValue, String> = FxHashMap::default();
    let mut named = |users: FxHashMap<Vec<KeyValue>, u64>| {
        let mut users: Vec<(Vec<KeyValue>, u64)> = users.into_iter().collect();
        users.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let name = |(user, _): (Vec<KeyValue>, u64)| {
            let (process, fd) = (user.first().unwrap_or(&KeyValue::Null), user.get(1));
            let label = || Key::Process.label(process, &context.names);
            let process = processes.entry(process.clone()).or_insert_with(label);
            match fd {
                Some(KeyValue::Int(fd)) => format!("fd {fd} in {process}"),
                _ => process.clone(),
            }
        };
        users.into_iter().map(name).collect()
    };
    Ok(counted.into_iter().map(&mut named).collect())
}

/// Values of each key in any of the groups.
fn columns(keys: usize, groups: &[&[KeyValue]]) -> Vec<Vec<KeyValue>> {
    (0..keys)
        .map(|key| {
            groups
                .iter()
                .filter_map(|group| group.get(key).cloned())
                .collect()
        })
        .collect()
}

/// Counts rows.
pub(crate) struct Calls;

impl Summing for Calls {
    type Columns<'b> = ();
    type Sum = u64;

    fn columns(&self, _: &arrow_array::RecordBatch, _: Spot) -> Result<(), AnalysisError> {
        Ok(())
    }

    fn add(&self, sum: &mut u64, (): &(), _: u32) {
        *sum += 1;
    }

    fn merge(&self, sum: &mut u64, other: u64) {
        *sum += other;
    }
}
