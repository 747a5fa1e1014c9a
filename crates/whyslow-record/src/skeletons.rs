//! Typed access to the BPF programs, generated at build time.

macro_rules! skeleton {
    ($name:ident) => {
        #[allow(
            unsafe_code,
            dead_code,
            missing_debug_implementations,
            unreachable_pub,
            clippy::all,
            clippy::pedantic,
            clippy::unwrap_used
        )]
        pub(crate) mod $name {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($name), ".skel.rs"));
        }
    };
}

skeleton!(recorder);
skeleton!(outliers);
skeleton!(lookups);
