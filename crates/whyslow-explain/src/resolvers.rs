//! Timeout and attempts of the resolver, added to findings that blame a name server.

use std::collections::BTreeSet;

use whyslow_analysis::{AnalysisError, resolvers};
use whyslow_store::Tables;

use crate::report::{ActorKind, Finding};

/// Adds the settings of the resolv.conf files that list the name server.
pub(crate) fn cite(tables: &dyn Tables, findings: &mut [Finding]) -> Result<(), AnalysisError> {
    let blames_one = |finding: &&mut Finding| server(finding).is_some();
    let mut findings: Vec<&mut Finding> = findings.iter_mut().filter(blames_one).collect();
    if findings.is_empty() {
        return Ok(());
    }
    let known = resolvers(tables)?;
    for finding in &mut findings {
        let Some(server) = server(finding) else {
            continue;
        };
        let rules: BTreeSet<(i64, i64)> = known
            .values()
            .filter(|resolver| resolver.uses(&server))
            .map(whyslow_analysis::Resolver::patience)
            .collect();
        let settings: Vec<String> = rules
            .iter()
            .map(|(seconds, attempts)| format!("timeout {seconds} s, attempts {attempts}"))
            .collect();
        if !settings.is_empty() {
            finding.caveats.push(format!(
                "resolv.conf with name server {server}: {}",
                settings.join("; in another one ")
            ));
        }
    }
    Ok(())
}

/// The address of the blamed name server.
fn server(finding: &Finding) -> Option<String> {
    let part = finding.parts.get(finding.culprit?)?;
    let is_one = part.mechanism == "dns_lookup" || part.root == "dns_lookup";
    let is_peer = part.culprit.kind == ActorKind::Peer;
    // Another thread may have sent the query.
    let peer = part.object.as_ref().filter(|object| object.kind == "peer");
    let culprit = is_peer.then_some(&part.culprit.name);
    let (address, _) = peer.map(|peer| &peer.name).or(culprit)?.rsplit_once(':')?;
    is_one.then(|| address.trim_matches(['[', ']']).to_owned())
}
