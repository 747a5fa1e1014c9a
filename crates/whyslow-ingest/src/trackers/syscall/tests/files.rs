use super::{Machine, Words, assert_lines};

#[track_caller]
fn check(script: &str, expected: &[&str]) {
    let machine = Machine::run(script);
    let lines: Vec<String> = machine
        .rows
        .file_life
        .iter()
        .map(|row| {
            let name = |sym| machine.name(sym);
            let mut words = Words::span(row.ts, row.ts_end);
            words.put(name(row.path));
            words.field("from", row.renamed_from.map(name));
            words.put(match row.created {
                Some(true) => "created",
                Some(false) => "existed",
                None => "perhaps",
            });
            words.mark("deleted", row.deleted);
            let counts = [
                row.opens,
                row.reads,
                row.writes,
                row.bytes_read,
                row.bytes_written,
            ];
            words.put(counts.map(|count| count.to_string()).join(","));
            words.field("pid", row.pid);
            words.line()
        })
        .collect();
    assert_lines(&lines, expected);
}

#[test]
fn a_file_lives_from_first_sight_to_unlink_and_counts_after_it() {
    check(
        "1 7 = openat 3 path=/a flags=0xc1
         2 7 = write 10 fd=3
         3 8 = unlink 0 path=/a
         4 7 = pwrite64 5 fd=3
         5 7 = read 0 fd=3
         6 7 = openat 4 path=/a flags=0x41",
        &[
            "1-3 /a created deleted 1,1,2,0,15 pid=7",
            "6-? /a created 1,0,0,0,0 pid=7",
        ],
    );
}

#[test]
fn only_evidence_makes_a_file_created() {
    check(
        "1 7 = openat 3 path=/a flags=0x41
         2 7 = openat -2 path=/b
         3 7 = openat 3 path=/b flags=0x41
         4 7 = stat 0 path=/c
         5 7 = openat 3 path=/c flags=0x41
         6 7 = mkdir 0 path=/d
         7 7 = openat -2 path=/none",
        &[
            "1-? /a perhaps 1,0,0,0,0 pid=7",
            "3-? /b created 1,0,0,0,0 pid=7",
            "4-? /c existed 1,0,0,0,0 pid=7",
            "6-? /d created 0,0,0,0,0 pid=7",
        ],
    );
}

#[test]
fn a_renamed_file_goes_on_under_its_new_name() {
    check(
        "1 7 = openat 3 path=/b
         2 7 = openat 4 path=/a.tmp flags=0xc1
         3 7 = write 10 fd=4
         4 7 = rename 0 path=/a.tmp path2=/b
         5 7 = write 5 fd=4
         6 7 = read 3 fd=3",
        &[
            "1-4 /b existed deleted 1,1,0,3,0 pid=7",
            "2-4 /a.tmp created 1,0,1,0,10 pid=7",
            "4-? /b from=/a.tmp created 0,0,1,0,5 pid=7",
        ],
    );
}

#[test]
fn both_sides_of_a_copy_are_counted() {
    check(
        "1 7 = openat 3 path=/a
         2 7 = openat 4 path=/b
         3 7 = copy_file_range 100 fd=3 fd2=4
         4 7 = sendfile 50 fd=3 fd2=4
         5 7 = sendfile -11 fd=3 fd2=4",
        &[
            "1-? /a existed 1,2,0,150,0 pid=7",
            "2-? /b existed 1,0,2,0,150 pid=7",
        ],
    );
}

#[test]
fn relative_names_of_two_processes_are_not_one_file() {
    check(
        "1 7 = openat 3 path=a.o
         2 8 = openat 3 path=a.o
         3 8 = unlink 0 path=a.o",
        &[
            "1-? a.o existed 1,0,0,0,0 pid=7",
            "2-3 a.o existed deleted 1,0,0,0,0 pid=8",
        ],
    );
}
