//! How long a name server is waited for, and how often it is asked, beside stories that blame one.

use std::collections::BTreeSet;

use whyslow_analysis::{AnalysisError, resolvers};
use whyslow_store::Tables;

use crate::report::{ActorKind, Story};

/// Adds what the resolv.conf says that applied to who asked.
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
            .filter(|resolver| resolver.asks(&server))
            .map(whyslow_analysis::Resolver::patience)
            .collect();
        let said: Vec<String> = rules
            .iter()
            .map(|(seconds, attempts)| format!("timeout {seconds} s, attempts {attempts}"))
            .collect();
        if !said.is_empty() {
            story.caveats.push(format!(
                "resolv.conf where {server} is asked: {}",
                said.join("; elsewhere ")
            ));
        }
    }
    Ok(())
}

/// The address of the name server that is blamed.
fn server(story: &Story) -> Option<String> {
    let part = story.parts.get(story.culprit?)?;
    let is_one = part.mechanism == "dns_lookup" || part.root == "dns_lookup";
    let is_peer = part.culprit.kind == ActorKind::Peer;
    // Another thread may have asked.
    let asked = part.object.as_ref().filter(|object| object.kind == "peer");
    let culprit = is_peer.then_some(&part.culprit.name);
    let (address, _) = asked.map(|peer| &peer.name).or(culprit)?.rsplit_once(':')?;
    is_one.then(|| address.trim_matches(['[', ']']).to_owned())
}
