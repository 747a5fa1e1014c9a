//! Addresses of requests whose connection states were not recorded.

use super::text::check;

/// No connection state changes are recorded, but both programs query the addresses of their
/// sockets; the server with the longer addresses.
const NAMED: &str = "
    0.000000001 [0] (tid=9 pid=9 comm=client) syscall_enter name=socket family=2 socket_type=1
    0.000000002 [0] (tid=9 pid=9) syscall_exit name=socket ret=3
    0.000000010 [0] (tid=9 pid=9) syscall_enter name=connect fd=3 sockaddr=10.0.0.1:80
    0.000000015 [0] (tid=9 pid=9) syscall_exit name=connect ret=0
    0.000000016 [0] (tid=9 pid=9) syscall_enter name=getsockname fd=3
    0.000000017 [0] (tid=9 pid=9) syscall_exit name=getsockname ret=0 sockaddr=10.0.0.1:5000
    0.000000020 [1] (tid=7 pid=7 comm=server) syscall_enter name=accept4 fd=4
    0.000000021 [1] (tid=7 pid=7) syscall_exit name=accept4 ret=5 sockaddr=[::ffff:10.0.0.1]:5000
    0.000000022 [1] (tid=7 pid=7) syscall_enter name=getsockname fd=5
    0.000000023 [1] (tid=7 pid=7) syscall_exit name=getsockname ret=0 sockaddr=[::ffff:10.0.0.1]:80
    0.000000030 [0] (tid=9 pid=9) syscall_enter name=write fd=3 count=100
    0.000000031 [0] (tid=9 pid=9) syscall_exit name=write ret=100
    0.000000032 [1] (tid=7 pid=7) syscall_enter name=read fd=5 count=4096
    0.000000033 [1] (tid=7 pid=7) syscall_exit name=read ret=100
    0.000000040 [1] (tid=7 pid=7) syscall_enter name=write fd=5 count=50
    0.000000041 [1] (tid=7 pid=7) syscall_exit name=write ret=50
    0.000000043 [0] (tid=9 pid=9) syscall_enter name=read fd=3 count=4096
    0.000000044 [0] (tid=9 pid=9) syscall_exit name=read ret=50";

#[test]
fn a_socket_has_the_name_that_the_program_asked_for() {
    check(
        NAMED,
        "request",
        "id ts dur role local peer client server_request queue_ns connect_ns",
        "
        0 30 14 client 10.0.0.1:5000 10.0.0.1:80 - 1 - -
        1 33 8 server 10.0.0.1:80 10.0.0.1:5000 10.0.0.1 - - -",
    );
}

/// The client binds an address before it connects; other sockets only a port of 0, or any address,
/// which the kernel replaces.
const BOUND: &str = "
    0.000000001 [0] (tid=9 pid=9 comm=client) syscall_enter name=socket family=2 socket_type=1
    0.000000002 [0] (tid=9 pid=9) syscall_exit name=socket ret=3
    0.000000003 [0] (tid=9 pid=9) syscall_enter name=bind fd=3 sockaddr=10.0.0.1:5000
    0.000000004 [0] (tid=9 pid=9) syscall_exit name=bind ret=0
    0.000000010 [0] (tid=9 pid=9) syscall_enter name=connect fd=3 sockaddr=10.0.0.2:80
    0.000000015 [0] (tid=9 pid=9) syscall_exit name=connect ret=0
    0.000000016 [0] (tid=9 pid=9) syscall_enter name=socket family=2 socket_type=1
    0.000000017 [0] (tid=9 pid=9) syscall_exit name=socket ret=4
    0.000000018 [0] (tid=9 pid=9) syscall_enter name=bind fd=4 sockaddr=10.0.0.1:0
    0.000000019 [0] (tid=9 pid=9) syscall_exit name=bind ret=0
    0.000000020 [0] (tid=9 pid=9) syscall_enter name=connect fd=4 sockaddr=10.0.0.2:81
    0.000000021 [0] (tid=9 pid=9) syscall_exit name=connect ret=0
    0.000000022 [0] (tid=9 pid=9) syscall_enter name=socket family=2 socket_type=1
    0.000000023 [0] (tid=9 pid=9) syscall_exit name=socket ret=5
    0.000000024 [0] (tid=9 pid=9) syscall_enter name=bind fd=5 sockaddr=0.0.0.0:5001
    0.000000025 [0] (tid=9 pid=9) syscall_exit name=bind ret=0
    0.000000026 [0] (tid=9 pid=9) syscall_enter name=connect fd=5 sockaddr=10.0.0.2:82
    0.000000027 [0] (tid=9 pid=9) syscall_exit name=connect ret=0
    0.000000030 [0] (tid=9 pid=9) syscall_enter name=write fd=3 count=100
    0.000000031 [0] (tid=9 pid=9) syscall_exit name=write ret=100
    0.000000043 [0] (tid=9 pid=9) syscall_enter name=read fd=3 count=4096
    0.000000044 [0] (tid=9 pid=9) syscall_exit name=read ret=50
    0.000000050 [0] (tid=9 pid=9) syscall_enter name=write fd=4 count=100
    0.000000051 [0] (tid=9 pid=9) syscall_exit name=write ret=100
    0.000000053 [0] (tid=9 pid=9) syscall_enter name=read fd=4 count=4096
    0.000000054 [0] (tid=9 pid=9) syscall_exit name=read ret=50
    0.000000060 [0] (tid=9 pid=9) syscall_enter name=write fd=5 count=100
    0.000000061 [0] (tid=9 pid=9) syscall_exit name=write ret=100
    0.000000063 [0] (tid=9 pid=9) syscall_enter name=read fd=5 count=4096
    0.000000064 [0] (tid=9 pid=9) syscall_exit name=read ret=50";

#[test]
fn a_client_has_the_address_that_it_bound() {
    check(
        BOUND,
        "request",
        "id ts dur role local peer",
        "
        0 30 14 client 10.0.0.1:5000 10.0.0.2:80
        1 50 4 client - 10.0.0.2:81
        2 60 4 client - 10.0.0.2:82",
    );
}
