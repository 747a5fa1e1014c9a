//! Everyone who used an object: `fd 3 in apache2 (31517)`.

use rustc_hash::FxHashMap;

use crate::AnalysisError;
use crate::context::Context;
use crate::fold::Spot;
use crate::grouping::Object;
use crate::keys::{Key, KeyValue};
use crate::kinds::Spec;
use crate::pass::{Groups, Summing};

/// Sharers of each of `groups`, those with the most calls first: processes, or their descriptors.
/// `roles` are those that objects have in the calls of the question.
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
    let mut counted = Groups::default();
    for object in roles.iter().copied() {
        let mut pass = match object {
            Object::First => context.pass(spec, &by)?,
            Object::Second => context.pass_second(spec, &by)?,
        };
        for (key, values) in keys.iter().zip(columns(keys.len(), groups)) {
            if key.is_object() {
                let projection = &mut pass.projection;
                pass.selector
                    .only_objects((*key, object), values, projection);
            }
        }
        for (group, calls) in pass.run(context.tables, &Calls)? {
            *counted.entry(group).or_insert(0) += calls;
        }
    }
    let mut sharers: Vec<Vec<(u64, String)>> = vec![Vec::new(); groups.len()];
    for (group, calls) in counted {
        let (object, user) = group.split_at(keys.len());
        let (Some(place), [process, fd @ ..]) = (places.get(object), user) else {
            continue;
        };
        let process = Key::Process.label(process, &context.names);
        let sharer = match fd {
            [KeyValue::Int(fd)] => format!("fd {fd} in {process}"),
            _ => process,
        };
        sharers[*place].push((calls, sharer));
    }
    let named = |mut sharers: Vec<(u64, String)>| {
        sharers.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        sharers.into_iter().map(|(_, sharer)| sharer).collect()
    };
    Ok(sharers.into_iter().map(named).collect())
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
