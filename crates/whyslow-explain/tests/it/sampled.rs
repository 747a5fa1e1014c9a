//! Findings from profiles alone: chains of lock holders, and overlapping sampling gaps.

use whyslow_explain::{Confidence, Grade, Query, Report, explain};
use whyslow_model::tables::{Collected, LockWaitRow, SampleGapRow, StackSampleRow};
use whyslow_model::{Sym, Symbols};
use whyslow_store::{MemoryTables, RecordingInfo};

const MS: i64 = 1_000_000;

#[derive(Default)]
struct Made {
    symbols: Symbols,
    rows: Collected,
}

/// Holder of a lock, milliseconds held, confidence, and its function.
type Holder<'h> = (i32, i64, &'h str, &'h str);

impl Made {
    fn word(&mut self, word: &str) -> Sym {
        self.symbols.intern(word)
    }

    /// Threads are named `t1`, `t2`, … by number.
    fn name(&mut self, utid: i32) -> Sym {
        self.word(&format!("t{utid}"))
    }

    /// A wait of a thread between these milliseconds.
    fn wait(
        &mut self,
        utid: i32,
        (begin, end): (i64, i64),
        lock: &str,
        holder: Option<Holder<'_>>,
    ) -> i64 {
        let id = self.rows.lock_wait.len() as i64;
        let holder_comm = holder.map(|(utid, ..)| self.name(utid));
        let row = LockWaitRow {
            id,
            ts: begin * MS,
            dur: Some((end - begin) * MS),
            ts_end: Some(end * MS),
            kind: self.word("monitor"),
            slept: true,
            lock: self.word(lock),
            ret: 0,
            utid: Some(utid),
            upid: Some(1),
            tid: Some(100 + utid),
            pid: Some(100),
            comm: Some(self.name(utid)),
            function: Some(self.word(&format!("{lock}.get"))),
            reported_by: Some(self.word("event")),
            object: Some(self.word(lock)),
            holder_utid: holder.map(|(utid, ..)| utid),
            holder_tid: holder.map(|(utid, ..)| 100 + utid),
            holder_comm,
            held: holder.map(|(_, held, ..)| held * MS),
            confidence: holder.map(|(_, _, confidence, _)| self.word(confidence)),
            holder_function: holder.map(|(.., function)| self.word(function)),
            ..LockWaitRow::default()
        };
        self.rows.lock_wait.push(row);
        id
    }

    fn gap(&mut self, utid: i32, (begin, end): (i64, i64), function: &str, group: Option<i32>) {
        let id = self.rows.sample_gap.len() as i64;
        let row = SampleGapRow {
            id,
            ts: begin * MS,
            dur: Some((end - begin) * MS),
            ts_end: Some(end * MS),
            class: self.word("kernel_wait"),
            utid: Some(utid),
            upid: Some(1),
            tid: Some(100 + utid),
            pid: Some(100),
            comm: Some(self.name(utid)),
            cycles: Some(20),
            group_id: group,
            function: Some(self.word(function)),
            ..SampleGapRow::default()
        };
        self.rows.sample_gap.push(row);
    }

    /// A sample of a thread by the recorder, from outside.
    fn wall_sample(&mut self, utid: i32, (begin, end): (i64, i64), state: &str, function: &str) {
        let row = StackSampleRow {
            id: self.rows.stack_sample.len() as i64,
            ts: begin * MS,
            dur: Some((end - begin) * MS),
            ts_end: Some(end * MS),
            kind: self.word("wall"),
            state: Some(self.word(state)),
            utid: Some(utid),
            upid: Some(1),
            tid: Some(100 + utid),
            pid: Some(100),
            comm: Some(self.name(utid)),
            cpu: None,
            function: Some(self.word(function)),
            user_function: None,
            callsite_id: None,
            credits: Some(1),
            is_assumed: Some(false),
            syscall: Some(self.word("pwrite64")),
            sampler: Some(self.word("recorder")),
            is_cut: Some(false),
        };
        self.rows.stack_sample.push(row);
    }

    fn explained(&self, query: Query) -> Report {
        let info = RecordingInfo {
            end_ns: 2_000 * MS,
            ..RecordingInfo::default()
        };
        let tables = MemoryTables::new(&self.rows, &self.symbols, info);
        explain(&tables, &query, None).expect("an explanation")
    }
}

fn words(report: &Report) -> Vec<String> {
    let hops = report.findings[0].chain.iter();
    let words = hops.map(|hop| format!("{} {} {:?}", hop.actor.name, hop.what, hop.grade));
    words.collect()
}

/// t1 waits for t2, which waits for another lock held by t3, which is in an uninterruptible call at
/// the same time as t4.
fn chained() -> Made {
    let mut made = Made::default();
    made.wait(
        1,
        (100, 700),
        "a.Log",
        Some((2, 580, "high", "a.Index.get")),
    );
    made.wait(
        2,
        (110, 690),
        "a.Index",
        Some((3, 570, "medium", "__libc_pwrite64")),
    );
    made.rows.lock_wait[1].holder_gap_id = Some(0);
    made.gap(3, (120, 680), "__libc_pwrite64", Some(1));
    made.gap(4, (110, 660), "sendfile64", Some(1));
    made.gap(5, (110, 660), "fsync", None);
    made
}

#[test]
fn a_chain_of_holders_leads_to_the_one_that_no_signal_reached_and_who_was_silent_with_it() {
    let report = chained().explained(Query::default());
    assert_eq!(
        words(&report),
        [
            "t1 waited A",
            "t2 held the lock B",
            "t2 waited A",
            "t3 held the lock B",
            "t3 had no samples B",
            "t4 had no samples at the same time C",
        ]
    );
    let finding = &report.findings[0];
    let part = &finding.parts[0];
    assert_eq!(
        (part.culprit.name.as_str(), part.culprit.tid),
        ("t3", Some(103))
    );
    assert_eq!(
        (part.mechanism.as_str(), part.root.as_str()),
        ("lock_program", "unseen_wait")
    );
    assert_eq!((part.dur_ns, finding.unexplained_ns), (580 * MS, 20 * MS));
    assert_eq!(
        (part.grade, finding.confidence),
        (Grade::B, Confidence::Medium)
    );
    assert!(
        finding.verdict.contains("held up by t3"),
        "{}",
        finding.verdict
    );
    assert!(!finding.missing.is_empty());
    // A profile never leads to kernel mechanisms.
    for finding in &report.findings {
        let lengths: i64 = finding.parts.iter().map(|part| part.dur_ns).sum();
        assert_eq!(lengths, finding.target.end_ns - finding.target.begin_ns);
        let of_kernel = |mechanism: &str| {
            mechanism.starts_with("lock_") && mechanism != "lock_program"
                || mechanism.starts_with("block")
        };
        assert!(finding.parts.iter().all(|part| !of_kernel(&part.mechanism)));
        assert!(finding.chain.iter().all(|hop| !of_kernel(&hop.mechanism)));
    }
    // Gaps in the chain have no finding of their own; the other one has.
    let own: Vec<&str> = report
        .findings
        .iter()
        .filter(|finding| finding.target.kind == "gap")
        .map(|finding| finding.target.actor.name.as_str())
        .collect();
    assert_eq!(own, ["t5"]);
}

/// Names, mechanisms and milliseconds of the culprits of the first finding.
fn blamed(report: &Report) -> Vec<(&str, &str, i64)> {
    let parts = report.findings[0].parts.iter();
    let blamed = parts.map(|part| {
        let (name, root) = (part.culprit.name.as_str(), part.root.as_str());
        (name, root, part.dur_ns / MS)
    });
    blamed.collect()
}

#[test]
fn each_of_a_chain_answers_for_its_own_part_of_the_wait() {
    let mut made = Made::default();
    made.wait(1, (100, 1_100), "a.Log", Some((2, 1_000, "high", "a.b")));
    made.wait(2, (100, 700), "a.Index", Some((3, 600, "high", "c.d")));
    let report = made.explained(Query::default());
    assert_eq!(
        blamed(&report),
        [("t3", "lock_program", 600), ("t2", "lock_program", 400)]
    );

    // The holder of the inner lock was in an uninterruptible wait for nearly all of that time.
    made.rows.lock_wait[1].holder_gap_id = Some(0);
    made.gap(3, (100, 650), "pread64", None);
    let report = made.explained(Query::default());
    assert_eq!(
        blamed(&report),
        [
            ("t3", "unseen_wait", 550),
            ("t3", "lock_program", 50),
            ("t2", "lock_program", 400),
        ]
    );
}

#[test]
fn what_a_holder_did_for_a_moment_is_not_why_it_held_the_lock() {
    let mut made = Made::default();
    made.wait(1, (100, 1_100), "a.Log", Some((2, 1_000, "high", "a.b")));
    made.rows.lock_wait[0].holder_gap_id = Some(0);
    made.gap(2, (500, 560), "read", None);
    let report = made.explained(Query::default());
    assert_eq!(blamed(&report), [("t2", "lock_program", 1_000)]);

    // The holder waited for another lock for most of the time.
    made.wait(2, (150, 1_100), "a.Index", Some((3, 950, "high", "c.d")));
    let report = made.explained(Query::default());
    assert_eq!(
        blamed(&report),
        [("t3", "lock_program", 950), ("t2", "lock_program", 50)]
    );
}

#[test]
fn who_looked_from_outside_proves_a_time_without_samples_or_refutes_it() {
    let graded = |state: &str, until: i64| {
        let mut made = Made::default();
        made.gap(3, (120, 680), "__libc_pwrite64", None);
        made.wall_sample(3, (110, until), state, "rq_qos_wait");
        let report = made.explained(Query::default());
        let finding = report
            .findings
            .iter()
            .find(|finding| finding.target.kind == "gap")
            .expect("a finding of the gap");
        let object = finding.parts[0].object.as_ref().expect("a call");
        (
            finding.parts[0].grade,
            finding.confidence,
            object.name.clone(),
        )
    };
    let seen = "__libc_pwrite64 (rq_qos_wait)".to_owned();
    assert_eq!(
        graded("uninterruptible", 690),
        (Grade::A, Confidence::High, seen)
    );
    let call = "__libc_pwrite64".to_owned();
    assert_eq!(
        graded("sleeping", 690),
        (Grade::C, Confidence::Low, call.clone())
    );
    // No recorder samples for most of it.
    assert_eq!(
        graded("uninterruptible", 300),
        (Grade::B, Confidence::Medium, call)
    );
}

#[test]
fn a_guess_coincided_and_no_holder_is_no_culprit() {
    let mut made = Made::default();
    made.wait(1, (100, 700), "a.Log", Some((2, 580, "low", "a.Log.put")));
    let finding = &made.explained(Query::default()).findings[0];
    assert_eq!(
        (finding.parts[0].grade, finding.confidence),
        (Grade::C, Confidence::Low)
    );
    assert!(
        finding.verdict.contains("overlapped with"),
        "{}",
        finding.verdict
    );
    let mut made = Made::default();
    made.wait(1, (100, 700), "a.Log", None);
    let finding = &made.explained(Query::default()).findings[0];
    assert_eq!(
        (finding.culprit, finding.confidence),
        (None, Confidence::None)
    );
    assert_eq!(finding.unexplained_ns, 600 * MS);
}

#[test]
fn holders_that_wait_for_each_other_are_a_deadlock() {
    let mut made = Made::default();
    made.wait(
        1,
        (100, 1_900),
        "a.Log",
        Some((2, 1_700, "high", "a.Index.get")),
    );
    made.wait(
        2,
        (150, 1_900),
        "a.Index",
        Some((1, 1_700, "high", "a.Log.get")),
    );
    let report = made.explained(Query::default());
    let caveats = &report.findings[0].caveats;
    assert!(
        caveats.iter().any(|words| words.contains("deadlock")),
        "{caveats:?}"
    );
}

#[test]
fn one_wait_or_time_without_samples_can_be_asked_for() {
    let of = |table: &str, id| {
        let query = Query {
            operation: Some((table.to_owned(), id)),
            ..Query::default()
        };
        let mut report = chained().explained(query);
        assert_eq!(report.findings.len(), 1);
        report.findings.remove(0)
    };
    let finding = of("lock_wait", 1);
    assert_eq!(finding.target.id.as_deref(), Some("lock:1"));
    assert_eq!(finding.chain.len(), 4);
    let finding = of("sample_gap", 0);
    assert_eq!(finding.target.id.as_deref(), Some("gap:0"));
    assert_eq!(finding.chain.len(), 2);
}
