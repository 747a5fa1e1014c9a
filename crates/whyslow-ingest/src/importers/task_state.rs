//! `prev_state` of a switch: a number whose bits the kernel has moved several times.
//!
//! * Since 4.14 a tracer reports one bit: 1 S, 2 D, 4 T, 8 t, 16 X, 32 Z, 64 P, 128 I; 0 is
//!   runnable, and 256 is runnable because it was preempted.
//! * Before 4.14 it is the raw task state: 1 S, 2 D, 4 T, 8 t, 16 and 32 X and Z (exchanged in
//!   3.14), 64 dead, 128 wake-kill, 256 waking, 512 P (since 3.9), 1024 not counted as load (since
//!   4.2); the bit above the last one in use means preempted.

use whyslow_model::event::PrevState;

/// Kernel version, as far as states depend on it.
pub type KernelVersion = (u32, u32);

/// First two numbers of a release such as `6.1.0-50-amd64`.
pub fn kernel_version(release: &str) -> Option<KernelVersion> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    Some((major, minor))
}

/// Without a version, decodes as current kernels do.
pub fn decode(state: i64, kernel: Option<KernelVersion>) -> PrevState {
    match kernel {
        Some(version) if version < (4, 14) => decode_raw(state, version),
        _ => decode_reported(state),
    }
}

fn decode_reported(state: i64) -> PrevState {
    match state {
        0 => PrevState::Runnable { preempted: false },
        0x1 => PrevState::Sleeping,
        0x2 => PrevState::Uninterruptible,
        0x4 => PrevState::Stopped,
        0x8 => PrevState::Traced,
        0x10 => PrevState::Dead,
        0x20 => PrevState::Zombie,
        0x40 => PrevState::Parked,
        0x80 => PrevState::Idle,
        0x100 => PrevState::Runnable { preempted: true },
        _ => PrevState::Unknown(state),
    }
}

fn decode_raw(state: i64, version: KernelVersion) -> PrevState {
    const NO_LOAD: i64 = 1024;
    let preempted = match version {
        v if v < (3, 9) => 512,
        v if v < (4, 2) => 1024,
        v if v < (4, 8) => 2048,
        _ => 4096,
    };
    let (dead, zombie) = if version < (3, 14) {
        (32, 16)
    } else {
        (16, 32)
    };
    let has = |bit| state & bit != 0;
    if state < 0 || state >= preempted * 2 {
        PrevState::Unknown(state)
    } else if has(preempted) {
        PrevState::Runnable { preempted: true }
    } else if state == 0 || state == 256 {
        PrevState::Runnable { preempted: false }
    } else if has(zombie) {
        PrevState::Zombie
    } else if has(dead) || has(64) {
        PrevState::Dead
    } else if has(1) {
        PrevState::Sleeping
    } else if has(2) && has(NO_LOAD) {
        PrevState::Idle
    } else if has(2) {
        PrevState::Uninterruptible
    } else if has(4) {
        PrevState::Stopped
    } else if has(8) {
        PrevState::Traced
    } else if has(512) {
        PrevState::Parked
    } else {
        PrevState::Unknown(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_give_versions() {
        assert_eq!(kernel_version("6.1.0-50-amd64"), Some((6, 1)));
        assert_eq!(kernel_version("4.4.0-116-generic"), Some((4, 4)));
        assert_eq!(kernel_version("3.10.31-ltsi"), Some((3, 10)));
        assert_eq!(kernel_version("custom"), None);
    }

    #[test]
    fn the_same_number_means_different_states_by_version() {
        let check = |state, version, expected| {
            assert_eq!(decode(state, version), expected, "{state} in {version:?}");
        };
        let preempted = PrevState::Runnable { preempted: true };
        check(0, None, PrevState::Runnable { preempted: false });
        check(256, Some((6, 1)), preempted);
        check(256, Some((4, 4)), PrevState::Runnable { preempted: false });
        check(64, Some((6, 1)), PrevState::Parked);
        check(64, Some((4, 4)), PrevState::Dead);
        check(128, Some((6, 1)), PrevState::Idle);
        check(0x402, Some((4, 4)), PrevState::Idle);
        check(130, Some((4, 4)), PrevState::Uninterruptible);
        check(2048, Some((4, 4)), preempted);
        check(1024, Some((3, 10)), preempted);
        check(512, Some((3, 6)), preempted);
        check(16, Some((3, 6)), PrevState::Zombie);
        check(32, Some((4, 4)), PrevState::Zombie);
        check(1 << 20, Some((4, 4)), PrevState::Unknown(1 << 20));
        check(33, Some((6, 2)), PrevState::Unknown(33));
    }
}
