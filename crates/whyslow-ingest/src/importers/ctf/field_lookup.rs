//! Finds the field that a length or a selector refers to while classes are being built.
//!
//! References may name a field of the enclosing structure, of an outer one, or of a scope decoded
//! before. All are converted to absolute paths through structure members; see [`FieldLocation`].

use super::class::{FieldClass, FieldLocation, Member, Scope, StructClass, VariantOption};

/// How a path passes through a variant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VariantStep {
    /// CTF 1.8: the option name is part of the path.
    Named,
    /// CTF 2: the selected option, which is not part of the path.
    Selected,
}

/// The fields declared before the current one.
pub(super) struct FieldLookup<'c> {
    step: VariantStep,
    scope: Scope,
    /// Finished structures of previous scopes, by scope.
    finished: [Option<&'c StructClass>; 6],
    /// Enclosing structures, outermost first.
    open: Vec<OpenStruct>,
}

#[derive(Default)]
struct OpenStruct {
    members: Vec<Member>,
    /// Name of the current member.
    current: String,
    /// Current options of that member, if it is a variant or nested variants.
    options: Vec<String>,
}

impl<'c> FieldLookup<'c> {
    pub(super) fn new(step: VariantStep) -> FieldLookup<'c> {
        FieldLookup {
            step,
            scope: Scope::PacketHeader,
            finished: [None; 6],
            open: Vec::new(),
        }
    }

    /// Makes the structure of a scope available to the following scopes.
    pub(super) fn set_finished(&mut self, scope: Scope, class: Option<&'c StructClass>) {
        self.finished[scope as usize] = class;
    }

    pub(super) fn begin_scope(&mut self, scope: Scope) {
        self.scope = scope;
        self.open.clear();
    }

    pub(super) fn open_struct(&mut self, members: usize) {
        self.open.push(OpenStruct {
            members: Vec::with_capacity(members),
            ..OpenStruct::default()
        });
    }

    pub(super) fn begin_member(&mut self, name: &str) {
        if let Some(open) = self.open.last_mut() {
            name.clone_into(&mut open.current);
        }
    }

    pub(super) fn begin_option(&mut self, name: &str) {
        if let Some(open) = self.open.last_mut() {
            open.options.push(name.to_owned());
        }
    }

    pub(super) fn end_option(&mut self) {
        if let Some(open) = self.open.last_mut() {
            open.options.pop();
        }
    }

    pub(super) fn end_member(&mut self, class: FieldClass) {
        if let Some(open) = self.open.last_mut() {
            let name = std::mem::take(&mut open.current);
            open.members.push(Member { name, class });
        }
    }

    pub(super) fn close_struct(&mut self) -> Vec<Member> {
        self.open.pop().unwrap_or_default().members
    }

    /// From the innermost structure outwards, then through the previous scopes, latest first.
    pub(super) fn find_outwards(&self, parts: &[&str]) -> Option<(FieldLocation, &FieldClass)> {
        let inside = (0..self.open.len()).rev();
        inside
            .clone()
            .find_map(|level| self.find_at(level, parts))
            .or_else(|| {
                let scopes = ALL_SCOPES.into_iter().rev();
                let mut before = scopes.filter(|scope| *scope < self.scope);
                before.find_map(|scope| self.find_in_scope(scope, parts))
            })
    }

    /// From the structure `up` levels outside of the innermost one.
    pub(super) fn find_from_parent(
        &self,
        up: usize,
        parts: &[&str],
    ) -> Option<(FieldLocation, &FieldClass)> {
        let level = self.open.len().checked_sub(up + 1)?;
        self.find_at(level, parts)
    }

    pub(super) fn find_in_scope(
        &self,
        scope: Scope,
        parts: &[&str],
    ) -> Option<(FieldLocation, &FieldClass)> {
        if scope == self.scope {
            return self.find_at(0, parts);
        }
        let class = self.finished[scope as usize]?;
        self.find_among(&class.members, parts, scope, Vec::new())
    }

    /// The path may lead through structures that are still being built.
    fn find_at(&self, level: usize, parts: &[&str]) -> Option<(FieldLocation, &FieldClass)> {
        let open = self.open.get(level)?;
        if level + 1 < self.open.len()
            && let Some(rest) = open.follow_current(parts, self.step)
            && let Some(found) = self.find_at(level + 1, rest)
        {
            return Some(found);
        }
        let above = self.open[..level].iter();
        let path = above.map(|open| open.current.clone()).collect();
        self.find_among(&open.members, parts, self.scope, path)
    }

    fn find_among<'s>(
        &self,
        members: &'s [Member],
        parts: &[&str],
        scope: Scope,
        mut path: Vec<String>,
    ) -> Option<(FieldLocation, &'s FieldClass)> {
        let class = descend_members(members, parts, self.step, &mut path)?;
        Some((FieldLocation { scope, path }, class))
    }
}

impl OpenStruct {
    /// The rest of the path after the current member.
    fn follow_current<'p, 's>(
        &self,
        parts: &'p [&'s str],
        step: VariantStep,
    ) -> Option<&'p [&'s str]> {
        let (name, mut rest) = parts.split_first()?;
        if *name != self.current {
            return None;
        }
        if step == VariantStep::Named {
            for option in &self.options {
                let (name, behind) = rest.split_first()?;
                if name != option {
                    return None;
                }
                rest = behind;
            }
        }
        Some(rest)
    }
}

const ALL_SCOPES: [Scope; 6] = [
    Scope::PacketHeader,
    Scope::PacketContext,
    Scope::EventHeader,
    Scope::EventContext,
    Scope::SpecificContext,
    Scope::Payload,
];

fn descend_members<'s>(
    members: &'s [Member],
    parts: &[&str],
    step: VariantStep,
    path: &mut Vec<String>,
) -> Option<&'s FieldClass> {
    let (name, rest) = parts.split_first()?;
    let member = members.iter().rev().find(|member| member.name == *name)?;
    path.push(member.name.clone());
    let found = descend(&member.class, rest, step, path);
    if found.is_none() {
        path.pop();
    }
    found
}

fn descend<'s>(
    class: &'s FieldClass,
    parts: &[&str],
    step: VariantStep,
    path: &mut Vec<String>,
) -> Option<&'s FieldClass> {
    let Some((name, rest)) = parts.split_first() else {
        return Some(class);
    };
    match class {
        FieldClass::Struct(class) => descend_members(&class.members, parts, step, path),
        FieldClass::Array { element, .. } | FieldClass::Sequence { element, .. } => {
            descend(element, parts, step, path)
        }
        FieldClass::Optional { class, .. } => descend(class, parts, step, path),
        FieldClass::Variant { options, .. } => match step {
            VariantStep::Named => {
                let named = |option: &&VariantOption| option.name.as_deref() == Some(*name);
                descend(&options.iter().find(named)?.class, rest, step, path)
            }
            VariantStep::Selected => options
                .iter()
                .find_map(|option| descend(&option.class, parts, step, path)),
        },
        _ => None,
    }
}
