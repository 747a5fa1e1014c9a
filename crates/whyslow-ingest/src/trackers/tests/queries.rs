//! DNS queries.

use super::text::check;

/// Queries like those of glibc: both address types at once; the second gets no reply, and both are
/// retried one after the other. Then like those of Go: one socket per attempt. Then one that is
/// open at the end.
const QUERIES: &str = "
    0.000000001 [0] (tid=9 pid=9 comm=shop) lookup_begin function=getaddrinfo host=db.internal
    0.000000010 [0] (tid=9 pid=9) syscall_enter name=socket family=2 socket_type=2
    0.000000011 [0] (tid=9 pid=9) syscall_exit name=socket ret=3
    0.000000020 [0] (tid=9 pid=9) syscall_enter name=connect fd=3 sockaddr=10.0.0.1:53
    0.000000021 [0] (tid=9 pid=9) syscall_exit name=connect ret=0
    0.000000030 [0] (tid=9 pid=9) syscall_enter name=sendmmsg fd=3
    0.000000031 [0] (tid=9 pid=9) syscall_exit name=sendmmsg ret=2
    0.000000040 [0] (tid=9 pid=9) syscall_enter name=recvfrom fd=3 count=512
    0.000000041 [0] (tid=9 pid=9) syscall_exit name=recvfrom ret=45
    5.000000030 [0] (tid=9 pid=9) syscall_enter name=sendto fd=3 count=29
    5.000000031 [0] (tid=9 pid=9) syscall_exit name=sendto ret=29
    5.000000040 [0] (tid=9 pid=9) syscall_enter name=recvfrom fd=3 count=512
    5.000000041 [0] (tid=9 pid=9) syscall_exit name=recvfrom ret=45
    5.000000050 [0] (tid=9 pid=9) syscall_enter name=close fd=3
    5.000000051 [0] (tid=9 pid=9) syscall_exit name=close ret=0
    5.000000060 [0] (tid=9 pid=9) lookup since=0.000000001 function=getaddrinfo host=db.internal code=0
    6.000000010 [0] (tid=8 pid=8 comm=go) syscall_enter name=socket family=2 socket_type=2
    6.000000011 [0] (tid=8 pid=8) syscall_exit name=socket ret=4
    6.000000020 [0] (tid=8 pid=8) syscall_enter name=connect fd=4 sockaddr=10.0.0.1:53
    6.000000021 [0] (tid=8 pid=8) syscall_exit name=connect ret=0
    6.000000030 [0] (tid=8 pid=8) syscall_enter name=write fd=4 count=29
    6.000000031 [0] (tid=8 pid=8) syscall_exit name=write ret=29
    6.000000040 [0] (tid=8 pid=8) syscall_enter name=read fd=4 count=512
    6.000000041 [0] (tid=8 pid=8) syscall_exit name=read ret=-11
    6.000000050 [0] (tid=8 pid=8) syscall_enter name=close fd=4
    6.000000051 [0] (tid=8 pid=8) syscall_exit name=close ret=0
    6.000000060 [0] (tid=8 pid=8) syscall_enter name=socket family=2 socket_type=2
    6.000000061 [0] (tid=8 pid=8) syscall_exit name=socket ret=4
    6.000000070 [0] (tid=8 pid=8) syscall_enter name=connect fd=4 sockaddr=10.0.0.2:80
    6.000000071 [0] (tid=8 pid=8) syscall_exit name=connect ret=0
    6.000000080 [0] (tid=8 pid=8) syscall_enter name=write fd=4 count=29
    6.000000081 [0] (tid=8 pid=8) syscall_exit name=write ret=29
    6.000000090 [0] (tid=8 pid=8) syscall_enter name=sendto fd=5 count=29 sockaddr=10.0.0.3:53
    6.000000091 [0] (tid=8 pid=8) syscall_exit name=sendto ret=29";

#[test]
fn a_question_ends_with_its_answer_or_without_one() {
    check(
        QUERIES,
        "dns_query",
        "id ts dur server outcome attempt lookup host tid",
        "
        0 30 11 10.0.0.1:53 answered 1 0 db.internal 9
        1 30 5000000000 10.0.0.1:53 asked_again 1 0 db.internal 9
        2 5000000030 11 10.0.0.1:53 answered 2 0 db.internal 9
        3 6000000030 20 10.0.0.1:53 given_up - - - 8
        4 6000000090 - 10.0.0.3:53 - - - - 8",
    );
}
