crate::table! {
    /// Frames with their callers: each row is a stack, and the begin of stacks that go deeper.
    CallsiteRow = "callsite", Entity by id {
        /// Id; greater than that of the caller.
        id: i64 [Id],
        /// The caller; null for an outermost frame.
        parent_id: Option<i64> [Id],
        /// The frame (`frame.id`).
        frame_id: i64 [Id],
        /// Number of callers above it.
        depth: i32 [Count],
    }
}
