//! The table of system calls: class and arguments.
//!
//! One line per call: its name in the kernel's user-space headers, its class, `bytes` if a
//! successful return value is a number of bytes transferred, and its arguments in register order.
//! An argument is `role field`. The field is the kernel's name of the parameter, which LTTng uses
//! as field name, followed by its spellings in other releases after `|`. Role `_` is an argument
//! that is not used. Calls that are not listed are [`Op::Other`] without arguments.

use super::{Arg, Call, Op, Role};

macro_rules! role {
    (_) => {
        None
    };
    (fd) => {
        Some(Role::Fd)
    };
    (fd2) => {
        Some(Role::Fd2)
    };
    (dirfd) => {
        Some(Role::Dirfd)
    };
    (dirfd2) => {
        Some(Role::Dirfd2)
    };
    (path) => {
        Some(Role::Path)
    };
    (path2) => {
        Some(Role::Path2)
    };
    (count) => {
        Some(Role::Count)
    };
    (offset) => {
        Some(Role::Offset)
    };
    (page_offset) => {
        Some(Role::PageOffset)
    };
    (flags) => {
        Some(Role::Flags)
    };
    (command) => {
        Some(Role::Command)
    };
    (value) => {
        Some(Role::Value)
    };
    (address) => {
        Some(Role::Address)
    };
    (address2) => {
        Some(Role::Address2)
    };
    (timeout) => {
        Some(Role::Timeout)
    };
    (timeout_ms) => {
        Some(Role::TimeoutMs)
    };
    (family) => {
        Some(Role::Family)
    };
    (socket_type) => {
        Some(Role::SocketType)
    };
}

macro_rules! returns_bytes {
    () => {
        false
    };
    (bytes) => {
        true
    };
}

macro_rules! calls {
    ($( $name:ident $op:ident $($bytes:ident)? ( $( $role:tt $($field:ident)|+ ),* ) )+) => {
        pub(super) static CALLS: &[Call] = &[ $( Call {
            name: stringify!($name),
            op: Op::$op,
            returns_bytes: returns_bytes!($($bytes)?),
            args: &[ $( Arg { role: role!($role), fields: &[ $( stringify!($field) ),+ ] } ),* ],
        } ),+ ];
    };
}

/// Other names of the same call: LTTng uses the kernel's function names.
pub(super) static ALIASES: &[(&str, &str)] = &[
    ("newstat", "stat"),
    ("newlstat", "lstat"),
    ("newfstat", "fstat"),
    ("newuname", "uname"),
    ("umount", "umount2"),
    ("sendfile64", "sendfile"),
    ("mmap_pgoff", "mmap2"),
    ("pread", "pread64"),
    ("pwrite", "pwrite64"),
    ("llseek", "_llseek"),
    ("sysctl", "_sysctl"),
    ("_newselect", "select"),
    ("sync_file_range2", "arm_sync_file_range"),
    ("fadvise64_64", "fadvise64"),
];

calls! {
    // Descriptors opened or bound.
    open Open (path filename, flags flags, command mode)
    openat Open (dirfd dfd, path filename, flags flags, command mode)
    openat2 Open (dirfd dfd, path filename, _ how, _ usize)
    creat Open (path pathname, command mode)
    open_by_handle_at Open (dirfd mountdirfd, _ handle, flags flags)
    open_tree Open (dirfd dfd, path filename, flags flags)
    open_tree_attr Open (dirfd dfd, path filename, flags flags)
    fsopen Open (path _fs_name|fs_name, flags flags)
    fsmount Open (fd fs_fd, flags flags)
    fspick Open (dirfd dfd, path path, flags flags)
    mq_open Open (path u_name, flags oflag, command mode)
    memfd_create Open (path uname, flags flags)
    memfd_secret Open (flags flags)
    socket Open (family family, socket_type type, _ protocol)
    socketpair Open (family family, socket_type type, _ protocol, _ usockvec)
    accept Connect (fd fd, _ upeer_sockaddr, _ upeer_addrlen)
    accept4 Connect (fd fd, _ upeer_sockaddr, _ upeer_addrlen, flags flags)
    bind Connect (fd fd, _ umyaddr, _ addrlen)
    connect Connect (fd fd, _ uservaddr, _ addrlen)
    dup Open (fd fildes)
    dup2 Open (fd oldfd, fd2 newfd)
    dup3 Open (fd oldfd, fd2 newfd, flags flags)
    pipe Open (_ fildes)
    pipe2 Open (_ fildes, flags flags)
    eventfd Open (value count)
    eventfd2 Open (value count, flags flags)
    epoll_create Open (value size)
    epoll_create1 Open (flags flags)
    timerfd_create Open (command clockid, flags flags)
    signalfd Open (fd ufd, _ user_mask, _ sizemask)
    signalfd4 Open (fd ufd, _ user_mask, _ sizemask, flags flags)
    inotify_init Open ()
    inotify_init1 Open (flags flags)
    fanotify_init Open (flags flags, _ event_f_flags)
    userfaultfd Open (flags flags)
    pidfd_open Open (value pid, flags flags)
    pidfd_getfd Open (fd pidfd, value fd, flags flags)
    perf_event_open Open (_ attr_uptr, value pid, _ cpu, fd2 group_fd, flags flags)
    io_uring_setup Open (value entries, _ params)
    landlock_create_ruleset Open (_ attr, _ size, flags flags)
    close Close (fd fd)
    close_range Close (fd fd, fd2 max_fd, flags flags)

    // Bytes transferred.
    read Read bytes (fd fd, _ buf, count count)
    pread64 Read bytes (fd fd, _ buf, count count, offset pos)
    readv Read bytes (fd fd, _ vec, _ vlen)
    preadv Read bytes (fd fd, _ vec, _ vlen, offset pos_l, _ pos_h)
    preadv2 Read bytes (fd fd, _ vec, _ vlen, offset pos_l, _ pos_h, flags flags)
    recv Read bytes (fd fd, _ ubuf, count size, flags flags)
    recvfrom Read bytes (fd fd, _ ubuf, count size, flags flags, _ addr, _ addr_len)
    recvmsg Read bytes (fd fd, _ msg, flags flags)
    recvmmsg Read (fd fd, _ mmsg, value vlen, flags flags, _ timeout)
    mq_timedreceive Read bytes (fd mqdes, _ u_msg_ptr, count msg_len)
    readahead Read (fd fd, offset offset, count count)
    write Write bytes (fd fd, _ buf, count count)
    pwrite64 Write bytes (fd fd, _ buf, count count, offset pos)
    writev Write bytes (fd fd, _ vec, _ vlen)
    pwritev Write bytes (fd fd, _ vec, _ vlen, offset pos_l, _ pos_h)
    pwritev2 Write bytes (fd fd, _ vec, _ vlen, offset pos_l, _ pos_h, flags flags)
    send Write bytes (fd fd, _ buff, count len, flags flags)
    sendto Write bytes (fd fd, _ buff, count len, flags flags, _ addr, _ addr_len)
    sendmsg Write bytes (fd fd, _ msg, flags flags)
    sendmmsg Write (fd fd, _ mmsg, value vlen, flags flags)
    mq_timedsend Write (fd mqdes, _ u_msg_ptr, count msg_len)
    vmsplice Write bytes (fd fd, _ iov|uiov, _ nr_segs, flags flags)
    sendfile ReadWrite bytes (fd2 out_fd, fd in_fd, _ offset, count count)
    splice ReadWrite bytes
        (fd fd_in, _ off_in, fd2 fd_out, _ off_out, count len, flags flags)
    tee ReadWrite bytes (fd fdin, fd2 fdout, count len, flags flags)
    copy_file_range ReadWrite bytes
        (fd fd_in, _ off_in, fd2 fd_out, _ off_out, count len, flags flags)

    // Synchronization to disk.
    sync Sync ()
    syncfs Sync (fd fd)
    fsync Sync (fd fd)
    fdatasync Sync (fd fd)
    sync_file_range Sync (fd fd, offset offset, count nbytes, flags flags)
    arm_sync_file_range Sync (fd fd, flags flags, offset offset, count nbytes)
    msync Sync (address start, count len, flags flags)

    // Names and attributes.
    stat Metadata (path filename, _ statbuf)
    lstat Metadata (path filename, _ statbuf)
    fstat Metadata (fd fd, _ statbuf)
    oldstat Metadata (path filename, _ statbuf)
    oldlstat Metadata (path filename, _ statbuf)
    oldfstat Metadata (fd fd, _ statbuf)
    newfstatat Metadata (dirfd dfd, path filename, _ statbuf, flags flag)
    fstatat64 Metadata (dirfd dfd, path filename, _ statbuf, flags flag)
    statx Metadata (dirfd dfd, path filename, flags flags, _ mask, _ buffer)
    statfs Metadata (path pathname, _ buf)
    fstatfs Metadata (fd fd, _ buf)
    access Metadata (path filename, command mode)
    faccessat Metadata (dirfd dfd, path filename, command mode)
    faccessat2 Metadata (dirfd dfd, path filename, command mode, flags flags)
    chmod Metadata (path filename, command mode)
    fchmod Metadata (fd fd, command mode)
    fchmodat Metadata (dirfd dfd, path filename, command mode)
    fchmodat2 Metadata (dirfd dfd, path filename, command mode, flags flags)
    chown Metadata (path filename, _ user, _ group)
    lchown Metadata (path filename, _ user, _ group)
    fchown Metadata (fd fd, _ user, _ group)
    fchownat Metadata (dirfd dfd, path filename, _ user, _ group, flags flag)
    rename Metadata (path oldname, path2 newname)
    renameat Metadata (dirfd olddfd, path oldname, dirfd2 newdfd, path2 newname)
    renameat2 Metadata
        (dirfd olddfd, path oldname, dirfd2 newdfd, path2 newname, flags flags)
    link Metadata (path oldname, path2 newname)
    linkat Metadata
        (dirfd olddfd, path oldname, dirfd2 newdfd, path2 newname, flags flags)
    symlink Metadata (path oldname, path2 newname)
    symlinkat Metadata (path oldname, dirfd2 newdfd, path2 newname)
    readlink Metadata (path path, _ buf, count bufsiz)
    readlinkat Metadata (dirfd dfd, path pathname, _ buf, count bufsiz)
    unlink Metadata (path pathname)
    unlinkat Metadata (dirfd dfd, path pathname, flags flag)
    mkdir Metadata (path pathname, command mode)
    mkdirat Metadata (dirfd dfd, path pathname, command mode)
    rmdir Metadata (path pathname)
    mknod Metadata (path filename, command mode, value dev)
    mknodat Metadata (dirfd dfd, path filename, command mode, value dev)
    truncate Metadata (path path, offset length)
    ftruncate Metadata (fd fd, offset length)
    fallocate Metadata (fd fd, flags mode, offset offset, count len)
    utime Metadata (path filename, _ times)
    utimes Metadata (path filename, _ utimes)
    futimesat Metadata (dirfd dfd, path filename, _ utimes)
    utimensat Metadata (dirfd dfd, path filename, _ utimes, flags flags)
    getdents Metadata (fd fd, _ dirent, count count)
    getdents64 Metadata (fd fd, _ dirent, count count)
    setxattr Metadata (path pathname|path, _ name, _ value, _ size, flags flags)
    lsetxattr Metadata (path pathname|path, _ name, _ value, _ size, flags flags)
    fsetxattr Metadata (fd fd, _ name, _ value, _ size, flags flags)
    setxattrat Metadata (dirfd dfd, path pathname, flags at_flags, _ name)
    getxattr Metadata (path pathname|path, _ name, _ value, count size)
    lgetxattr Metadata (path pathname|path, _ name, _ value, count size)
    fgetxattr Metadata (fd fd, _ name, _ value, count size)
    getxattrat Metadata (dirfd dfd, path pathname, flags at_flags, _ name)
    listxattr Metadata (path pathname|path, _ list, count size)
    llistxattr Metadata (path pathname|path, _ list, count size)
    flistxattr Metadata (fd fd, _ list, count size)
    listxattrat Metadata (dirfd dfd, path pathname, flags at_flags, _ list)
    removexattr Metadata (path pathname|path, _ name)
    lremovexattr Metadata (path pathname|path, _ name)
    fremovexattr Metadata (fd fd, _ name)
    removexattrat Metadata (dirfd dfd, path pathname, flags at_flags, _ name)
    file_getattr Metadata (dirfd dfd, path filename)
    file_setattr Metadata (dirfd dfd, path filename)
    chdir Metadata (path filename)
    fchdir Metadata (fd fd)
    chroot Metadata (path filename)
    getcwd Metadata (_ buf, count size)
    name_to_handle_at Metadata (dirfd dfd, path name, _ handle, _ mnt_id, flags flag)
    inotify_add_watch Metadata (fd fd, path pathname, flags mask)
    fanotify_mark Metadata (fd fanotify_fd, flags flags, _ mask, dirfd dfd, path pathname)
    mount Metadata (path dev_name, path2 dir_name, _ type, flags flags, _ data)
    umount2 Metadata (path name, flags flags)
    move_mount Metadata
        (dirfd from_dfd, path from_pathname, dirfd2 to_dfd, path2 to_pathname, flags flags)
    mount_setattr Metadata (dirfd dfd, path path, flags flags)
    pivot_root Metadata (path new_root, path2 put_old)
    swapon Metadata (path specialfile, flags swap_flags)
    swapoff Metadata (path specialfile)
    quotactl Metadata (command cmd, path special, value id, _ addr)
    quotactl_fd Metadata (fd fd, command cmd, value id, _ addr)
    uselib Metadata (path library)
    acct Metadata (path name)
    cachestat Metadata (fd fd)

    // Readiness and completion.
    poll Wait (_ ufds, value nfds, timeout_ms timeout_msecs|timeout)
    ppoll Wait (_ ufds, value nfds, _ tsp, _ sigmask, _ sigsetsize)
    select Wait (value n, _ inp, _ outp, _ exp, _ tvp)
    pselect6 Wait (value n, _ inp, _ outp, _ exp, _ tsp, _ sig)
    epoll_wait Wait (fd epfd, _ events, value maxevents, timeout_ms timeout)
    epoll_pwait Wait (fd epfd, _ events, value maxevents, timeout_ms timeout, _ sigmask)
    epoll_pwait2 Wait (fd epfd, _ events, value maxevents, _ timeout, _ sigmask)
    epoll_wait_old Wait (fd epfd, _ events, value maxevents)
    io_getevents Wait (address ctx_id, _ min_nr, value nr, _ events, _ timeout)
    io_pgetevents Wait (address ctx_id, _ min_nr, value nr, _ events, _ timeout)
    rt_sigtimedwait Wait ()
    io_submit Submit (address ctx_id, value nr, _ iocbpp)
    io_uring_enter Submit (fd fd, value to_submit, command min_complete, flags flags)

    // Address space.
    mmap Memory
        (address addr, count len, value prot, flags flags, fd fd, offset offset|off)
    mmap2 Memory
        (address addr, count len, value prot, flags flags, fd fd, page_offset pgoff)
    munmap Memory (address addr, count len)
    mremap Memory (address addr, count old_len, value new_len, flags flags, _ new_addr)
    mprotect Memory (address start, count len, value prot)
    pkey_mprotect Memory (address start, count len, value prot)
    brk Memory (address brk)
    madvise Memory (address start, count len_in, command behavior)
    process_madvise Memory (fd pidfd, _ vec, _ vlen, command behavior, flags flags)
    process_mrelease Memory (fd pidfd, flags flags)
    mlock Memory (address start, count len)
    mlock2 Memory (address start, count len, flags flags)
    munlock Memory (address start, count len)
    mlockall Memory (flags flags)
    munlockall Memory ()
    mincore Memory (address start, count len)
    mseal Memory (address start, count len, flags flags)
    mbind Memory (address start, count len, command mode)
    remap_file_pages Memory (address start, count size, value prot, page_offset pgoff)
    move_pages Memory (value pid, _ nr_pages)
    migrate_pages Memory (value pid)
    shmat Memory (value shmid, address shmaddr, flags shmflg)
    shmdt Memory (address shmaddr)
    map_shadow_stack Memory (address addr, count size, flags flags)

    // Locks.
    futex Lock
        (address uaddr, command op, value val, timeout utime, address2 uaddr2, _ val3)
    futex_waitv Lock (_ waiters, value nr_futexes, flags flags)
    futex_wait Lock (address uaddr, value val, _ mask, flags flags, timeout timeout)
    futex_wake Lock (address uaddr, _ mask, value nr, flags flags)
    futex_requeue Lock (_ waiters, flags flags, value nr_wake)
    flock Lock (fd fd, command cmd)
    semop Lock (value semid, _ tsops, _ nsops)
    semtimedop Lock (value semid, _ tsops, _ nsops)

    // Time.
    nanosleep Sleep ()
    clock_nanosleep Sleep (command which_clock, flags flags)
    pause Sleep ()
    rt_sigsuspend Sleep ()
    sigsuspend Sleep ()

    // Processes and signals.
    clone Process (flags clone_flags|flags)
    clone3 Process ()
    fork Process ()
    vfork Process ()
    execve Process (path filename)
    execveat Process (dirfd fd, path filename, _ argv, _ envp, flags flags)
    exit Process (value error_code)
    exit_group Process (value error_code)
    wait4 Process (value upid, _ stat_addr, flags options)
    waitid Process (command which, value upid, _ infop, flags options)
    waitpid Process (value pid, _ stat_addr, flags options)
    kill Process (value pid, command sig)
    tkill Process (value pid, command sig)
    tgkill Process (_ tgid, value pid, command sig)
    pidfd_send_signal Process (fd pidfd, command sig, _ user_info, flags flags)
    rt_sigqueueinfo Process (value pid, command sig)
    rt_tgsigqueueinfo Process (_ tgid, value pid, command sig)
    ptrace Process (command request, value pid)
    unshare Process (flags unshare_flags)
    setns Process (fd fd, flags nstype)

    // Without a class of their own, but with useful arguments. The class of `fcntl` and
    // `socketcall` depends on their command: see [`Call::op_of`].
    fcntl Other (fd fd, command cmd, value arg)
    socketcall Other (command call, address args)
    ioctl Other (fd fd, command cmd, value arg)
    lseek Other (fd fd, offset offset, command whence|origin)
    _llseek Other (fd fd, _ offset_high, _ offset_low, _ result, command origin|whence)
    epoll_ctl Other (fd epfd, command op|op_enum, fd2 fd)
    listen Other (fd fd, value backlog)
    shutdown Other (fd fd, command how)
    getsockname Other (fd fd)
    getpeername Other (fd fd)
    getsockopt Other (fd fd, _ level, command optname)
    setsockopt Other (fd fd, _ level, command optname)
    timerfd_settime Other (fd ufd, flags flags)
    timerfd_gettime Other (fd ufd)
    inotify_rm_watch Other (fd fd, value wd)
    fadvise64 Other (fd fd, offset offset, count len, command advice)
    arm_fadvise64_64 Other (fd fd, command advice, offset offset, count len)
    io_uring_register Other (fd fd, command opcode)
    io_cancel Other (address ctx_id)
    io_destroy Other (address ctx|ctx_id)
    finit_module Other (fd fd)
    uname Other ()
    _sysctl Other ()
    getrandom Other (_ buf, count count, flags flags)
    process_vm_readv Other (value pid)
    process_vm_writev Other (value pid)
    prctl Other (command option, value arg2)
    fsconfig Other (fd fd, command cmd)
}
