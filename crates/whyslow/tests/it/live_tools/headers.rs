//! Columns, their order and units: as listed here from the tools' output and documentation, and as
//! the installed tools print them.

use std::process::Command;

use whyslow_testkit::{Need, skip};

use super::incident;

/// The first line that contains all these words, as the emulation prints it.
fn header(args: &[&str], first: &str) -> String {
    let args = [&["as", args[0], "web.wsl"], &args[1..]].concat();
    let text = incident().stdout(&args);
    line(&text, first).unwrap_or_else(|| panic!("no `{first}` in:\n{text}"))
}

fn line(text: &str, first: &str) -> Option<String> {
    let mut lines = text.lines();
    let found = lines.find(|line| line.split_whitespace().any(|word| word == first))?;
    Some(found.to_owned())
}

#[test]
fn columns_are_those_of_the_tools() {
    let check = |args: &[&str], first: &str, want: &str| {
        let header = header(args, first);
        let got: Vec<&str> = header.split_whitespace().collect();
        let want: Vec<&str> = want.split_whitespace().collect();
        assert_eq!(got, want, "{args:?}");
    };
    check(
        &["iostat"],
        "avg-cpu:",
        "avg-cpu: %user %nice %system %iowait %steal %idle",
    );
    check(
        &["iostat", "-d"],
        "Device",
        "Device tps kB_read/s kB_wrtn/s kB_dscd/s kB_read kB_wrtn kB_dscd",
    );
    check(
        &["iostat", "-dm"],
        "Device",
        "Device tps MB_read/s MB_wrtn/s MB_dscd/s MB_read MB_wrtn MB_dscd",
    );
    check(
        &["iostat", "-dx"],
        "Device",
        "Device r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz \
         d/s dkB/s drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util",
    );
    check(
        &["iostat", "-dx", "--layout", "11"],
        "Device",
        "Device r/s w/s rkB/s wkB/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz \
         wareq-sz svctm %util",
    );
    let task = |rest: &str| format!("Command UID PID {rest}");
    let pidstat = |option: &str, rest: &str| {
        let header = header(&["pidstat", option], "UID");
        let got: Vec<&str> = header.split_whitespace().skip(1).collect();
        let want = task(rest);
        let want: Vec<&str> = want.split_whitespace().collect();
        assert_eq!(got[..got.len() - 1], want[1..], "{option}");
        assert_eq!(got.last(), Some(&"Command"));
    };
    pidstat("-u", "%usr %system %guest %wait %CPU CPU");
    pidstat("-d", "kB_rd/s kB_wr/s kB_ccwr/s iodelay");
    pidstat("-w", "cswch/s nvcswch/s");
    check(
        &["iotop", "-b"],
        "TID",
        "TID PRIO USER DISK READ DISK WRITE SWAPIN IO COMMAND",
    );
    check(
        &["top", "-b"],
        "PID",
        "PID USER PR NI VIRT RES SHR S %CPU %MEM TIME+ COMMAND",
    );
    check(
        &["filetop", "-C"],
        "TID",
        "TID COMM READS WRITES R_Kb W_Kb T FILE",
    );
    check(&["opensnoop"], "PID", "PID COMM FD ERR PATH");
    check(
        &["opensnoop", "-TUe"],
        "PID",
        "TIME UID PID COMM FD ERR FLAGS PATH",
    );
    check(
        &["biosnoop"],
        "PID",
        "TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)",
    );
    check(
        &["biosnoop", "-Q"],
        "PID",
        "TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)",
    );
    check(&["gethostlatency"], "PID", "TIME PID COMM LATms HOST");
    check(&["biolatency"], "usecs", "usecs : count distribution");
    check(&["biolatency", "-m"], "msecs", "msecs : count distribution");
    check(
        &["ext4slower"],
        "PID",
        "TIME COMM PID T BYTES OFF_KB LAT(ms) FILENAME",
    );
    check(
        &["ext4slower", "-j"],
        "ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE",
        "ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE",
    );
}

#[test]
fn help_says_what_each_tool_is() {
    let help = incident().stdout(&["as", "--help"]);
    for (tool, about) in [
        ("iostat", "Show CPU and disk statistics, like iostat"),
        (
            "ext4slower",
            "Show slow file reads, writes, opens and syncs",
        ),
        ("lttng-iolog", "Show opens, closes, reads, writes and syncs"),
    ] {
        let mut lines = help.lines().map(str::trim_start);
        let is_listed = lines.any(|line| line.starts_with(tool) && line.contains(about));
        assert!(is_listed, "{tool}: {help}");
        let own = incident().stdout(&["as", tool, "--help"]);
        assert!(own.starts_with(about), "{tool}: {own}");
    }
}

/// Output of an installed tool; `None`, with a skip message, if it fails.
fn real(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(args)
        .env("LC_ALL", "C")
        .env("S_TIME_FORMAT", "ISO")
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            skip(Need::Tools, format!("{program}: {error}"));
            return None;
        }
    };
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether the sysstat tool has the columns of 12.6.
fn is_sysstat_12_6(program: &str) -> bool {
    let Some(version) = real(program, &["-V"]) else {
        return false;
    };
    let is_it = version.contains("version 12.6") || version.contains("version 12.7");
    if !is_it {
        let version = version.lines().next().unwrap_or("no version").to_owned();
        skip(Need::Machine, format!("{program} is {version}"));
    }
    is_it
}

#[test]
fn iostat_prints_the_lines_of_the_installed_one() {
    if !is_sysstat_12_6("iostat") {
        return;
    }
    for options in [
        &["-d"][..],
        &["-dm"],
        &["-ds"],
        &["-dx"],
        &["-dxm"],
        &["-dxs"],
        &["-dxk"],
        &[],
    ] {
        let text = real("iostat", options).expect("it just ran");
        for first in ["Device", "avg-cpu:"] {
            let Some(want) = line(&text, first) else {
                continue;
            };
            let got = header(&[&["iostat"], options].concat(), first);
            assert_eq!(got, want, "{options:?}");
        }
        // Positions of blank lines, and right edges of the numbers of a row.
        let ours = incident().stdout(&[&["as", "iostat", "web.wsl"], options].concat());
        let shape = |text: &str| {
            let is_device = |line: &&str| line.starts_with(|c: char| c.is_ascii_lowercase());
            let mut kinds: Vec<String> = Vec::new();
            for line in text.lines().filter(|line| !line.starts_with("avg-cpu")) {
                kinds.push(match line {
                    "" => "blank".into(),
                    line if is_device(&line) => "device".into(),
                    line => line
                        .split_whitespace()
                        .next()
                        .unwrap_or("")
                        .chars()
                        .take(3)
                        .collect(),
                });
            }
            kinds.dedup_by(|a, b| a == "device" && b == "device");
            kinds.retain(|kind| !kind.starts_with(|c: char| c.is_ascii_digit()));
            kinds
        };
        assert_eq!(shape(&ours), shape(&text), "{options:?}");
    }
    let banner = real("iostat", &["-d"]).expect("it just ran");
    let ours = incident().stdout(&["as", "iostat", "web.wsl", "-d"]);
    let words = |text: &str| {
        let first = text.lines().next().unwrap_or("").to_owned();
        first.split('\t').map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(words(&banner).len(), words(&ours).len());
    assert_eq!(
        ours.lines().next(),
        Some("Linux 6.1.0-50-amd64 (boardhost) \t2026-11-21 \t_-_\t(1 CPU)")
    );
}

#[test]
fn pidstat_prints_the_headers_of_the_installed_one() {
    if !is_sysstat_12_6("pidstat") {
        return;
    }
    for options in ["-u", "-d", "-w", "-ut", "-dt", "-wt"] {
        let text = real("pidstat", &["-p", "1", options]).expect("it just ran");
        let want = line(&text, "UID").unwrap_or_else(|| panic!("{text}"));
        let got = header(&["pidstat", options], "UID");
        // It is preceded by the time.
        assert_eq!(got[8..], want[8..], "{options}");
    }
}

#[test]
fn pidstat_aligns_rows_as_the_installed_one() {
    if !is_sysstat_12_6("pidstat") {
        return;
    }
    let ends = |text: &str| {
        let row = text
            .lines()
            .find(|line| line.contains("  ") && !line.contains("UID"));
        let row = row.unwrap_or_else(|| panic!("{text}")).to_owned();
        let bytes = row.into_bytes();
        let is_end = |at: &usize| bytes[*at] != b' ' && bytes.get(at + 1) == Some(&b' ');
        (0..bytes.len())
            .filter(is_end)
            .skip(1)
            .take(6)
            .collect::<Vec<_>>()
    };
    for options in ["-u", "-d", "-w"] {
        let real = real("pidstat", &["-p", "1", options]).expect("it just ran");
        let ours = incident().stdout(&["as", "pidstat", "web.wsl", options]);
        let (mut real, mut ours) = (ends(&real), ends(&ours));
        // The column of the name is not aligned.
        let columns = real.len().min(ours.len());
        real.truncate(columns);
        ours.truncate(columns);
        assert_eq!(ours, real, "{options}");
    }
}

#[test]
fn iotop_prints_the_headers_of_the_installed_one() {
    let Some(text) = real("iotop", &["-b", "-n", "1"]) else {
        return;
    };
    let Some(want) = line(&text, "TID").filter(|_| text.contains("Current DISK")) else {
        skip(
            Need::Machine,
            format!("iotop of another kind, or without rights: {text:.60}"),
        );
        return;
    };
    // Its width depends on the largest id that the machine may have.
    let ours = header(&["iotop"], "TID");
    assert_eq!(ours.trim_start(), want.trim_start());
    let ours = incident().stdout(&["as", "iotop", "web.wsl"]);
    for (ours, real) in ours
        .lines()
        .zip(text.lines().skip_while(|line| !line.contains("Total")))
    {
        if !ours.contains("DISK READ:") {
            break;
        }
        let words = |line: &str| {
            let is_word = |word: &&str| word.chars().all(char::is_alphabetic) || *word == "|";
            let line = line.replace(':', "");
            line.split_whitespace()
                .filter(is_word)
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(ours)[..3], words(real)[..3]);
    }
}

#[test]
fn opensnoop_prints_the_header_of_the_installed_one() {
    for options in [&[][..], &["-T", "-U", "-e"]] {
        let args = [options, &["-d", "1"]].concat();
        let Some(mut text) = real("opensnoop", &args) else {
            return;
        };
        if line(&text, "PATH").is_none() {
            // If no tracefs is mounted, it can be mounted in a separate namespace.
            let mount = "mount -t tracefs none /sys/kernel/tracing && exec opensnoop \"$@\"";
            let args = [&["-m", "sh", "-c", mount, "opensnoop"], args.as_slice()].concat();
            text = real("unshare", &args).unwrap_or_default();
        }
        let Some(want) = line(&text, "PATH") else {
            skip(
                Need::Isolation,
                "opensnoop does not run here: it needs root, BPF and tracefs",
            );
            return;
        };
        assert_eq!(header(&[&["opensnoop"], options].concat(), "PATH"), want);
    }
}

#[test]
fn top_prints_the_columns_of_the_installed_one() {
    let Some(text) = real("top", &["-b", "-n", "1"]) else {
        return;
    };
    let Some(want) = line(&text, "PID") else {
        skip(Need::Tools, "top prints no header");
        return;
    };
    let words = |line: &str| {
        line.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    if !want.contains("TIME+") {
        skip(Need::Machine, format!("top of another kind: {want}"));
        return;
    }
    assert_eq!(words(&header(&["top"], "PID")), words(&want));
    let of = |text: &str, begin: &str| {
        let line = text.lines().find(|line| line.starts_with(begin));
        let line = line.unwrap_or_else(|| panic!("no {begin}")).to_owned();
        let is_name = |word: &&str| word.len() > 1 && word.chars().all(|c| c.is_ascii_alphabetic());
        let line = line.replace([',', ':'], " ");
        line.split_whitespace()
            .filter(is_name)
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let ours = incident().stdout(&["as", "top", "web.wsl"]);
    for begin in ["Tasks:", "%Cpu(s):"] {
        assert_eq!(of(&ours, begin), of(&text, begin), "{begin}");
    }
}
