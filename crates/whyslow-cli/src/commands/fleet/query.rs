//! `fleet QUERY`: queries of a lake, executed by the Python package, in the formats of all queries.

use std::path::Path;

use whyslow_analysis::Weight;
use whyslow_base::args::TalkArgs;
use whyslow_base::failure::Failure;
use whyslow_base::interrupt;
use whyslow_base::private_folder::PrivateFolder;
use whyslow_base::time::Zone;
use whyslow_fleet::lake::Lake;
use whyslow_model::Ns;
use whyslow_model::text::is_name;
use whyslow_model::text::shown;
use whyslow_render::Subject;
use whyslow_sources::lake::{answer, evaluate};

use super::failed::failed;
use super::push::{self, FallbackHost};
use crate::cli::{FleetPushArgs, FleetQuery};
use crate::commands::lake_request::request_of;

/// Environment variable with the default lake.
const VARIABLE: &str = "WHYSLOW_LAKE";
const PREFIX: &str = "whyslow-lake-";

pub(super) fn run(query: &FleetQuery, talk: &TalkArgs) -> Result<(), Failure> {
    let args = &query.args;
    if let Some(lake) = args.recordings.iter().find(|name| is_lake(name)) {
        let message = format!("`{}` is a lake, not a recording", shown(lake, false));
        return Err(Failure::usage(message)
            .hint(format!("name the lake with --lake {}", shown(lake, false))));
    }
    let temporary = TemporaryLake::of(&args.recordings, talk)?;
    let lake = match &temporary {
        Some(temporary) => temporary.url(),
        None => lake_of(args.lake.as_deref())?,
    };
    let zone = if args.output.utc {
        Zone::utc()
    } else {
        args.output.tz.clone().unwrap_or_else(Zone::utc)
    };
    let window = query.named_window(&zone)?;
    let cancel = interrupt::flag()?;
    let request = request_of(query, lake.clone(), window);
    let mut found = answer(&evaluate(&request, &cancel)?)?;
    let is_exact = query.query.as_deref() == Some("slowest");
    found.window = window.filter(|(begin, _)| *begin > 0).map(|window| {
        if is_exact {
            window
        } else {
            whole_seconds(window)
        }
    });
    if temporary.is_some() {
        // The temporary lake no longer exists when the answer is read.
        for table in &mut found.tables {
            table.facts.retain(|(name, ..)| name != "lake");
        }
    }
    let subject = Subject {
        name: temporary.map_or(lake, |_| format!("{} recordings", args.recordings.len())),
        ..Subject::default()
    };
    let lost = !found.losses.is_empty();
    whyslow_render::write(found, &subject, zone, Weight::Count, &args.output, talk)?;
    if lost && args.output.strict {
        return Err(Failure::incomplete("events were lost in the recordings"));
    }
    Ok(())
}

/// Whether a lake was given in place of a recording.
fn is_lake(name: &str) -> bool {
    name.contains("://") || Path::new(name).join("v1").join("_commits").is_dir()
}

/// The window in whole seconds, which is the resolution of the lake.
fn whole_seconds((begin, end): (Ns, Ns)) -> (Ns, Ns) {
    const SECOND: Ns = 1_000_000_000;
    let whole = begin.div_euclid(SECOND) * SECOND;
    (whole, -(-end).div_euclid(SECOND) * SECOND)
}

/// A lake of local recordings, for one query.
struct TemporaryLake(PrivateFolder);

impl TemporaryLake {
    fn of(recordings: &[String], talk: &TalkArgs) -> Result<Option<Self>, Failure> {
        if recordings.is_empty() {
            return Ok(None);
        }
        let temporary = Self(PrivateFolder::passing(&std::env::temp_dir(), PREFIX)?);
        let lake = Lake::make(&temporary.url()).map_err(failed)?;
        let cancel = interrupt::flag()?;
        for recording in recordings {
            let stem = Path::new(recording)
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned());
            let fallback = FallbackHost(stem.filter(|stem| is_name(stem)));
            push::one(
                &lake,
                recording,
                &FleetPushArgs::default(),
                (&cancel, talk),
                fallback,
            )?;
        }
        Ok(Some(temporary))
    }

    fn url(&self) -> String {
        self.0.path().join("lake").display().to_string()
    }
}

/// The lake of the flag, else of the environment.
pub(super) fn lake_of(named: Option<&str>) -> Result<String, Failure> {
    let of_variable = || std::env::var(VARIABLE).ok().filter(|lake| !lake.is_empty());
    named
        .map(str::to_owned)
        .or_else(of_variable)
        .ok_or_else(|| {
            Failure::usage("cannot query a lake: none specified")
                .hint(format!("use --lake s3://traces/lake, or set {VARIABLE}"))
        })
}
