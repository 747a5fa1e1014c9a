use crate::Sym;

crate::table! {
    /// Names of threads over time.
    ThreadCommRow = "thread_comm", Interval by id {
        /// Id.
        id: i64 [Id],
        /// Start time.
        ts: i64 [Time],
        /// Duration; null if the start or the end was not recorded.
        dur: Option<i64> [Duration],
        /// End time; null if it was not recorded.
        ts_end: Option<i64> [Time],
        /// Thread.
        utid: i32 [Id],
        /// Thread name in that interval.
        comm: Sym,
    }
}
