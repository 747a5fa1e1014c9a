//! Finds when threads were in code of a class with a contended lock.

use rustc_hash::{FxHashMap, FxHashSet};
use whyslow_model::Ns;
use whyslow_model::sort::IndexSort;

use super::stacks::{Class, Stacks};
use super::wait::Found;
use crate::profile::gaps::Gaps;
use crate::profile::{NO_STACK, Profile, RuntimeKind, SampleKind};

/// A thread in such code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Presence {
    pub(super) from: Ns,
    pub(super) to: Ns,
    pub(super) thread: u32,
    pub(super) stack: u32,
    /// Index in [`Gaps::gaps`], if a gap is the evidence.
    pub(super) gap: Option<u32>,
}

/// Evidence by class, in time order.
pub(super) struct Evidence {
    by_class: FxHashMap<Class, Vec<Presence>>,
}

impl Evidence {
    pub(super) fn of(profile: &Profile, gaps: &Gaps, stacks: &Stacks, found: &[Found]) -> Self {
        let classes: FxHashSet<Class> = found.iter().map(|one| one.class).collect();
        let mut collecting = Collecting {
            stacks,
            profile,
            inside: vec![None; profile.stacks.len()],
            own: own_waits(profile, found),
            ended: vec![0; profile.threads.len()],
            classes,
            by_class: FxHashMap::default(),
            near: profile.interval.unwrap_or(0),
        };
        collecting.points(gaps);
        for (number, gap) in (0..).zip(&gaps.gaps) {
            if let Some(thread) = gap.thread {
                collecting.add(Presence {
                    from: gap.ts,
                    to: gap.ts_end,
                    thread,
                    stack: gap.after,
                    gap: Some(number),
                });
            }
        }
        collecting.events();
        let mut by_class = collecting.by_class;
        for of in by_class.values_mut() {
            of.index_sort_by_ints(|one| [one.from, i64::from(one.thread), one.to]);
        }
        Self { by_class }
    }

    /// Evidence for several classes, in time order.
    pub(super) fn among(&self, classes: &[Class]) -> Vec<Presence> {
        let of = classes.iter().filter_map(|class| self.by_class.get(class));
        let mut all: Vec<Presence> = of.flatten().copied().collect();
        if classes.len() > 1 {
            all.sort_by_key(|one| (one.from, one.thread, one.to, one.stack));
            all.dedup_by_key(|one| (one.from, one.thread, one.to, one.stack));
        }
        all
    }
}

/// Waits of each thread, sorted by end.
fn own_waits(profile: &Profile, found: &[Found]) -> Vec<Vec<(Ns, Ns, Class)>> {
    let mut own = vec![Vec::new(); profile.threads.len()];
    for one in found {
        own[one.wait.thread as usize].push((one.wait.ts, one.wait.ts_end, one.class));
    }
    for of in &mut own {
        of.index_sort_by_key(|(ts, end, class)| (*end, *ts, *class));
    }
    own
}

/// Index of the first element of a sorted list for which `is_before` is false. It is usually close
/// to `near`, because queries are nearly sorted.
fn first_from<T>(sorted: &[T], near: usize, mut is_before: impl FnMut(&T) -> bool) -> usize {
    const STEPS: usize = 4;
    let is_behind = near == 0 || sorted.get(near - 1).is_some_and(&mut is_before);
    if is_behind {
        for at in near..near + STEPS {
            if sorted.get(at).is_none_or(|one| !is_before(one)) {
                return at.min(sorted.len());
            }
        }
    }
    sorted.partition_point(is_before)
}

struct Collecting<'p> {
    stacks: &'p Stacks,
    profile: &'p Profile,
    /// Classes that each stack is in, computed on first use.
    inside: Vec<Option<Box<[Class]>>>,
    own: Vec<Vec<(Ns, Ns, Class)>>,
    /// For each thread, the number of its waits that had ended at the last query.
    ended: Vec<usize>,
    classes: FxHashSet<Class>,
    by_class: FxHashMap<Class, Vec<Presence>>,
    near: Ns,
}

impl Collecting<'_> {
    fn points(&mut self, gaps: &Gaps) {
        let profile = self.profile;
        for (at, point) in profile.points.iter().enumerate() {
            if gaps.is_queued.get(at).copied().unwrap_or(false) {
                continue;
            }
            let from = match gaps.since.get(at) {
                Some(since) if point.kind == SampleKind::Wall => *since,
                _ => point.ts.saturating_sub(self.near),
            };
            self.add(Presence {
                from,
                to: point.ts.saturating_add(point.span),
                thread: point.thread,
                stack: point.stack,
                gap: None,
            });
        }
    }

    /// Runtime events during which a thread keeps its locks.
    fn events(&mut self) {
        let profile = self.profile;
        for event in &profile.events {
            let keeps = !matches!(
                event.kind,
                RuntimeKind::MonitorEnter
                    | RuntimeKind::MonitorWait
                    | RuntimeKind::Allocation
                    | RuntimeKind::LiveObject
            );
            if let (true, Some(thread)) = (keeps && event.dur > 0, event.thread) {
                self.add(Presence {
                    from: event.ts,
                    to: event.ts.saturating_add(event.dur),
                    thread,
                    stack: event.stack,
                    gap: None,
                });
            }
        }
    }

    fn add(&mut self, one: Presence) {
        if one.stack == NO_STACK {
            return;
        }
        let slot = &mut self.inside[one.stack as usize];
        let inside = slot.get_or_insert_with(|| {
            self.stacks
                .inside(self.profile, one.stack, &self.classes)
                .into()
        });
        if inside.is_empty() {
            return;
        }
        let own = &self.own[one.thread as usize];
        let ended = &mut self.ended[one.thread as usize];
        *ended = first_from(own, *ended, |(_, end, _)| *end < one.to);
        let last = *ended;
        for class in inside.iter().copied() {
            let mut one = one;
            // The first sample after a wait also stands for the time before it.
            let waited = own[..last].iter().rev().take(4);
            let waited = waited.filter(|(_, end, of)| *of == class && *end > one.from);
            if let Some(end) = waited.map(|(_, end, _)| *end).max() {
                one.from = end;
            }
            if one.from >= one.to {
                continue;
            }
            let of = self.by_class.entry(class).or_default();
            // Others may be in between; that only adds entries.
            if let Some(last) = of.last_mut()
                && last.thread == one.thread
                && last.stack == one.stack
                && last.gap == one.gap
                && one.from <= last.to
                && one.from >= last.from
            {
                last.to = last.to.max(one.to);
            } else {
                of.push(one);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::first_from;

    proptest! {
        #[test]
        fn it_is_found_from_anywhere(mut sorted in prop::collection::vec(0..9u8, 0..20), near in 0..21usize, value in 0..10u8) {
            sorted.sort_unstable();
            let near = near.min(sorted.len());
            let wanted = sorted.partition_point(|one| *one < value);
            prop_assert_eq!(first_from(&sorted, near, |one| *one < value), wanted);
        }
    }
}
