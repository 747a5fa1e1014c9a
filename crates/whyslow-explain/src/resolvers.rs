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
            .map(|resolver| resolver.patience())
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
    let (address, _) = part.culprit.name.rsplit_once(':')?;
    let address = address.trim_matches(['[', ']']);
    (is_one && part.culprit.kind == ActorKind::Peer).then(|| address.to_owned())
}
