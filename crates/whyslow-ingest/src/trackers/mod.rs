//! State machines from events to rows.
