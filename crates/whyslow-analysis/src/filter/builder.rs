//! Builds the tests of a filter, and adds the columns that they need to the projection.

use std::sync::Arc;

use whyslow_model::Ns;

use super::clause::{Clause, TextTest};
use super::condition::Test;
use crate::AnalysisError;
use crate::globs::{PathGlobs, comm_globs, regexes};
use crate::lost_ends::LostEnds;
use crate::query::{DeviceRef, Filter};
use crate::scan::Projection;
use crate::spec::{Only, Spec};

/// Kernel device number with 20 bits for the minor, as stored in the tables.
fn device_number(major: i32, minor: i32) -> i64 {
    (i64::from(major) << 20) | i64::from(minor)
}

pub(super) struct Builder<'p> {
    pub(super) projection: &'p mut Projection,
    pub(super) tests: Vec<Test>,
    /// Number of dictionaries whose words are judged.
    pub(super) words: usize,
}

impl Builder<'_> {
    pub(super) fn only(&mut self, only: &[Only]) {
        for only in only {
            let clause = self.text(only.column, Box::new(only.holds));
            self.tests.push(Test::AnyOf(vec![clause]));
        }
    }

    pub(super) fn numbers(&mut self, column: &'static str, wanted: &[i32]) {
        if !wanted.is_empty() {
            let clause = self.number(column, wanted.iter().map(|value| i64::from(*value)));
            self.tests.push(Test::AnyOf(vec![clause]));
        }
    }

    pub(super) fn comms(&mut self, globs: &[String]) -> Result<(), AnalysisError> {
        if !globs.is_empty() {
            let set = comm_globs(globs)?;
            let clause = self.text("comm", Box::new(move |comm| set.is_match(comm)));
            self.tests.push(Test::AnyOf(vec![clause]));
        }
        Ok(())
    }

    pub(super) fn threads(&mut self, patterns: &[String]) -> Result<(), AnalysisError> {
        if !patterns.is_empty() {
            let set = regexes(patterns)?;
            let clause = self.text("comm", Box::new(move |comm| set.is_match(comm)));
            self.tests.push(Test::AnyOf(vec![clause]));
        }
        Ok(())
    }

    pub(super) fn ops(&mut self, spec: &Spec, ops: &[String]) {
        if ops.is_empty() {
            return;
        }
        let is_class = |op: &&String| (spec.hooks.is_class)(op);
        let mut classes: Vec<String> = ops.iter().filter(is_class).cloned().collect();
        let names: Vec<String> = ops.iter().filter(|op| !is_class(op)).cloned().collect();
        if classes
            .iter()
            .any(|class| class == "read" || class == "write")
        {
            classes.push("read_write".into());
        }
        let mut clauses = Vec::new();
        if !classes.is_empty() {
            let holds = move |op: &str| classes.iter().any(|class| class == op);
            clauses.push(self.text(spec.class, Box::new(holds)));
        }
        if !names.is_empty() {
            let holds = move |name: &str| names.iter().any(|wanted| wanted == name);
            clauses.push(self.text("name", Box::new(holds)));
        }
        self.tests.push(Test::AnyOf(clauses));
    }

    pub(super) fn names(&mut self, names: &[String]) {
        if !names.is_empty() {
            let names = names.to_vec();
            let holds = move |name: &str| names.iter().any(|wanted| wanted == name);
            let clause = self.text("name", Box::new(holds));
            self.tests.push(Test::AnyOf(vec![clause]));
        }
    }

    pub(super) fn devices(&mut self, spec: &Spec, devices: &[DeviceRef]) {
        if devices.is_empty() {
            return;
        }
        let mut names = Vec::new();
        let mut numbers = Vec::new();
        for device in devices {
            match device {
                DeviceRef::Name(name) => {
                    names.push(name.strip_prefix("/dev/").unwrap_or(name).to_owned());
                }
                DeviceRef::Number { major, minor } => numbers.push(device_number(*major, *minor)),
            }
        }
        let mut clauses = Vec::new();
        // Some tables with devices have no partitions.
        let has = |column: &&str| spec.table.column(column).is_some();
        for column in ["dev_name", "part_name"].into_iter().filter(has) {
            if !names.is_empty() {
                let names = names.clone();
                let holds = move |name: &str| names.iter().any(|wanted| wanted == name);
                clauses.push(self.text(column, Box::new(holds)));
            }
        }
        for column in ["dev", "part"].into_iter().filter(has) {
            if !numbers.is_empty() {
                clauses.push(self.number(column, numbers.iter().copied()));
            }
        }
        self.tests.push(Test::AnyOf(clauses));
    }

    pub(super) fn files(&mut self, spec: &Spec, globs: &[String]) -> Result<(), AnalysisError> {
        if !globs.is_empty() {
            let set = PathGlobs::new(globs)?;
            let other = set.clone();
            let mut clauses = vec![self.text("path", Box::new(move |path| set.is_match(path)))];
            if spec.table.column("path2").is_some() {
                clauses.push(self.text("path2", Box::new(move |path| other.is_match(path))));
            }
            self.tests.push(Test::AnyOf(clauses));
        }
        Ok(())
    }

    pub(super) fn size(&mut self, column: &'static str, filter: &Filter) {
        let Filter {
            size,
            size_min,
            size_max,
            ..
        } = filter;
        if size.is_some() || size_min.is_some() || size_max.is_some() {
            let column = self.projection.need(column);
            self.tests.push(Test::Size {
                column,
                exact: *size,
                min: size_min.unwrap_or(i64::MIN),
                max: size_max.unwrap_or(i64::MAX),
            });
        }
    }

    pub(super) fn length(
        &mut self,
        spec: &Spec,
        filter: &Filter,
        ends: &Arc<LostEnds>,
    ) -> Result<(), AnalysisError> {
        let (min, max) = (filter.dur_min, filter.dur_max);
        let (min, max) = (min.unwrap_or(Ns::MIN), max.unwrap_or(Ns::MAX));
        if let Some(stage) = &filter.stage {
            let column = self.projection.need(spec.stage(stage)?);
            self.tests.push(Test::Stage { column, min, max });
            return Ok(());
        }
        let columns = ["ts", "dur", "ts_end"].map(|name| self.projection.need(name));
        self.tests.push(Test::Length {
            columns,
            is_paired: spec.table.column("cut").is_some(),
            min,
            max,
            ends: Arc::clone(ends),
        });
        Ok(())
    }

    pub(super) fn text(&mut self, column: &'static str, holds: TextTest) -> Clause {
        self.words += 1;
        Clause::Text {
            column: self.projection.need(column),
            slot: self.words - 1,
            holds,
        }
    }

    pub(super) fn number(
        &mut self,
        column: &'static str,
        wanted: impl Iterator<Item = i64>,
    ) -> Clause {
        Clause::Number(self.projection.need(column), wanted.collect())
    }
}
