//! Figures of files against SQL over `syscall`.

use serde_json::Value;

use super::{assert_close, float, incident, parts, span, sql, text};

const SECOND: i64 = 1_000_000_000;

#[test]
fn filetop_counts_as_sql_does() {
    let (begin, end) = span();
    let check = |args: &[&str], width: i64, filter: &str| {
        let Some(want) = sql(&format!(
            "{}, object AS (
               SELECT ts_end, pid, tid, comm, path, unknown_reason, bytes, op <> 'write' AS is_read,
                 CASE WHEN fd_class = 'file' THEN 'R'
                      WHEN fd_class IN ('inet', 'inet6', 'unix', 'netlink', 'socket') THEN 'S'
                      ELSE 'O' END AS t
               FROM syscall WHERE op IN ('read', 'write', 'read_write')
               UNION ALL
               SELECT ts_end, pid, tid, comm, path2, NULL, bytes, FALSE,
                 CASE WHEN path2[1] = '/' THEN 'R' ELSE 'O' END
               FROM syscall WHERE op = 'read_write'),
             counted AS (SELECT p, object.* FROM part
                         JOIN object ON ts_end >= p0 AND ts_end < p1x WHERE {filter})
             SELECT p, tid, comm, t, path, unknown_reason, COUNT(*) FILTER (is_read) AS reads,
                    COUNT(*) FILTER (NOT is_read) AS writes,
                    COALESCE(SUM(bytes) FILTER (is_read), 0)::BIGINT // 1024 AS r_kb,
                    COALESCE(SUM(bytes) FILTER (NOT is_read), 0)::BIGINT // 1024 AS w_kb
             FROM counted GROUP BY ALL",
            parts((begin, end), width)
        )) else {
            return;
        };
        let args = [&["as", "filetop", "web.wsl", "-C", "-r", "0"], args].concat();
        let printed = incident().stdout(&args);
        let mut part = -1;
        let mut got: Vec<Vec<String>> = Vec::new();
        for line in printed.lines() {
            if line.contains("loadavg") {
                part += 1;
            } else if !line.is_empty() && !line.starts_with("TID") {
                let comm = line[8..25].trim_end().to_owned();
                let words = line[25..].split_whitespace().map(str::to_owned);
                let mut row = vec![part.to_string(), line[..8].trim().to_owned(), comm];
                row.extend(words);
                got.push(row);
            }
        }
        let mut want: Vec<Vec<String>> = want
            .iter()
            .map(|row| {
                let file = match &row["path"] {
                    Value::Null => format!("unknown ({})", text(&row["unknown_reason"])),
                    path => text(path),
                };
                let of = ["p", "tid", "comm", "reads", "writes", "r_kb", "w_kb", "t"];
                let mut cells: Vec<String> = of.iter().map(|key| text(&row[*key])).collect();
                cells.extend(file.split_whitespace().map(str::to_owned));
                cells
            })
            .collect();
        got.sort();
        want.sort();
        assert_eq!(got.len(), want.len(), "{args:?}");
        for (got, want) in got.iter().zip(&want) {
            assert_eq!(got, want, "{args:?}");
        }
        assert!(!want.is_empty());
    };
    check(&[], end - begin, "t = 'R'");
    check(&["5"], 5 * SECOND, "t = 'R'");
    check(&["-p", "243"], end - begin, "t = 'R' AND pid = 243");
}

#[test]
fn filetop_orders_and_cuts_its_lists() {
    let column = |sort: &str, place: usize| {
        let args = ["as", "filetop", "web.wsl", "-s", sort, "-r", "7"];
        let printed = incident().stdout(&args);
        let lines = printed.lines().skip(2).filter(|line| !line.is_empty());
        let values = lines.map(|line| {
            let word = line[25..].split_whitespace().nth(place);
            word.expect("a column").parse::<i64>().expect("a number")
        });
        values.collect::<Vec<_>>()
    };
    for (sort, place) in [("reads", 0), ("writes", 1), ("rbytes", 2), ("wbytes", 3)] {
        let values = column(sort, place);
        assert_eq!(values.len(), 7, "{sort}");
        assert!(values.is_sorted_by(|a, b| a >= b), "{sort} {values:?}");
        assert!(values[0] > 0);
    }
}

#[test]
fn opensnoop_lists_every_open_by_its_end() {
    let (begin, _) = span();
    let check = |args: &[&str], filter: &str| {
        let Some(want) = sql(&format!(
            "SELECT pid, comm, CASE WHEN ret < 0 THEN -1 ELSE ret END AS fd,
                    CASE WHEN ret < 0 THEN -ret ELSE 0 END AS err, flags, path, unknown_reason
             FROM syscall WHERE name IN ('open', 'openat', 'openat2', 'creat')
               AND ts IS NOT NULL AND ts_end IS NOT NULL AND cut IS NULL AND {filter}
             ORDER BY ts_end, ts, id"
        )) else {
            return;
        };
        let printed = incident().stdout(&[&["as", "opensnoop", "web.wsl"], args].concat());
        let got: Vec<&str> = printed.lines().skip(1).collect();
        assert_eq!(got.len(), want.len(), "{args:?}");
        assert!(!want.is_empty(), "{args:?}");
        for (line, row) in got.iter().zip(&want) {
            let path = match &row["path"] {
                Value::Null => format!("unknown ({})", text(&row["unknown_reason"])),
                path => text(path),
            };
            let flags = if args.contains(&"-e") {
                format!("{:08o} ", row["flags"].as_i64().expect("flags"))
            } else {
                String::new()
            };
            let want = format!(
                "{:<6} {:<16} {:>3} {:>3} {flags}{path}",
                text(&row["pid"]),
                text(&row["comm"]),
                text(&row["fd"]),
                text(&row["err"]),
            );
            assert_eq!(*line, want);
        }
    };
    check(&[], "TRUE");
    check(&["-e", "-n", "apache"], "comm LIKE '%apache%'");
    check(&["-p", "243"], "pid = 243");
    check(&["-t", "244"], "tid = 244");
    let until = begin + 4 * SECOND;
    check(&["-d", "4"], &format!("ts_end <= {until}"));
}

#[test]
fn ext4slower_lists_what_took_long() {
    let check = |args: &[&str], least: i64| {
        let Some(want) = sql(&format!(
            "SELECT ts_end, comm, pid, CASE op WHEN 'read' THEN 'R' WHEN 'write' THEN 'W'
                      WHEN 'open' THEN 'O' ELSE 'S' END AS t,
                    CASE WHEN op IN ('read', 'write') AND ret > 0 THEN ret ELSE 0 END AS bytes,
                    file_offset // 1024 AS off, dur / 1e6 AS ms, path
             FROM syscall WHERE dur >= {least} AND
               ((op IN ('read', 'write') AND fd_class = 'file')
                OR (name IN ('open', 'openat', 'openat2', 'creat') AND fd_class = 'file')
                OR name IN ('fsync', 'fdatasync', 'sync_file_range', 'arm_sync_file_range'))
             ORDER BY ts_end, ts, id"
        )) else {
            return;
        };
        let printed = incident().stdout(&[&["as", "ext4slower", "web.wsl"], args].concat());
        let got: Vec<&str> = printed.lines().skip(2).collect();
        assert_eq!(got.len(), want.len(), "{args:?}");
        assert!(!want.is_empty());
        for (line, row) in got.iter().zip(&want) {
            let comm: String = line[9..].chars().take(14).collect();
            let name: String = text(&row["comm"]).chars().take(14).collect();
            assert_eq!(comm.trim_end(), name.trim_end(), "{line}");
            let words: Vec<&str> = line[24..].split_whitespace().collect();
            let keys = ["pid", "t", "bytes", "off"];
            assert_eq!(words[..4], keys.map(|key| text(&row[key])), "{line}");
            assert_close(words[4], float(&row["ms"]), line);
            if let Value::String(path) = &row["path"] {
                assert!(line.ends_with(path.as_str()), "{line}");
            }
        }
    };
    check(&[], 10_000_000);
    check(&["0.5"], 500_000);
    check(&["-m", "50"], 50_000_000);
    check(&["0"], 0);
}
