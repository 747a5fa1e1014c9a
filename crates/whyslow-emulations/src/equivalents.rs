//! Commands that show what a well-known tool shows: its emulation, or the view with the same
//! information.

use crate::list;

/// Tools that are not emulated, and the command for them. `{pid}` stands for `-p PID` if the tool
/// was given one.
const VIEWS: &[(&[&str], &str)] = &[
    (
        &["vmstat", "dstat", "sar", "nmon", "glances"],
        "use @live 1",
    ),
    (&["mpstat"], "cpu @live 1 --by cpu"),
    (&["htop", "atop", "btop"], "as top @live"),
    (&["free"], "as top -n 1 @live"),
    (&["strace", "sysdig"], "syscalls log @live 1{pid}"),
    (&["syscount"], "syscalls stats @live{pid}"),
    (
        &["execsnoop"],
        "syscalls log @live 1 --name execve,execveat",
    ),
    (&["syncsnoop"], "io log @live 1 --op sync"),
    (&["killsnoop", "sigsnoop"], "signals log @live 1"),
    (&["biotop"], "block usage @live 1"),
    (&["bitesize", "biopattern"], "block hist @live"),
    (&["blktrace", "btrace", "blkparse"], "block log @live 1"),
    (
        &[
            "fileslower",
            "fsslower",
            "xfsslower",
            "btrfsslower",
            "nfsslower",
            "zfsslower",
        ],
        "io top @live --min 10ms",
    ),
    (
        &["fsdist", "ext4dist", "xfsdist", "btrfsdist", "nfsdist"],
        "io hist @live",
    ),
    (&["filelife"], "files log @live"),
    (&["lsof"], "files open @live"),
    (&["runqlat"], "sched hist @live"),
    (&["runqlen"], "sched stats @live"),
    (&["runqslower"], "sched top @live --min 10ms"),
    (&["cpudist"], "cpu @live"),
    (
        &["offcputime", "offwaketime", "wakeuptime", "latencytop"],
        "stacks top @live{pid}",
    ),
    (&["hardirqs", "softirqs"], "irq stats @live"),
    (
        &[
            "tcplife",
            "tcpconnect",
            "tcpaccept",
            "tcpconnlat",
            "tcptracer",
            "tcpstates",
        ],
        "tcp log @live 1",
    ),
    (&["ss", "netstat"], "tcp usage @live"),
    (
        &["tcptop", "nethogs", "iftop", "nload", "nicstat"],
        "net usage @live 1",
    ),
    (
        &["tcpretrans", "tcpdrop"],
        "net log @live 1 --op retransmit,drop",
    ),
    (&["klockstat", "lockstat"], "locks @live"),
    (&["drsnoop"], "mem top @live"),
    (
        &["lttng", "trace-cmd", "bpftrace", "stap"],
        "record --for 10s",
    ),
    (&["profile", "py-spy", "rbspy"], PROFILE),
];

/// Sampling needs a recording: live views do not sample.
const PROFILE: &str =
    "record --sample 99 --for 10s -o cpu.wsl && whyslow stacks top cpu.wsl --op sample";

/// Subcommands of perf; the last entry is for all others.
const PERF: &[(&str, &str)] = &[
    ("record", "record --sample 99 --for 10s"),
    ("report", "explain"),
    ("trace", "syscalls log @live 1{pid}"),
    ("stat", "cpu @live{pid}"),
    ("sched", "sched top @live"),
    ("lock", "locks @live"),
    ("", PROFILE),
];

/// Options of strace with a value in the next word.
const STRACE_VALUES: &[&str] = &[
    "-a", "-b", "-e", "-E", "-I", "-o", "-O", "-p", "-P", "-s", "-S", "-u", "-U", "-X",
];

/// Arguments of the program for a tool and its arguments, the best first; some may be invalid,
/// because a tool has options that its emulation lacks. `&&` separates two commands.
///
/// Empty if no command does what the tool does.
pub fn equivalents(tool: &str, args: &[String]) -> Vec<Vec<String>> {
    let tool = [".bt", ".py", "-bpfcc"]
        .iter()
        .find_map(|ending| tool.strip_suffix(ending))
        .unwrap_or(tool);
    if let Some(emulated) = list::named(tool) {
        let mut found = Vec::new();
        let names_source = args.iter().any(|arg| is_source(arg));
        // These tools of lttng-analyses read traces only.
        let is_live = !emulated.name.starts_with("lttng-");
        let of = |source: &[&str], args: &[String]| {
            let head = ["as", tool];
            let words = head.iter().chain(source).map(ToString::to_string);
            words.chain(args.iter().cloned()).collect()
        };
        if is_live && !names_source {
            found.push(of(&["@live"], args));
            found.push(of(&["@live"], &[]));
        } else {
            found.push(of(&[], args));
            found.push(of(&[], &[]));
        }
        return found;
    }
    if tool == "strace"
        && let Some(command) = traced(args)
    {
        let head = ["record", "--"].map(str::to_owned);
        return vec![head.into_iter().chain(command.iter().cloned()).collect()];
    }
    let view = match tool {
        "perf" => {
            let verb = args.first().map_or("", String::as_str);
            let of = |(name, _): &&(&str, &str)| *name == verb || name.is_empty();
            PERF.iter().find(of).map(|(_, view)| *view)
        }
        // Only counts were wanted.
        "strace" if args.iter().any(|arg| matches!(arg.as_str(), "-c" | "-C")) => {
            Some("syscalls stats @live{pid}")
        }
        _ => {
            let of = |(tools, _): &&(&[&str], &str)| tools.contains(&tool);
            VIEWS.iter().find(of).map(|(_, view)| *view)
        }
    };
    let pid = pid_of(args).map_or_else(String::new, |pid| format!(" -p {pid}"));
    view.map(|view| {
        let view = view.replace("{pid}", &pid);
        view.split(' ').map(str::to_owned).collect()
    })
    .into_iter()
    .collect()
}

/// Whether an argument names a recording or a trace.
fn is_source(arg: &str) -> bool {
    arg.starts_with('@') || arg.trim_end_matches('/').ends_with(".wsl") || arg.contains('/')
}

/// The value of `-p`.
fn pid_of(args: &[String]) -> Option<&str> {
    let mut args = args.iter();
    let value = args.find_map(|arg| match arg.as_str() {
        "-p" | "--pid" | "--attach" => Some(None),
        text => text.strip_prefix("-p").map(Some),
    })?;
    let value = match value {
        Some(value) => value,
        None => args.next()?,
    };
    value.parse::<u32>().is_ok().then_some(value)
}

/// The command that strace would start.
fn traced(args: &[String]) -> Option<&[String]> {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        if STRACE_VALUES.contains(&arg.as_str()) {
            at += 1;
        } else if !arg.starts_with('-') {
            return Some(&args[at..]);
        }
        at += 1;
    }
    None
}

/// Every tool for which [`equivalents`] has a command, with arguments as they are typed.
pub fn known_tools() -> Vec<Vec<String>> {
    let emulated = list::tools().map(|tool| vec![tool.name.to_owned()]);
    let viewed = VIEWS.iter().flat_map(|(tools, _)| *tools);
    let viewed = viewed.map(|tool| vec![(*tool).to_owned()]);
    let perf = PERF.iter().map(|(verb, _)| {
        let words = ["perf", verb].into_iter().filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    });
    emulated.chain(viewed).chain(perf).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(line: &str) -> String {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let found = equivalents(&words[0], &words[1..]);
        found
            .first()
            .map_or_else(String::new, |words| words.join(" "))
    }

    #[test]
    fn each_tool_has_the_command_that_shows_the_same() {
        let check = |line: &str, want: &str| assert_eq!(first(line), want, "{line}");
        check("iostat -x 1", "as iostat @live -x 1");
        check("iostat web.wsl -x 1", "as iostat web.wsl -x 1");
        check("biolatency-bpfcc", "as biolatency @live");
        check("opensnoop.bt", "as opensnoop @live");
        check("lttng-cputop trace/", "as lttng-cputop trace/");
        check("vmstat 1", "use @live 1");
        check("execsnoop", "syscalls log @live 1 --name execve,execveat");
        check("strace -p 77", "syscalls log @live 1 -p 77");
        check("strace -p77", "syscalls log @live 1 -p 77");
        check("strace -f -c -p 77", "syscalls stats @live -p 77");
        check("strace -e trace=open ls -l", "record -- ls -l");
        check("strace", "syscalls log @live 1");
        check("perf top", PROFILE);
        check("perf trace -p 5", "syscalls log @live 1 -p 5");
        check("perf report", "explain");
        check("slowest", "");
    }

    #[test]
    fn no_tool_is_listed_twice() {
        let mut names = known_tools();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
