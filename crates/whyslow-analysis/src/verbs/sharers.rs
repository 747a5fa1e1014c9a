//! Everyone who used an object: `fd 3 in apache2 (31517)`.

use std::cmp::Reverse;

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
    let mut users = Users::default();
    let mut counted: Vec<FxHashMap<u32, u64>> = vec![FxHashMap::default(); groups.len()];
    for object in roles.iter().copied() {
        let mut pass = match object {
            Object::First => context.pass(spec, &by)?,
            Object::Second => context.pass_second(spec, &by)?,
        };
        if let Some(width) = context.interval {
            pass.group_by_time(context.span, width);
        }
        for (key, values) in keys.iter().zip(columns(keys.len(), groups)) {
            if key.is_object() {
                let projection = &mut pass.projection;
                pass.selector
                    .only_objects((*key, object), values, projection);
            }
        }
        let Some((coder, sums)) = pass.run_coded(context.tables, &Calls)? else {
            continue;
        };
        let of_user = keys.len()..by.len();
        let (mut known_places, mut known_users) = (Known::default(), Known::default());
        let mut codes = Vec::new();
        for (code, calls) in (0..).zip(sums) {
            coder.codes_of(code, &mut codes);
            let user: Vec<u32> = codes.drain(of_user.clone()).collect();
            // What is left are the keys of the group, and the interval.
            let place = known_places.get(&codes, || {
                let key = |place: usize| {
                    if place < keys.len() {
                        place
                    } else {
                        place + user.len()
                    }
                };
                let values = codes.iter().enumerate();
                let values = values.map(|(place, code)| coder.value(key(place), *code));
                places.get(&*values.collect::<Vec<KeyValue>>()).copied()
            });
            if let Some(place) = place {
                let user = known_users.get(&user, || {
                    let values = of_user.clone().zip(&user);
                    let values = values.map(|(key, code)| coder.value(key, *code));
                    Some(users.number(values.collect()))
                });
                if let Some(user) = user {
                    *counted[place].entry(user).or_default() += calls;
                }
            }
        }
    }
    Ok(users.named(context, counted))
}

/// What was found for numbers of values.
struct Known<T>(FxHashMap<Vec<u32>, Option<T>>);

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(FxHashMap::default())
    }
}

impl<T: Copy> Known<T> {
    fn get(&mut self, codes: &[u32], find: impl FnOnce() -> Option<T>) -> Option<T> {
        if let Some(known) = self.0.get(codes) {
            return *known;
        }
        let found = find();
        self.0.insert(codes.to_vec(), found);
        found
    }
}

/// Everyone met so far, by number.
#[derive(Default)]
struct Users {
    numbers: FxHashMap<Vec<KeyValue>, u32>,
    values: Vec<Vec<KeyValue>>,
}

impl Users {
    fn number(&mut self, user: Vec<KeyValue>) -> u32 {
        if let Some(number) = self.numbers.get(&user) {
            return *number;
        }
        let number = self.values.len() as u32;
        self.values.push(user.clone());
        self.numbers.insert(user, number);
        number
    }

    /// Names of users, those with the most calls first, then in their order.
    fn named(&self, context: &Context<'_>, counted: Vec<FxHashMap<u32, u64>>) -> Vec<Vec<String>> {
        let mut order: Vec<u32> = (0..self.values.len() as u32).collect();
        order.sort_unstable_by_key(|user| &self.values[*user as usize]);
        let mut ranks = vec![0; order.len()];
        for (rank, user) in (0u32..).zip(&order) {
            ranks[*user as usize] = rank;
        }
        let names = self.names(context);
        let named = |users: FxHashMap<u32, u64>| {
            let mut users: Vec<(u32, u64)> = users.into_iter().collect();
            users.sort_unstable_by_key(|(user, calls)| (Reverse(*calls), ranks[*user as usize]));
            let names = users.iter().map(|(user, _)| names[*user as usize].clone());
            names.collect()
        };
        counted.into_iter().map(named).collect()
    }

    fn names(&self, context: &Context<'_>) -> Vec<String> {
        let mut processes: FxHashMap<&KeyValue, String> = FxHashMap::default();
        let users = self.values.iter().map(|user| {
            let (process, fd) = (user.first().unwrap_or(&KeyValue::Null), user.get(1));
            let label = || Key::Process.label(process, &context.names);
            let process = processes.entry(process).or_insert_with(label);
            match fd {
                Some(KeyValue::Int(fd)) => format!("fd {fd} in {process}"),
                _ => process.clone(),
            }
        });
        users.collect()
    }
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
