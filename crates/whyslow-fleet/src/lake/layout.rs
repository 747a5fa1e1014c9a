//! Names of lake objects.
//!
//! `v1/<table>/dt=YYYY-MM-DD/cluster=<cluster>/<host>.<recording>.parquet`, and next to the tables
//! a commit for each recording: `v1/_commits/dt=…/cluster=…/<host>.<recording>.json`. Without a
//! commit, a recording is not in the lake. The table comes first so that a query lists only the
//! files that it reads. Hosts are not directories because a compacted file contains many of them;
//! file names and column statistics select hosts equally well.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use object_store::path::Path;
use whyslow_model::Ns;
use whyslow_model::text::is_name;

use crate::identity;

/// Raised when older readers could misread what is written now.
pub(crate) const VERSION: &str = "v1";
/// Query engines ignore names that begin with an underscore.
pub(crate) const COMMITS: &str = "_commits";
/// First character of a compacted file; no host name begins with it.
pub(crate) const COMPACTED: char = '@';

/// A day of a cluster: the unit of listing, compaction and expiry.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// UTC day on which the recordings start: `YYYY-MM-DD`.
    pub day: String,
    /// Cluster that the hosts belong to.
    pub cluster: String,
}

/// What an object belongs to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    /// One recording.
    One {
        /// Host of the recording.
        host: String,
        /// Id of the recording.
        recording: String,
    },
    /// Several recordings: the id of the compaction.
    Many(String),
}

/// UTC day of a time in ms since the epoch.
pub(crate) fn day_of_ms(ms: i64) -> String {
    let begin = Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH);
    let begin = begin.to_zoned(TimeZone::UTC);
    begin.strftime("%Y-%m-%d").to_string()
}

impl Partition {
    /// The partition of a recording that starts at `begin_ns`.
    pub fn of(cluster: &str, begin_ns: Ns) -> Self {
        Self {
            day: day_of_ms(begin_ns.div_euclid(1_000_000)),
            cluster: cluster.to_owned(),
        }
    }

    fn folder(&self, under: &str) -> String {
        format!("{VERSION}/{under}/dt={}/cluster={}", self.day, self.cluster)
    }

    /// Path of a table file below the lake's root.
    pub(crate) fn file(&self, table: &str, member: &Member) -> String {
        format!("{}/{}.parquet", self.folder(table), member.stem())
    }

    pub(crate) fn commit(&self, member: &Member) -> String {
        format!("{}/{}.json", self.folder(COMMITS), member.stem())
    }

    /// Common prefix of all files of a table.
    pub(crate) fn prefix(&self, under: &str) -> String {
        self.folder(under)
    }
}

impl Member {
    pub(crate) fn stem(&self) -> String {
        match self {
            Member::One { host, recording } => format!("{host}.{recording}"),
            Member::Many(id) => format!("{COMPACTED}{id}"),
        }
    }

    /// From the name of an object, whatever directory it is in.
    pub(crate) fn of_name(path: &str) -> Option<Self> {
        let (_, name) = path.rsplit_once('/')?;
        let (stem, _) = name.rsplit_once('.')?;
        Self::parse(stem)
    }

    fn parse(stem: &str) -> Option<Self> {
        if let Some(id) = stem.strip_prefix(COMPACTED) {
            return identity::is_id(id).then(|| Member::Many(id.to_owned()));
        }
        let (host, recording) = stem.rsplit_once('.')?;
        let is_one = is_name(host) && identity::is_id(recording);
        is_one.then(|| Member::One {
            host: host.to_owned(),
            recording: recording.to_owned(),
        })
    }
}

/// Classifies an object below the lake's root: the directory that it is in (`_commits` or a table),
/// and what it belongs to. `None` for foreign objects.
pub(crate) fn parse(path: &Path) -> Option<(String, Partition, Member)> {
    let parts: Vec<String> = path.parts().map(|part| part.as_ref().to_owned()).collect();
    let [version, under, day, cluster, name] = parts.as_slice() else {
        return None;
    };
    let day = day.strip_prefix("dt=")?;
    let cluster = cluster.strip_prefix("cluster=")?;
    let (stem, ending) = name.rsplit_once('.')?;
    let expected = if under == COMMITS { "json" } else { "parquet" };
    if version != VERSION || ending != expected || !is_day(day) || !is_name(cluster) {
        return None;
    }
    let partition = Partition {
        day: day.to_owned(),
        cluster: cluster.to_owned(),
    };
    Some((under.clone(), partition, Member::parse(stem)?))
}

fn is_day(text: &str) -> bool {
    text.len() == 10
        && text.bytes().enumerate().all(|(place, byte)| match place {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_made_and_understood() {
        let partition = Partition::of("eu-1", 1_795_739_337_195_135_093);
        assert_eq!(partition.day, "2026-11-27");
        let member = Member::One {
            host: "web.example.org".into(),
            recording: "01ARYZ6S4100000000000000AB".into(),
        };
        let file = partition.file("rollup", &member);
        assert_eq!(
            file,
            "v1/rollup/dt=2026-11-27/cluster=eu-1/web.example.org.01ARYZ6S4100000000000000AB.parquet"
        );
        let found = parse(&Path::from(file)).unwrap();
        assert_eq!(found, ("rollup".into(), partition.clone(), member.clone()));
        let (under, ..) = parse(&Path::from(partition.commit(&member))).unwrap();
        assert_eq!(under, COMMITS);
        let many = Member::Many("01ARYZ6S4100000000000000AB".into());
        let found = parse(&Path::from(partition.commit(&many))).unwrap();
        assert_eq!(found.2, many);
    }

    #[test]
    fn what_others_put_there_is_passed_over() {
        for path in [
            "v1/rollup/dt=2026-11-27/cluster=eu/x.parquet",
            "v1/rollup/dt=2026-11-2/cluster=eu/h.01ARYZ6S4100000000000000AB.parquet",
            "v1/rollup/dt=2026-11-27/cluster=eu/h.01ARYZ6S4100000000000000AB.json",
            "v1/rollup/dt=2026-11-27/cluster=.eu/h.01ARYZ6S4100000000000000AB.parquet",
            "v2/rollup/dt=2026-11-27/cluster=eu/h.01ARYZ6S4100000000000000AB.parquet",
            "v1/_SUCCESS",
        ] {
            assert_eq!(parse(&Path::from(path)), None, "{path}");
        }
        assert!(!is_name("") && !is_name("-a") && !is_name("a/b") && !is_name(&"a".repeat(129)));
    }

    #[test]
    fn days_are_those_of_utc_also_before_1970() {
        assert_eq!(Partition::of("c", -1).day, "1969-12-31");
        assert_eq!(Partition::of("c", 86_400_000_000_000).day, "1970-01-02");
    }
}
