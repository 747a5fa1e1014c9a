//! `fleet QUESTION`: asked of a lake by the Python package, answered in our forms.

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
use whyslow_sources::lake::{answer, ask};

use super::failed::failed;
use super::push::{self, Nameless};
use crate::cli::{FleetAsk, FleetPushArgs};
use crate::commands::lake_request::request_of;

/// Where the lake is, if no flag says it.
const VARIABLE: &str = "WHYSLOW_LAKE";
const PREFIX: &str = "whyslow-lake-";

pub(super) fn run(asked: &FleetAsk, talk: &TalkArgs) -> Result<(), Failure> {
    let args = &asked.args;
    if let Some(lake) = args.recordings.iter().find(|name| is_lake(name)) {
        let message = format!("`{}` is a lake, not a recording", shown(lake, false));
        return Err(Failure::usage(message).hint("--lake names the lake that is asked"));
    }
    let room = Room::of(&args.recordings, talk)?;
    let lake = match &room {
        Some(room) => room.lake(),
        None => lake_of(args.lake.as_deref())?,
    };
    let zone = if args.output.utc {
        Zone::utc()
    } else {
        args.output.tz.clone().unwrap_or_else(Zone::utc)
    };
    let window = asked.named_window(&zone)?;
    let cancel = interrupt::flag()?;
    let request = request_of(asked, lake.clone(), window);
    let mut found = answer(&ask(&request, &cancel)?)?;
    let is_exact = asked.question.as_deref() == Some("slowest");
    found.window = window.filter(|(begin, _)| *begin > 0).map(|window| {
        if is_exact {
            window
        } else {
            whole_seconds(window)
        }
    });
    if room.is_some() {
        // It is gone when the answer is read.
        for table in &mut found.tables {
            table.facts.retain(|(name, ..)| name != "lake");
        }
    }
    let subject = Subject {
        name: room.map_or(lake, |_| format!("{} recordings", args.recordings.len())),
        ..Subject::default()
    };
    let lost = !found.losses.is_empty();
    whyslow_render::write(found, &subject, zone, Weight::Count, &args.output, talk)?;
    if lost && args.output.strict {
        return Err(Failure::incomplete("events were lost in the recordings"));
    }
    Ok(())
}

/// What is typed in the place of a recording, as other commands take it.
fn is_lake(name: &str) -> bool {
    name.contains("://") || Path::new(name).join("v1").join("_commits").is_dir()
}

/// As it is answered: the lake has seconds.
fn whole_seconds((begin, end): (Ns, Ns)) -> (Ns, Ns) {
    const SECOND: Ns = 1_000_000_000;
    let whole = begin.div_euclid(SECOND) * SECOND;
    (whole, -(-end).div_euclid(SECOND) * SECOND)
}

/// A lake of recordings that are here, for one question.
struct Room(PrivateFolder);

impl Room {
    fn of(recordings: &[String], talk: &TalkArgs) -> Result<Option<Self>, Failure> {
        if recordings.is_empty() {
            return Ok(None);
        }
        let room = Self(PrivateFolder::passing(&std::env::temp_dir(), PREFIX)?);
        let lake = Lake::make(&room.lake()).map_err(failed)?;
        let cancel = interrupt::flag()?;
        for recording in recordings {
            let stem = Path::new(recording)
                .file_stem()
                .map(|stem| stem.to_string_lossy().into_owned());
            let known = Nameless(stem.filter(|stem| is_name(stem)));
            push::one(
                &lake,
                recording,
                &FleetPushArgs::default(),
                (&cancel, talk),
                known,
            )?;
        }
        Ok(Some(room))
    }

    fn lake(&self) -> String {
        self.0.path().join("lake").display().to_string()
    }
}

/// The one that is named, by a flag or by the environment.
pub(super) fn lake_of(named: Option<&str>) -> Result<String, Failure> {
    let of_variable = || std::env::var(VARIABLE).ok().filter(|lake| !lake.is_empty());
    named
        .map(str::to_owned)
        .or_else(of_variable)
        .ok_or_else(|| {
            Failure::usage("which lake?").hint(format!("--lake s3://traces/lake, or {VARIABLE}"))
        })
}
