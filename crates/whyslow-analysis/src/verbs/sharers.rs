//! All users of an object: `fd 3 in apache2 (31517)`.

use std::cmp::Reverse;

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rustc_hash::FxHashMap;

use crate::AnalysisError;
use crate::context::Context;
use crate::grouping::Object;
use crate::keys::{Key, KeyValue};
use crate::pass::{Count, Pass};
use crate::spec::Spec;

/// Users of each of `groups`, those with the most calls first: processes, or their file
/// descriptors. `roles` are the roles of objects in the calls of the query. With intervals, the
/// start of the interval follows the keys of a group.
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
    let mut counted: Vec<Vec<(u32, u64)>> = vec![Vec::new(); groups.len()];
    for object in roles.iter().copied() {
        let pass = pass_over(context, spec, (keys, &by), object, groups)?;
        let Some((coder, sums)) = pass.run_coded(context.tables, &Count)? else {
            continue;
        };
        let of_user = keys.len()..by.len();
        let mut known_places: FxHashMap<Vec<u32>, Option<usize>> = FxHashMap::default();
        let mut known_users: FxHashMap<[u32; USER_KEYS], u32> = FxHashMap::default();
        let mut codes = Vec::new();
        for (code, calls) in (0..).zip(sums) {
            coder.codes_of(code, &mut codes);
            let mut user = [0; USER_KEYS];
            for (place, code) in user.iter_mut().zip(codes.drain(of_user.clone())) {
                *place = code;
            }
            // The remaining keys identify the group and the interval.
            let place = known_places.get(&codes).copied().unwrap_or_else(|| {
                let key = |place: usize| {
                    if place < keys.len() {
                        place
                    } else {
                        place + of_user.len()
                    }
                };
                let values = codes.iter().enumerate();
                let values = values.map(|(place, code)| coder.value(key(place), *code));
                let place = places.get(&*values.collect::<Vec<KeyValue>>()).copied();
                known_places.insert(codes.clone(), place);
                place
            });
            if let Some(place) = place {
                let user = *known_users.entry(user).or_insert_with(|| {
                    let values = of_user.clone().zip(&user);
                    let values = values.map(|(key, code)| coder.value(key, *code));
                    match roles {
                        // There is one role, so users are unique.
                        [_] => users.add(values.collect()),
                        _ => users.number(values.collect()),
                    }
                });
                counted[place].push((user, calls));
            }
        }
    }
    if roles.len() > 1 {
        counted.iter_mut().for_each(add_up);
    }
    Ok(users.named(context, counted))
}

/// For calls that have the objects of these groups in this role.
fn pass_over(
    context: &Context<'_>,
    spec: &'static Spec,
    (keys, by): (&[Key], &[Key]),
    object: Object,
    groups: &[&[KeyValue]],
) -> Result<Pass, AnalysisError> {
    let mut pass = match object {
        Object::First => context.pass(spec, by)?,
        Object::Second => context.pass_second(spec, by)?,
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
    Ok(pass)
}

/// Maximum number of keys of a user: a process and a file descriptor.
const USER_KEYS: usize = 2;

/// Merges duplicate users: those of one role are unique, like their groups.
fn add_up(users: &mut Vec<(u32, u64)>) {
    users.sort_unstable();
    users.dedup_by(|(user, calls), (before, sum)| {
        let is_same = user == before;
        *sum += if is_same { *calls } else { 0 };
        is_same
    });
}

/// All users so far, by number.
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
        let number = self.add(user.clone());
        self.numbers.insert(user, number);
        number
    }

    fn add(&mut self, user: Vec<KeyValue>) -> u32 {
        self.values.push(user);
        self.values.len() as u32 - 1
    }

    /// Names of users, those with the most calls first, then in order. Each group may have tens of
    /// thousands of users.
    fn named(&self, context: &Context<'_>, counted: Vec<Vec<(u32, u64)>>) -> Vec<Vec<String>> {
        let numbered = (0u32..).zip(&self.values);
        let mut order: Vec<_> = numbered
            .map(|(number, user)| (numbers_of(user), number))
            .collect();
        order.sort_unstable_by(|(a, number_a), (b, number_b)| {
            let value = |number: u32| &self.values[number as usize];
            a.cmp(b)
                .then_with(|| value(*number_a).cmp(value(*number_b)))
        });
        let mut ranks = vec![0; order.len()];
        for (rank, (_, user)) in (0u32..).zip(&order) {
            ranks[*user as usize] = rank;
        }
        let names = self.names(context);
        let named = |mut users: Vec<(u32, u64)>| {
            users.sort_unstable_by_key(|(user, calls)| (Reverse(*calls), ranks[*user as usize]));
            let names = users.iter().map(|(user, _)| names[*user as usize].clone());
            names.collect()
        };
        counted.into_par_iter().map(named).collect()
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

/// A sort key for most users, to sort without accessing each value: the type of the value and a
/// number for each key, up to the first text.
fn numbers_of(user: &[KeyValue]) -> [(u8, i64); USER_KEYS] {
    let mut numbers = [(0, 0); USER_KEYS];
    for (place, value) in numbers.iter_mut().zip(user) {
        *place = match value {
            KeyValue::Null => (0, 0),
            KeyValue::Int(number) => (1, *number),
            KeyValue::Text(_) => (2, 0),
        };
        if place.0 == 2 {
            break;
        }
    }
    numbers
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
