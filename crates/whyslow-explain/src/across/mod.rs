//! On from a wait for another host to what that host did, in its own recording.
//!
//! A story that ends at a host on the network goes on where that host served the request: what the threads
//! there did takes the place of the wait, for as long as they had it, and the rest is the way, there and back
//! together. So the lengths of the parts still add up to the window. How long the way was is the client's
//! wait without the server's time, whatever the clocks say; how long each direction took nobody knows, and
//! it is not told. Where in the wait the server's time lies is known within the bounds of the clocks
//! ([`clock`]), from which it is placed; where these contradict, nothing is followed.

mod clock;
mod crossing;
mod follow;
mod hosts;
mod join;
mod rows;
mod splice;

use whyslow_analysis::AnalysisError;
use whyslow_store::Tables;

use crate::ask::Question;
use crate::report::Report;
use crate::versus::Other;
use follow::Follower;
use hosts::Hosts;

/// The recording of another host.
#[derive(Clone, Copy)]
pub struct OtherHost<'t> {
    /// Its tables.
    pub tables: &'t dyn Tables,
    /// As commands name it.
    pub recording: &'t str,
}

/// Explains what is asked for, if need be beside what it is compared with; waits for other hosts go on in
/// the recordings of these.
pub fn explain_across(
    tables: &dyn Tables,
    question: &Question,
    other: Option<Other<'_>>,
    hosts: &[OtherHost<'_>],
) -> Result<Report, AnalysisError> {
    let question = Question {
        with_sockets: question.with_sockets || !hosts.is_empty(),
        ..question.clone()
    };
    let mut report = crate::ask::explain(tables, &question, other)?;
    extend(tables, hosts, &mut report)?;
    Ok(report)
}

/// Has all stories go on in recordings of other hosts.
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
    for story in &mut report.stories {
        follower.story(story)?;
    }
    report.caveats.extend(follower.caveats(&report.stories));
    for other in others {
        let damage = whyslow_analysis::damage(other.tables)?;
        let damage = damage.map(|damage| format!("{}: {damage}", other.recording));
        report.caveats.extend(damage);
    }
    Ok(())
}
