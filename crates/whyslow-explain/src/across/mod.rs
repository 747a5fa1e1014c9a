//! Follows a wait for another host into the recording of that host.
//!
//! A finding that ends at a host on the network continues where that host served the request: the
//! wait is replaced by what the threads there did, and the rest is the network round trip. So the
//! durations of the parts still add up to the window. The round trip is the client's wait minus the
//! server's time, whatever the clock offset is; how it divides into the two directions is not known
//! and not reported. The position of the server's time within the wait is known within the bounds
//! of the clock offset ([`clock`]); if these contradict, nothing is followed.

mod clock;
mod crossing;
mod follow;
mod hosts;
mod join;
mod rows;
mod splice;

use whyslow_analysis::AnalysisError;
use whyslow_store::Tables;

use crate::query::Query;
use crate::report::Report;
use crate::versus::Other;
use follow::Follower;
use hosts::Hosts;

/// The recording of another host.
#[derive(Clone, Copy)]
pub struct OtherHost<'t> {
    /// Its tables.
    pub tables: &'t dyn Tables,
    /// Its name in commands.
    pub recording: &'t str,
}

/// Answers the query, with a comparison if `other` is given, and follows waits for other hosts into
/// their recordings.
pub fn explain_across(
    tables: &dyn Tables,
    query: &Query,
    other: Option<Other<'_>>,
    hosts: &[OtherHost<'_>],
) -> Result<Report, AnalysisError> {
    let query = Query {
        with_sockets: query.with_sockets || !hosts.is_empty(),
        ..query.clone()
    };
    let mut report = crate::query::explain(tables, &query, other)?;
    extend(tables, hosts, &mut report)?;
    Ok(report)
}

/// Continues all findings in the recordings of other hosts.
fn extend(
    tables: &dyn Tables,
    others: &[OtherHost<'_>],
    report: &mut Report,
) -> Result<(), AnalysisError> {
    if others.is_empty() {
        return Ok(());
    }
    let recording = report.recording.clone();
    let here = OtherHost {
        tables,
        recording: &recording,
    };
    let hosts = Hosts::new(here, others);
    let mut follower = Follower::new(hosts);
    for finding in &mut report.findings {
        follower.finding(finding)?;
    }
    report.caveats.extend(follower.caveats(&report.findings));
    for other in others {
        let damage = whyslow_analysis::damage(other.tables)?;
        let damage = damage.map(|damage| format!("{}: {damage}", other.recording));
        report.caveats.extend(damage);
    }
    // Followed findings have other culprits.
    crate::advice::fit(tables, report)?;
    crate::page::fill_findings(tables, report)
}
