crate::table! {
    /// Call tree nodes: a frame with its caller. Each row is a stack, and also the outer part of
    /// deeper stacks.
    CallsiteRow = "callsite", Entity by id {
        /// Id; greater than the id of the caller.
        id: i64 [Id],
        /// Caller; null for an outermost frame.
        parent_id: Option<i64> [Id],
        /// Frame (`frame.id`).
        frame_id: i64 [Id],
        /// Number of callers above the frame.
        depth: i32 [Count],
    }
}
