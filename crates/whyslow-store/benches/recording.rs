//! Cost of writing and reading a recording: `cargo bench -p whyslow-store`.
//!
//! `WHYSLOW_BENCH_ROWS` sets the number of system calls (default 2,000,000; a tenth as many block
//! requests are added), `WHYSLOW_BENCH_KEEP` a path where the recording is kept.

#![allow(clippy::print_stdout, reason = "a report for people")]

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use whyslow_model::row::Emit;
use whyslow_model::tables::{BlockIoRow, SyscallRow};
use whyslow_model::{Row, Symbols, Window};
use whyslow_store::{Existing, Recording, RecordingInfo, RecordingWriter, Scan, Tables};

#[path = "../tests/it/support/synthetic.rs"]
mod synthetic;

struct Nowhere(i64);

impl Emit<SyscallRow> for Nowhere {
    fn emit(&mut self, row: SyscallRow) {
        self.0 ^= row.ts;
    }
}

impl Emit<BlockIoRow> for Nowhere {
    fn emit(&mut self, row: BlockIoRow) {
        self.0 ^= row.ts;
    }
}

/// CPU time of all threads so far in seconds, in kernel ticks of 10 ms.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("procfs");
    let after_name = stat.rsplit(')').next().expect("a field");
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<f64>().expect("a number");
    (ticks(11) + ticks(12)) / 100.0
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .expect("a line");
    line.split_whitespace()
        .nth(1)
        .expect("a field")
        .parse::<u64>()
        .expect("a number")
        / 1024
}

fn measured<T>(what: &str, rows: u64, work: impl FnOnce() -> T) -> T {
    let (wall, cpu) = (Instant::now(), cpu_s());
    let result = work();
    let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu_s() - cpu);
    let per_row = |seconds: f64| seconds * 1e9 / rows as f64;
    println!(
        "{what:44} {:9.1} ms wall  {:7.1} ns/row wall  {:7.1} ns/row cpu  peak {} MiB",
        wall * 1e3,
        per_row(wall),
        per_row(cpu),
        peak_mib()
    );
    result
}

fn write(target: &Path, count: i64) -> RecordingInfo {
    let mut symbols = Symbols::new();
    let names = synthetic::Names::new(&mut symbols);
    let mut writer = RecordingWriter::create(target, Existing::Replace).expect("created");
    synthetic::emit(&mut writer, &names, count, |writer| {
        writer.flush_ready(&symbols).expect("flushed");
    });
    writer
        .finish(&symbols, RecordingInfo::default())
        .expect("finished")
}

fn scan(columns: &[&'static str], window: Option<Window>) -> Scan {
    Scan {
        table: SyscallRow::TABLE,
        columns: columns.to_vec(),
        window,
    }
}

fn read(recording: &Recording, scan: &Scan, threads: usize) -> u64 {
    let parts = recording.parts(scan).expect("parts");
    let next = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut rows = 0;
                    while let Some(part) =
                        parts.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                    {
                        part.read(&mut |batch| {
                            rows += batch.num_rows() as u64;
                            Ok(ControlFlow::Continue(()))
                        })
                        .expect("readable");
                    }
                    rows
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"))
            .sum()
    })
}

fn report_size(target: &Path, info: &RecordingInfo) {
    for table in ["syscall", "block_io"] {
        let table = &info.tables[table];
        let mut bytes = 0;
        for file in table.files.iter().chain(&table.long_files) {
            let size = target.join(file).metadata().expect("there").len();
            println!("  {file}: {size} bytes");
            bytes += size;
        }
        println!(
            "  {} rows, {:.2} bytes/row",
            table.rows,
            bytes as f64 / table.rows as f64
        );
    }
}

fn main() {
    let count: i64 = std::env::var("WHYSLOW_BENCH_ROWS").map_or(2_000_000, |rows| {
        rows.parse().expect("WHYSLOW_BENCH_ROWS is a number")
    });
    let parent = tempfile::tempdir().expect("tempdir");
    let target = std::env::var_os("WHYSLOW_BENCH_KEEP")
        .map_or_else(|| parent.path().join("bench.wsl"), Into::into);
    let rows = count as u64 + count as u64 / 10;

    measured("create the rows (nothing written)", rows, || {
        let mut symbols = Symbols::new();
        let names = synthetic::Names::new(&mut symbols);
        let mut nowhere = Nowhere(0);
        synthetic::emit(&mut nowhere, &names, count, |_| ());
        std::hint::black_box(nowhere.0);
    });
    let info = measured("create and write the rows", rows, || write(&target, count));
    report_size(&target, &info);

    let all: Vec<&str> = SyscallRow::TABLE
        .columns
        .iter()
        .map(|column| column.name)
        .collect();
    let stats = ["ts", "dur", "ts_end", "name", "op", "bytes"];
    let reads = info.tables["syscall"].rows;
    let opened = || Recording::open(&target).expect("opened");
    measured("read all columns, 1 thread", reads, || {
        read(&opened(), &scan(&all, None), 1)
    });
    measured("read all columns, 2 threads", reads, || {
        read(&opened(), &scan(&all, None), 2)
    });
    measured("read 6 columns, 1 thread", reads, || {
        read(&opened(), &scan(&stats, None), 1)
    });
    measured("read 6 columns, 2 threads", reads, || {
        read(&opened(), &scan(&stats, None), 2)
    });
    measured("read path, 1 thread", reads, || {
        read(&opened(), &scan(&["path"], None), 1)
    });
    measured("scan 6 columns in order", reads, || {
        let mut rows = 0;
        opened()
            .scan(&scan(&stats, None), &mut |batch| {
                rows += batch.num_rows();
                Ok(ControlFlow::Continue(()))
            })
            .expect("readable");
        rows
    });
    for column in &all {
        let scan = scan(&[*column], None);
        measured(&format!("  read {column}"), reads, || {
            read(&opened(), &scan, 1)
        });
    }
    let middle = 1_700_000_000_000_000_000 + count * 1500;
    let window = Some(Window::new(middle, middle + 10_000_000));
    measured("open, and 6 columns of a 10 ms window", reads, || {
        read(&opened(), &scan(&stats, window), 1)
    });
}
