//! Variants and optional fields, and their selectors.

use super::Compiler;
use crate::importers::ctf::class::{FieldClass, FieldLocation, Range, VariantOption};
use crate::importers::ctf::plan::{Choice, Count, Op, PlanError};

/// One option of a variant, or the content of an optional field.
pub(super) struct Branch<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) ranges: &'a [Range],
    pub(super) class: &'a FieldClass,
}

impl<'a> From<&'a VariantOption> for Branch<'a> {
    fn from(option: &'a VariantOption) -> Branch<'a> {
        Branch {
            name: option.name.as_deref(),
            ranges: &option.ranges,
            class: &option.class,
        }
    }
}

impl<'a> Compiler<'a> {
    pub(super) fn choose(
        &mut self,
        selector: &FieldLocation,
        branches: &[Branch<'a>],
        optional: bool,
    ) -> Result<(), PlanError> {
        let register = self.register_of(selector)?;
        let bias = if self.defined[&register] { 1 << 63 } else { 0 };
        self.end_run();
        let at = self.plan.ops.len();
        let first = self.plan.choices.len() as u32;
        let count = branches.len() as u32;
        let none = Choice {
            ranges: (0, 0),
            ops: (0, 0),
        };
        self.plan.ops.push(Op::Align { bits: 1 });
        self.plan
            .choices
            .extend(std::iter::repeat_n(none, branches.len()));
        let before = self.phase;
        let mut after = optional.then_some(before);
        self.conditions += 1;
        for (index, branch) in branches.iter().enumerate() {
            let ranges = self.ranges(branch.ranges, bias);
            let ops = self.plan.ops.len() as u32;
            self.phase = before;
            self.branch(branch)?;
            after = Some(after.map_or(self.phase, |after| after.either(self.phase)));
            let ops = (ops, self.plan.ops.len() as u32);
            self.plan.choices[first as usize + index] = Choice { ranges, ops };
        }
        self.conditions -= 1;
        self.phase = after.unwrap_or(before);
        let ops = (self.plan.ops.len() - at - 1) as u32;
        self.plan.ops[at] = Op::Choose {
            selector: register,
            bias,
            first,
            count,
            ops,
            optional,
        };
        Ok(())
    }

    pub(super) fn branch(&mut self, branch: &Branch<'a>) -> Result<(), PlanError> {
        if let Some(name) = branch.name {
            self.path.push(name);
        }
        self.field(branch.class)?;
        if branch.name.is_some() {
            self.path.pop();
        }
        self.end_run();
        Ok(())
    }

    pub(super) fn ranges(&mut self, ranges: &[Range], bias: u64) -> (u32, u32) {
        let first = self.plan.ranges.len() as u32;
        let (lowest, highest) = if bias == 0 {
            (0, i128::from(u64::MAX))
        } else {
            (i128::from(i64::MIN), i128::from(i64::MAX))
        };
        for range in ranges {
            let (begin, end) = (range.first.max(lowest), range.last.min(highest));
            if begin <= end {
                self.plan
                    .ranges
                    .push((begin as u64 ^ bias, end as u64 ^ bias));
            }
        }
        (first, self.plan.ranges.len() as u32)
    }

    pub(super) fn count(&self, location: &FieldLocation) -> Result<Count, PlanError> {
        self.register_of(location).map(Count::Register)
    }

    pub(super) fn register_of(&self, location: &FieldLocation) -> Result<u16, PlanError> {
        let register = self.locations.register_of(location);
        register
            .filter(|register| self.defined.contains_key(register))
            .ok_or_else(|| {
                PlanError::Location(format!("{:?} {}", location.scope, location.path.join(".")))
            })
    }
}
