//! `df` of GNU coreutils: file system space at the end of the window.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Args, FromArgMatches};
use whyslow_base::failure::Failure;
use whyslow_model::tables::MountRow;
use whyslow_model::{Ns, Symbols};
use whyslow_store::rows;

use crate::front::counters::{Counters, Owner};
use crate::front::{Front, FrontArgs, Positionals, shown, with_args};
use crate::tool::{Call, Tool};

pub(crate) static TOOL: Tool = Tool {
    name: "df",
    machine_name: None,
    about: "Show file system space, like df",
    args: |command| with_args::<DfArgs>(command, "RECORDING", NOTES),
    run,
};

const NOTES: &str = "\
Shows the state at the end of the window. File system space is sampled every ten seconds and at the
end of the recording, for local file systems in the mount namespace of the recorder. Network and
FUSE file systems are omitted, because they may hang. If a file system is mounted more than once,
the mount point with the shortest path is shown.";

#[derive(Debug, Clone, Args)]
struct DfArgs {
    #[command(flatten)]
    front: FrontArgs,
    /// Print sizes in kilobytes (the default)
    #[arg(short)]
    kilobytes: bool,
    /// Print sizes in powers of 1024 with a unit, like -h of df
    #[arg(short = 'H', long)]
    human_readable: bool,
    /// List inodes instead of bytes
    #[arg(short, long)]
    inodes: bool,
    /// Print the file system type
    #[arg(short = 'T', long)]
    print_type: bool,
}

const NAMES: &[&str] = &[
    "fs_size",
    "fs_free",
    "fs_available",
    "fs_inodes",
    "fs_inodes_free",
];

/// A line: source, type, sizes and mount point.
struct Line {
    source: String,
    kind: String,
    all: i64,
    used: i64,
    available: i64,
    point: String,
}

fn run(call: &Call<'_>) -> Result<(), Failure> {
    let args = DfArgs::from_arg_matches(call.matches)
        .map_err(|error| Failure::usage(error.to_string()))?;
    let words = Positionals::without_names(&args.front.words)?;
    if let Some(number) = words.numbers.first() {
        return Err(Failure::usage(format!("unexpected argument `{number}`"))
            .hint("choose the time with -w ..TIME: df shows the end of the window"));
    }
    let front = Front::open(call, &args.front, words.recording.as_deref())?;
    let counters = Counters::read(&front, NAMES)?;
    if counters.all("fs_size").next().is_none() {
        front.note("file system space unavailable: file system counters not recorded");
    }
    let lines = lines(&front, &args, &counters, front.span().end)?;
    front.put(&table(&args, &lines))?;
    front.finish()
}

fn lines(
    front: &Front<'_>,
    args: &DfArgs,
    counters: &Counters,
    end: Ns,
) -> Result<Vec<Line>, Failure> {
    let mut symbols = Symbols::new();
    let mounts = rows::<MountRow>(&*front.opened.tables, &mut symbols)?;
    let own = front
        .fact("mount_ns")?
        .and_then(|ns| ns.parse::<i64>().ok());
    // The most recent mount at a mount point hides the others.
    let mut seen: BTreeMap<&str, &MountRow> = BTreeMap::new();
    for mount in mounts
        .iter()
        .filter(|mount| own.is_none_or(|own| own == mount.mount_ns))
    {
        seen.insert(symbols.get(mount.mount_point), mount);
    }
    let mut of_device: BTreeMap<i64, (&str, &MountRow)> = BTreeMap::new();
    for (point, mount) in seen {
        let known = of_device.entry(mount.dev).or_insert((point, mount));
        if (point.len(), point) < (known.0.len(), known.0) {
            *known = (point, mount);
        }
    }
    let mut shown: Vec<_> = of_device.into_values().collect();
    shown.sort_by_key(|(_, mount)| mount.id);
    let line = |(point, mount): &(&str, &MountRow)| {
        let owner = Owner::FileSystem((*point).to_owned());
        let of = |name: &str| counters.at(name, &owner, end);
        let (all, used, available) = if args.inodes {
            let (all, free) = (of("fs_inodes")?, of("fs_inodes_free")?);
            (all, all.saturating_sub(free), free)
        } else {
            let (all, free) = (of("fs_size")?, of("fs_free")?);
            (all, all.saturating_sub(free), of("fs_available")?)
        };
        // df omits pseudo file systems, which have no blocks.
        (of("fs_size")? > 0).then(|| Line {
            source: symbols.get(mount.source).to_owned(),
            kind: symbols.get(mount.fs_type).to_owned(),
            all,
            used,
            available,
            point: (*point).to_owned(),
        })
    };
    Ok(shown.iter().filter_map(line).collect())
}

fn table(args: &DfArgs, lines: &[Line]) -> String {
    let head = match (args.inodes, args.human_readable) {
        (true, _) => ["Inodes", "IUsed", "IFree", "IUse%"],
        (false, true) => ["Size", "Used", "Avail", "Use%"],
        (false, false) => ["1K-blocks", "Used", "Available", "Use%"],
    };
    let mut table = vec![vec!["Filesystem".to_owned()]];
    if args.print_type {
        table[0].push("Type".into());
    }
    table[0].extend(head.map(str::to_owned));
    let amount = |count: i64| match (args.inodes, args.human_readable) {
        (true, _) => count.to_string(),
        (false, true) => human(count),
        // A partial kilobyte is rounded up.
        (false, false) => (count.saturating_add(1023) / 1024).to_string(),
    };
    for line in lines {
        let mut cells = vec![shown(&line.source)];
        if args.print_type {
            cells.push(shown(&line.kind));
        }
        cells.extend([line.all, line.used, line.available].map(amount));
        cells.push(share(line.used, line.available));
        table.push(cells);
    }
    let widths: Vec<usize> = (0..table[0].len())
        .map(|at| {
            table
                .iter()
                .map(|cells| cells[at].chars().count())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    let points = std::iter::once("Mounted on".to_owned());
    let points = points.chain(lines.iter().map(|line| shown(&line.point)));
    for (cells, point) in table.iter().zip(points) {
        for (at, cell) in cells.iter().enumerate() {
            let width = widths[at];
            let is_name = at == 0 || at == 1 && args.print_type;
            let _ = if is_name {
                // The first column of df has a minimum width.
                let width = if at == 0 { width.max(14) } else { width };
                write!(text, "{cell:<width$} ")
            } else {
                write!(text, "{cell:>width$} ")
            };
        }
        let _ = writeln!(text, "{point}");
    }
    text
}

/// Percentage of the usable space, rounded up.
fn share(used: i64, available: i64) -> String {
    let all = used.saturating_add(available);
    if all <= 0 {
        return "-".into();
    }
    let share = (i128::from(used) * 100 + i128::from(all) - 1) / i128::from(all);
    format!("{share}%")
}

/// `4.0K`, `12M`: rounded up, as in df.
fn human(bytes: i64) -> String {
    let mut size = bytes as f64;
    let mut unit = "";
    for larger in ["K", "M", "G", "T", "P"] {
        if size < 1024.0 {
            break;
        }
        size /= 1024.0;
        unit = larger;
    }
    let tenths = (size * 10.0).ceil() / 10.0;
    if unit.is_empty() || tenths >= 10.0 {
        format!("{:.0}{unit}", size.ceil())
    } else {
        format!("{tenths:.1}{unit}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_df() {
        assert_eq!(share(0, 0), "-");
        assert_eq!(share(1, 999), "1%");
        assert_eq!(share(999, 1), "100%");
        assert_eq!(share(50, 50), "50%");
        let human = [0, 1023, 1024, 1025, 10 << 20, (10 << 20) + 1, 3 << 40].map(human);
        assert_eq!(human, ["0", "1023", "1.0K", "1.1K", "10M", "11M", "3.0T"]);
    }
}
