//! Tables as printed by both programs: named tables of rows with a key and named cells.

/// Column names and values.
pub(crate) type Cells = Vec<(&'static str, String)>;

/// A line of a table.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    /// What distinguishes it from the other rows of its table.
    pub(crate) key: String,
    pub(crate) cells: Cells,
}

#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// Title without units; from the second part of a refreshed output on, with its number.
    pub(crate) name: String,
    pub(crate) rows: Vec<Row>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    CpuThreads,
    Cpus,
    Processes,
    Sizes,
    Amounts,
    Pages,
    PageTotals,
    Stats,
    Distribution,
    Calls,
    SchedStats,
    Waits,
    Irqs,
    IrqLog,
    ThreadCalls,
}

const TITLES: [(&str, Form); 22] = [
    ("Per-TID Usage", Form::CpuThreads),
    ("Per-CPU Usage", Form::Cpus),
    ("Per-process I/O", Form::Processes),
    ("Per-file I/O", Form::Sizes),
    ("Block I/O", Form::Sizes),
    ("Disk Request", Form::Amounts),
    ("Network Received Bytes", Form::Sizes),
    ("Network Sent Bytes", Form::Sizes),
    ("Per-TID Memory Allocations", Form::Pages),
    ("Per-TID Memory Deallocations", Form::Pages),
    ("Total memory usage", Form::PageTotals),
    ("Syscalls latency statistics", Form::Stats),
    ("Disk latency statistics", Form::Stats),
    ("I/O request latency distribution", Form::Distribution),
    ("Scheduling latency frequency", Form::Distribution),
    ("Handler duration frequency", Form::Distribution),
    ("Top system call latencies", Form::Calls),
    ("I/O operations log", Form::Calls),
    ("Scheduling latency stats", Form::SchedStats),
    ("Scheduling top", Form::Waits),
    ("Scheduling log", Form::Waits),
    (
        "Begin                End                   Duration (us)  CPU",
        Form::IrqLog,
    ),
];

/// Every table of an output.
pub(crate) fn tables(text: &str) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let mut form = None;
    let mut part = 0;
    let open = |tables: &mut Vec<Table>, name: &str, part: usize| {
        let name = if part > 1 {
            format!("{name} #{part}")
        } else {
            name.to_owned()
        };
        if tables.iter().all(|table| table.name != name) {
            tables.push(Table {
                name: name.clone(),
                rows: Vec::new(),
            });
        }
        tables.iter().position(|table| table.name == name)
    };
    let mut place = None;
    for line in text.lines() {
        if line.starts_with("Timerange:") {
            part += 1;
            continue;
        }
        if let Some((title, found)) = title(line) {
            form = Some(found);
            place = open(&mut tables, &title, part);
            continue;
        }
        if let Some(rest) = line.strip_prefix("Total CPU Usage: ") {
            let place = open(&mut tables, "Total CPU Usage", part);
            let usage = rest.replace([' ', '%'], "");
            if let Some(place) = place {
                tables[place].rows.push(row("total", [("usage", usage)]));
            }
            continue;
        }
        if let Some(count) = line.strip_prefix("Total syscalls: ") {
            let place = open(&mut tables, "Total syscalls", part);
            if let Some(place) = place {
                tables[place]
                    .rows
                    .push(row("total", [("count", count.into())]));
            }
            continue;
        }
        if let Some(tid) = thread_of(line) {
            form = Some(Form::ThreadCalls);
            place = open(&mut tables, &format!("System calls of TID {tid}"), part);
            let comm = line.split(" (").next().unwrap_or("").to_owned();
            if let Some(place) = place {
                tables[place].rows.push(row("thread", [("comm", comm)]));
            }
            continue;
        }
        if let (Some(form), Some(place)) = (form, place)
            && let Some(mut row) = parsed(form, line)
        {
            if form == Form::Distribution {
                row.key = tables[place].rows.len().to_string();
            }
            tables[place].rows.push(row);
        }
    }
    tables.retain(|table| !table.rows.is_empty());
    tables
}

fn title(line: &str) -> Option<(String, Form)> {
    if line.starts_with("Hard IRQ") || line.starts_with("Soft IRQ") {
        return Some((line[..8].into(), Form::Irqs));
    }
    let (_, form) = TITLES.iter().find(|(title, _)| line.starts_with(title))?;
    if *form == Form::IrqLog {
        return Some(("Interrupt log".into(), *form));
    }
    let wide = line.find("   ").map_or(line, |end| &line[..end]);
    let unit = wide.rfind(" (").filter(|at| {
        let unit = &wide[*at..];
        ["(usec)", "(us)", "(µs)", "(usec):"].contains(&unit.trim()) || unit.starts_with(" (usec)")
    });
    let title = unit.map_or(wide, |at| &wide[..at]);
    let title = title.trim().trim_end_matches(':').replace(" - ", " ");
    let title = title
        .strip_suffix(" None")
        .map_or(title.clone(), String::from);
    Some((title, *form))
}

/// `comm (pid, TID: tid)   Count …`
fn thread_of(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once(", TID: ")?;
    rest.split_once(')').map(|(tid, _)| tid)
}

fn row<const N: usize>(key: &str, cells: [(&'static str, String); N]) -> Row {
    Row {
        key: key.to_owned(),
        cells: cells.to_vec(),
    }
}

fn parsed(form: Form, line: &str) -> Option<Row> {
    let line = line.trim_matches(|letter: char| letter == '█' || letter.is_whitespace());
    if line.is_empty()
        || line.starts_with("###")
        || line.starts_with("---")
        || line.starts_with('*')
    {
        return None;
    }
    match form {
        Form::CpuThreads => {
            let (usage, rest) = line.split_once('%')?;
            let (comm, tid, rest) = named(rest)?;
            let (migrations, prios) = rest.trim().split_once(' ')?;
            Some(row(
                tid,
                [
                    ("comm", comm.into()),
                    ("usage", usage.trim().into()),
                    ("migrations", migrations.into()),
                    ("priorities", prios.trim().into()),
                ],
            ))
        }
        Form::Cpus => {
            let (usage, cpu) = line.split_once('%')?;
            Some(row(cpu.trim(), [("usage", usage.trim().into())]))
        }
        Form::Processes => {
            let (size, rest) = size(line)?;
            let (comm, tid, rest) = named(rest)?;
            let (disk, rest) = self::size(rest)?;
            let (net, rest) = self::size(rest)?;
            let (unknown, _) = self::size(rest)?;
            Some(row(
                tid,
                [
                    ("comm", comm.into()),
                    ("total", size),
                    ("disk", disk),
                    ("net", net),
                    ("unknown", unknown),
                ],
            ))
        }
        Form::Sizes => {
            let (size, name) = size(line)?;
            let name = name.trim();
            match named(name) {
                Some((comm, id, _)) if name.ends_with(')') => Some(row(
                    id.trim_start_matches("pid="),
                    [("comm", comm.into()), ("size", size)],
                )),
                _ => Some(row(name, [("size", size)])),
            }
        }
        Form::Amounts => {
            let mut words = line.split_whitespace();
            let amount = words.next()?.to_owned();
            let unit = words.next()?;
            Some(row(
                words.next()?,
                [("amount", amount), ("unit", unit.into())],
            ))
        }
        Form::Pages => {
            let (pages, rest) = line.split_once(" pages ")?;
            let (comm, tid, _) = named(rest)?;
            Some(row(
                tid,
                [("comm", comm.into()), ("pages", pages.trim().into())],
            ))
        }
        Form::PageTotals => {
            let (pages, what) = line.strip_prefix("- ")?.split_once(" pages ")?;
            Some(row(what, [("pages", pages.into())]))
        }
        Form::Stats => stats(line, 1),
        Form::SchedStats if line.starts_with("Process") || line.starts_with("Count") => None,
        Form::SchedStats => scheduling(line),
        Form::Distribution => {
            let mut words = line.split_whitespace().filter(|word| !word.contains('█'));
            let from = words.next()?.to_owned();
            Some(row("", [("from", from), ("count", words.next()?.into())]))
        }
        Form::Calls => call(line),
        Form::Waits => wait(line),
        Form::Irqs => interrupt(line),
        Form::IrqLog => {
            let (times, rest) = line.strip_prefix('[')?.split_once(']')?;
            let mut words = rest.split_whitespace();
            let duration = words.next()?.to_owned();
            let cpu = words.next()?.to_owned();
            let kind = words.next()?;
            let number = words.next()?;
            let rest: Vec<&str> = words.collect();
            Some(row(
                &format!("{times} {kind} {number}"),
                [
                    ("duration", duration),
                    ("cpu", cpu),
                    ("name", rest.join(" ")),
                ],
            ))
        }
        Form::ThreadCalls => {
            if let Some(total) = line.strip_prefix("Total:") {
                return Some(row("total", [("count", total.trim().into())]));
            }
            let (line, returned) = line.strip_prefix("- ")?.split_once('{')?;
            let mut row = stats(line, 1)?;
            row.key = String::from(traced_name(&row.key));
            let mut returned: Vec<&str> = returned.trim_end_matches('}').split(", ").collect();
            returned.sort_unstable();
            row.cells.push(("returned", returned.join(", ")));
            Some(row)
        }
    }
}

/// lttng-analyses shows names of kernel functions and tracepoints, this program those of system
/// calls.
fn traced_name(name: &str) -> &str {
    match name {
        "newstat" | "newlstat" | "newfstat" | "newuname" => &name[3..],
        "newfstatat" => "newfstatat",
        "sendfile64" => "sendfile",
        "sync_file_range2" => "arm_sync_file_range",
        name => name,
    }
}

/// `comm (id) rest`; a name may contain any character.
fn named(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let at = text[from..].find(" (")? + from;
        // A thread of an unknown process.
        if let Some(rest) = text[at..].strip_prefix(" (unknown (tid=") {
            let (id, rest) = rest.split_once("))")?;
            return Some((text[..at].trim(), id, rest));
        }
        let (id, rest) = text[at + 2..].split_once(')')?;
        let number = id.trim_start_matches("pid=");
        if number == "N/A" || number.parse::<i64>().is_ok() {
            return Some((text[..at].trim(), id, rest));
        }
        from = at + 2;
    }
}

/// `1.00 MiB rest`
fn size(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    let (number, rest) = text.split_once(' ')?;
    number.parse::<f64>().ok()?;
    let rest = rest.trim_start();
    let end = rest.find(' ').unwrap_or(rest.len());
    Some((format!("{number} {}", &rest[..end]), &rest[end..]))
}

const STATS: [&str; 5] = ["count", "min", "average", "max", "stdev"];

/// Numbers at the end of the line are cells; what precedes them is the key.
fn stats(line: &str, keys: usize) -> Option<Row> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let numbers = words.len().checked_sub(STATS.len())?;
    if numbers < keys {
        return None;
    }
    let (key, values) = words.split_at(numbers);
    values[0].parse::<i64>().ok()?;
    let cells = STATS.iter().copied().zip(values.iter().copied());
    Some(Row {
        key: key.join(" "),
        cells: cells.map(|(name, value)| (name, decimals(value))).collect(),
    })
}

/// Without the zeros that one of the programs omits.
fn decimals(text: &str) -> String {
    match text.parse::<f64>() {
        Ok(number) if text.contains('.') => format!("{number:.3}"),
        _ => text.to_owned(),
    }
}

fn scheduling(line: &str) -> Option<Row> {
    let (line, prios) = match line.split_once('[') {
        Some((line, prios)) => (line, Some(prios.trim_end_matches(']'))),
        None => (line, None),
    };
    let (comm, key, numbers) = match named(line) {
        Some((comm, tid, numbers)) => (Some(comm), tid, numbers),
        None => (None, "", line),
    };
    let mut row = stats(numbers, 0)?;
    if !key.is_empty() {
        row.key = String::from(key);
    }
    if let Some(comm) = comm {
        row.cells.push(("comm", comm.into()));
    }
    if let Some(prios) = prios {
        row.cells.push(("priorities", prios.into()));
    }
    Some(row)
}

/// `[begin, end]* name duration* size comm tid path (fd=N)`
fn call(line: &str) -> Option<Row> {
    const COMM: usize = 24;
    let (times, rest) = line.strip_prefix('[')?.split_once(']')?;
    let rest = rest.trim_start_matches('*').trim_start();
    let (name, rest) = rest.split_once(' ')?;
    let (duration, rest) = rest.trim_start().split_once(' ')?;
    let rest = rest.trim_start();
    let (size, rest) = match rest.strip_prefix("N/A") {
        Some(rest) => ("N/A".to_owned(), rest),
        None => self::size(rest)?,
    };
    let rest = rest.trim_start();
    let cut = rest.char_indices().nth(COMM).map(|(at, _)| at)?;
    let (comm, rest) = rest.split_at(cut);
    let rest = rest.trim_start();
    let (tid, path) = rest.split_once(' ').unwrap_or((rest, ""));
    let (path, fd) = match path.trim().rsplit_once("(fd=") {
        Some((path, fd)) => (path.trim(), fd.trim_end_matches(')')),
        None => (path.trim(), ""),
    };
    Some(row(
        &format!("{times} tid {tid}"),
        [
            ("name", name.into()),
            ("duration", duration.trim_end_matches('*').into()),
            ("size", size),
            ("comm", comm.trim().into()),
            ("path", path.into()),
            ("fd", fd.into()),
        ],
    ))
}

/// `[wakeup, switch] latency prio cpu wakee (tid) waker (tid)`
fn wait(line: &str) -> Option<Row> {
    let (times, rest) = line.strip_prefix('[')?.split_once(']')?;
    let mut rest = rest.trim_start();
    let mut word = || {
        let (word, after) = rest.split_once(' ')?;
        rest = after.trim_start();
        Some(word.to_owned())
    };
    let (latency, prio, cpu) = (word()?, word()?, word()?);
    let (wakee, tid, rest) = named(rest)?;
    let (waker, waker_tid, _) = named(rest)?;
    Some(row(
        &format!("{times} tid {tid}"),
        [
            ("latency", latency),
            ("priority", prio),
            ("cpu", cpu),
            ("comm", wakee.into()),
            ("waker", format!("{waker} ({waker_tid})")),
        ],
    ))
}

/// `27: <name>  count min avg max stdev | raised min avg max stdev`
fn interrupt(line: &str) -> Option<Row> {
    let (number, rest) = line.split_once(':')?;
    number.trim().parse::<i64>().ok()?;
    let (name, rest) = rest.trim_start().strip_prefix('<')?.split_once('>')?;
    let (handled, raised) = rest.split_once('|')?;
    let mut row = stats(handled, 0)?;
    row.key = String::from(number.trim());
    row.cells.push(("name", name.into()));
    let raised = raised.trim().trim_end_matches('|');
    if let Some(raised) = stats(raised, 0) {
        let names = [
            "raised",
            "raise min",
            "raise average",
            "raise max",
            "raise stdev",
        ];
        let cells = names.into_iter().zip(raised.cells);
        row.cells
            .extend(cells.map(|(name, (_, value))| (name, value)));
    }
    Some(row)
}
