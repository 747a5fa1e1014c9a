use crate::Sym;

crate::table! {
    /// Names of threads over time.
    ThreadCommRow = "thread_comm", Interval by id {
        /// Id.
        id: i64 [Id],
        /// Begin.
        ts: i64 [Time],
        /// Length; null if begin or end was not recorded.
        dur: Option<i64> [Duration],
        /// End; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Thread.
        utid: i32 [Id],
        /// Name in that time.
        comm: Sym,
    }
}
