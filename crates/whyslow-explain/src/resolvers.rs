//! Timeout and attempts of the resolver, added to stories that blame a name server.

use std::collections::BTreeSet;

use whyslow_analysis::{AnalysisError, resolvers};
use whyslow_store::Tables;

use crate::report::{ActorKind, Story};

/// Adds the settings of the resolv.conf files that list the name server.
pub(crate) fn cite(tables: &dyn Tables, stories: &mut [Story]) -> Result<(), AnalysisError> {
    let blames_one = |story: &&mut Story| server(story).is_some();
    let mut stories: Vec<&mut Story> = stories.iter_mut().filter(blames_one).collect();
    if stories.is_empty() {
        return Ok(());
    }
    let known = resolvers(tables)?;
    for story in &mut stories {
        let Some(server) = server(story) else {
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
            story.caveats.push(format!(
                "resolv.conf with name server {server}: {}",
                settings.join("; in another one ")
            ));
        }
    }
    Ok(())
}

/// The address of the blamed name server.
fn server(story: &Story) -> Option<String> {
    let part = story.parts.get(story.culprit?)?;
    let is_one = part.mechanism == "dns_lookup" || part.root == "dns_lookup";
    let is_peer = part.culprit.kind == ActorKind::Peer;
    // Another thread may have sent the query.
    let peer = part.object.as_ref().filter(|object| object.kind == "peer");
    let culprit = is_peer.then_some(&part.culprit.name);
    let (address, _) = peer.map(|peer| &peer.name).or(culprit)?.rsplit_once(':')?;
    is_one.then(|| address.trim_matches(['[', ']']).to_owned())
}
