//! Futex calls.

use super::text::check;

#[test]
fn what_a_call_asked_for_and_what_came_of_it() {
    check(
        "
        0.000000010 [0] (tid=7 pid=7 comm=a) syscall_enter name=futex address=0x7f00 command=128 value=2 timeout=0x10
        0.000000011 [1] (tid=8 pid=7) syscall_enter name=futex address=0x7f00 command=129 value=1 timeout=0x5 address2=0x9
        0.000000012 [1] (tid=8 pid=7) syscall_exit name=futex ret=1
        0.000000013 [0] (tid=7 pid=7) syscall_exit name=futex ret=-110
        0.000000014 [0] (tid=7 pid=7) syscall_enter name=futex address=0xffffffffffffffff command=4 value=1 address2=0x7f08
        0.000000015 [0] (tid=7 pid=7) syscall_exit name=futex ret=3
        0.000000016 [0] (tid=7 pid=7) syscall_enter name=futex address=0x0 command=6 timeout=0
        0.000000017 [0] (tid=7 pid=7) syscall_exit name=futex ret=0
        0.000000018 [0] (tid=7 pid=7) syscall_enter name=futex address=0xa0 command=135
        0.000000019 [0] (tid=7 pid=7) syscall_exit name=futex ret=0
        0.000000020 [0] (tid=7 pid=7) syscall_enter name=futex_wake address=0xb0 value=1 flags=130
        0.000000021 [0] (tid=7 pid=7) syscall_exit name=futex_wake ret=-14
        0.000000022 [0] (tid=7 pid=7) syscall_enter name=flock fd=3 command=2
        0.000000023 [0] (tid=7 pid=7) syscall_exit name=flock ret=0",
        "futex_call",
        "ts dur op private address value address2 ret errno woken has_timeout tid pid cut",
        "
        10 3 wait true 7f00 2 - -110 110 - true 7 7 -
        11 1 wake true 7f00 - - 1 - 1 - 8 7 -
        14 1 requeue false ffffffffffffffff - 7f08 3 - 1 - 7 7 -
        16 1 wait false 0 - - 0 - - false 7 7 -
        18 1 unlock true a0 - - 0 - - - 7 7 -
        20 1 wake true b0 - - -14 14 - - 7 7 -",
    );
}

#[test]
fn what_the_recording_cuts_is_kept_and_says_so() {
    check(
        "
        0.000000010 [0] (tid=7 pid=7) syscall_exit name=getpid ret=7
        0.000000020 [0] (tid=7 pid=7) syscall_exit name=futex ret=0
        0.000000030 [0] (tid=7 pid=7) syscall_enter name=futex address=0x40 command=0
        0.000000031 [1] (tid=8 pid=8) syscall_enter name=futex_waitv value=2",
        "futex_call",
        "ts dur ts_end op private address ret tid cut",
        "
        10 - 20 unknown - - 0 7 begin
        30 - - wait false 40 - 7 end
        31 - - wait - - - 8 end",
    );
}

#[test]
fn the_process_of_an_address_is_told_once_it_is_known() {
    check(
        "
        0.000000010 [0] (tid=8) syscall_enter name=futex address=0x40 command=128
        0.000000020 [0] (tid=8) syscall_exit name=futex ret=0
        0.000000030 [0] state_process tid=8 pid=7 comm=b
        0.000000031 [0] state_end",
        "futex_call",
        "ts address tid pid upid",
        "10 40 8 7 0",
    );
}

#[test]
fn how_long_a_call_would_have_waited() {
    check(
        "
        0.000000010 [0] (tid=7 pid=7) syscall_enter name=poll value=1 command=5000
        0.000000020 [0] (tid=7 pid=7) syscall_exit name=poll ret=0",
        "syscall",
        "ts name op ret flags",
        "10 poll wait 0 5000",
    );
}
