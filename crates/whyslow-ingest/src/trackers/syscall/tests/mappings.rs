use super::{Machine, Words, assert_lines};

#[track_caller]
fn check(script: &str, expected: &[&str]) {
    let machine = Machine::run(script);
    let lines: Vec<String> = machine
        .rows
        .mapping
        .iter()
        .map(|row| {
            let name = |sym| machine.name(sym);
            let mut words = Words::span(row.ts, row.ts_end);
            words.field("pid", row.pid);
            words.put(format!("{:#x}+{:#x}", row.address, row.bytes));
            words.put(row.path.map_or("-", name));
            words.field("offset", row.file_offset);
            words.line()
        })
        .collect();
    assert_lines(&lines, expected);
}

#[test]
fn a_mapping_leads_to_its_file_and_ends_with_its_last_part() {
    check(
        "1 7 = openat 3 path=/lib/c
         2 7 = mmap 0x10000 count=0x4000 fd=3 flags=2 offset=0
         3 7 = mmap 0x12000 count=0x1000 fd=3 flags=0x12 offset=4096
         4 7 = mmap 0x80000 count=0x1000 fd=-1 flags=0x22
         5 7 = munmap 0 address=0x10000 count=0x2000
         6 7 = munmap 0 address=0x13000 count=0x1000
         7 7 = munmap -22 address=0x12000 count=0x1000",
        &[
            "2-6 pid=7 0x10000+0x4000 /lib/c offset=0",
            "3-? pid=7 0x12000+0x1000 /lib/c offset=4096",
            "4-? pid=7 0x80000+0x1000 -",
        ],
    );
}

#[test]
fn a_moved_mapping_stays_one_and_exec_ends_all() {
    check(
        "1 7 = mmap 0x10000 count=0x1000 fd=-1 flags=0x22
         2 7 = mremap 0x50000 address=0x10000 count=0x1000 value=0x8000
         3 7 = munmap 0 address=0x10000 count=0x1000
         4 7 = mmap 0x90000 count=0x1000 fd=-1 flags=0x22
         5 7 = munmap 0 address=0x50000 count=0x8000
         6 7 exec filename=/bin/ls tid=7",
        &["1-5 pid=7 0x10000+0x1000 -", "4-6 pid=7 0x90000+0x1000 -"],
    );
}
