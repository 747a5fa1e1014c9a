//! Walks several operations of one kind. Operations that are close together in time are walked in
//! one slice, and the rows that may be read are bounded: some are left out then.

use rayon::iter::{IntoParallelIterator, ParallelIterator};
use whyslow_analysis::AnalysisError;
use whyslow_model::{Ns, Window};
use whyslow_store::Tables;

use crate::finding::{Subject, before, finding, from_slice, rows_in};
use crate::report::Finding;
use crate::window_slice::WindowSlice;

/// Rows that one report may read to walk further operations: about 100 MB …
const ROWS_MAX: f64 = 1_000_000.0;
/// … half of what is left for each group …
const SHARE: f64 = 0.5;
/// … and no more than this in one slice.
const SLICE_MAX: f64 = 400_000.0;
/// What loading a slice costs besides its rows, in rows.
const SLICE_ROWS: f64 = 20_000.0;

/// Rows that a report may still read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budget(f64);

impl Default for Budget {
    fn default() -> Self {
        Self(ROWS_MAX)
    }
}

impl Budget {
    /// For groups that are too small to be reported: only their first operation is walked.
    pub(crate) fn none() -> Self {
        Self(0.0)
    }

    /// For a query of certain operations, which are few.
    pub(crate) fn unlimited() -> Self {
        Self(f64::INFINITY)
    }
}

/// Subjects that are walked in one slice, by index.
struct Cluster {
    window: Window,
    rows: f64,
    members: Vec<usize>,
}

/// Findings of the subjects, the first of which is always walked, and their indexes.
pub(crate) fn walked(
    tables: &dyn Tables,
    subjects: &[Subject],
    budget: &mut Budget,
) -> Result<Vec<(usize, Finding)>, AnalysisError> {
    let mut left = budget.0 * SHARE;
    let mut chosen: Vec<Cluster> = Vec::new();
    for cluster in clusters(tables, subjects) {
        let is_first = cluster.members[0] == 0;
        if is_first || cluster.rows <= left {
            left -= cluster.rows;
            chosen.push(cluster);
        }
    }
    let rows: f64 = chosen.iter().map(|cluster| cluster.rows).sum();
    budget.0 = (budget.0 - rows).max(0.0);
    let of_cluster = |cluster: Cluster| -> Result<Vec<(usize, Finding)>, AnalysisError> {
        if let [single] = cluster.members.as_slice() {
            return Ok(vec![(*single, finding(tables, &subjects[*single])?)]);
        }
        let slice = WindowSlice::load(tables, cluster.window)?;
        let members = cluster.members.into_iter();
        Ok(members
            .map(|member| (member, from_slice(&slice, &subjects[member])))
            .collect())
    };
    let found: Vec<Vec<(usize, Finding)>> = chosen
        .into_par_iter()
        .map(of_cluster)
        .collect::<Result<_, _>>()?;
    let mut found: Vec<(usize, Finding)> = found.into_iter().flatten().collect();
    found.sort_by_key(|(place, _)| *place);
    Ok(found)
}

/// Clusters of subjects that are cheaper to walk together, the one with the first subject first.
fn clusters(tables: &dyn Tables, subjects: &[Subject]) -> Vec<Cluster> {
    let before = before(tables);
    let window = |subject: &Subject| (subject.begin - before, subject.end + 1);
    let rows = |(begin, end): (Ns, Ns)| SLICE_ROWS + rows_in(tables, end - begin);
    let mut order: Vec<usize> = (0..subjects.len()).collect();
    order.sort_by_key(|place| (subjects[*place].begin, *place));
    let mut clusters: Vec<Cluster> = Vec::new();
    for place in order {
        let (begin, end) = window(&subjects[place]);
        let alone = rows((begin, end));
        let together = clusters.last_mut().and_then(|cluster| {
            let end = cluster.window.end.max(end);
            let rows = rows((cluster.window.begin, end));
            let is_one = rows <= cluster.rows + alone && rows <= SLICE_MAX;
            is_one.then_some((cluster, end, rows))
        });
        match together {
            Some((cluster, end, rows)) => {
                cluster.window.end = end;
                cluster.rows = rows;
                cluster.members.push(place);
            }
            None => clusters.push(Cluster {
                window: Window::new(begin, end),
                rows: alone,
                members: vec![place],
            }),
        }
    }
    for cluster in &mut clusters {
        cluster.members.sort_unstable();
    }
    clusters.sort_by_key(|cluster| cluster.members[0]);
    clusters
}
