//! Output of tools, and the tables that its rows go to.

/// Formats from the manuals of the tools, for tools that need unavailable kprobes.
pub(super) const DOCUMENTED: [(&str, [usize; 8], &str); 30] = [
    (
        "biosnoop of bcc",
        [0, 3, 0, 0, 0, 0, 0, 0],
        "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES   LAT(ms)\n\
         0.000004    supervise      1950    xvda1     W 13092560   4096       0.74\n\
         0.001469    my prog 2      1956    xvda1     R 13092440   4096       1.24\n\
         1.001469    ?              0       sda       W 13092440   4096       1.24\n",
    ),
    (
        "biosnoop -Q",
        [0, 1, 0, 0, 0, 0, 0, 0],
        "TIME(s)     COMM           PID     DISK      T SECTOR     BYTES  QUE(ms) LAT(ms)\n\
         0.000004    supervise      1950    xvda1     W 13092560   4096      0.05    0.74\n",
    ),
    (
        "biosnoop of libbpf-tools",
        [0, 2, 0, 0, 0, 0, 0, 0],
        "TIME(s)     COMM           PID     DISK      T    SECTOR     BYTES   LAT(ms)\n\
         0.000000    kworker/u4:2   1234    vda       WS   0          4096      0.562\n\
         0.101000    dd             1235    vda       R    2048       65536     1.562\n",
    ),
    (
        "biosnoop of bpftrace",
        [0, 0, 0, 0, 2, 0, 0, 0],
        "TIME(ms)     DISK COMM              PID    LAT(ms)\n\
         611          nvme0n1 bash          4179        10\n\
         611          nvme0n1 cat           4179         2\n",
    ),
    (
        "ext4slower",
        [4, 0, 0, 0, 0, 0, 0, 0],
        "Tracing ext4 operations slower than 10 ms\n\
         TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME\n\
         06:35:01 cron           16464  R 1249    0          16.05 common-auth\n\
         06:35:01 my cron        16463  W 1249    8          16.04 common auth\n\
         06:35:02 cron           16465  S 0       0          16.03 common-auth\n\
         06:35:02 cron           16465  O 0       0          10.03 common-auth\n",
    ),
    (
        "xfsslower -j",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "ENDTIME_us,TASK,PID,TYPE,BYTES,OFFSET_b,LATENCY_us,FILE\n\
         127200712278,bash,16978,R,4096,0,16512,date\n",
    ),
    (
        "fileslower",
        [2, 0, 0, 0, 0, 0, 0, 0],
        "Tracing sync read/writes slower than 10 ms\n\
         TIME(s)  COMM           TID    D BYTES   LAT(ms) FILENAME\n\
         0.000    randread.pl    4762   R 8192      12.70 data1\n\
         8.850    randread.pl    4762   R 8192      11.26 data1\n",
    ),
    (
        "opensnoop -TU",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "TIME(s)       UID   PID    COMM               FD ERR PATH\n\
         0.000000000   0     1576   snmpd              11   0 /proc/sys/net/ipv6\n",
    ),
    (
        "opensnoop -Te",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "TIME(s)       PID    COMM               FD ERR FLAGS    PATH\n\
         0.000000000   1576   snmpd              11   0 02000000 /proc/sys/net\n",
    ),
    (
        "execsnoop -T",
        [2, 0, 0, 0, 0, 0, 0, 0],
        "TIME     PCOMM            PID     PPID    RET ARGS\n\
         05:57:16 bash             15887   15885     0 /bin/bash -c echo\n\
         05:57:16 ls               15888   15887     0 /bin/ls --color=auto\n",
    ),
    (
        "execsnoop -t",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "TIME(s) PCOMM            PID    PPID   RET ARGS\n\
         0.031   dirname          23832  23808    0 /usr/bin/dirname /usr/local\n",
    ),
    (
        "execsnoop of bpftrace",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "Attaching 3 probes...\nTIME(ms)   PID   ARGS\n2460       3466  ls --color=auto -lh\n",
    ),
    (
        "tcpconnect -t",
        [0, 0, 0, 2, 0, 0, 0, 0],
        "TIME(s)  PID    COMM         IP SADDR            DADDR            DPORT\n\
         31.871   2482   local_agent  4  10.103.219.236   10.251.148.38    7001\n\
         32.090   2482   local_agent  6  fe80::1          fe80::2          7001\n",
    ),
    (
        "tcpconnect of bpftrace",
        [0, 0, 0, 1, 0, 0, 0, 0],
        "TIME     PID      COMM             SADDR          SPORT  DADDR          DPORT\n\
         00:36:45 1798396  agent            127.0.0.1      5001   10.229.20.82   56114\n",
    ),
    (
        "tcpconnlat -t",
        [0, 0, 0, 1, 0, 0, 0, 0],
        "TIME(s)  PID    COMM         IP SADDR            DADDR            DPORT LAT(ms)\n\
         0.000    1201   wget         4  10.153.223.157   23.23.100.231    80        1.65\n",
    ),
    (
        "tcpaccept -T",
        [0, 0, 0, 1, 0, 0, 0, 0],
        "TIME     PID    COMM         IP RADDR            RPORT LADDR            LPORT\n\
         08:28:08 907    sshd         4  192.168.56.1     32324 192.168.56.102   22\n",
    ),
    (
        "tcplife -T",
        [0, 0, 0, 2, 0, 0, 0, 0],
        "TIME     PID   COMM       LADDR           LPORT RADDR           RPORT TX_KB RX_KB MS\n\
         22:03:44 22597 recordProg 127.0.0.1       46644 127.0.0.1       28527     0     0 0.23\n\
         22:03:50 3314  server exe 2001:db8::1     46644 2001:db8::2     28527   100     3 5000.23\n",
    ),
    (
        "tcpretrans",
        [0, 0, 0, 0, 0, 0, 2, 0],
        "Tracing retransmits ... Hit Ctrl-C to end\n\
         TIME     PID    IP LADDR:LPORT          T> RADDR:RPORT          STATE\n\
         01:55:05 0      4  10.153.223.157:22    R> 69.53.245.40:34619   ESTABLISHED\n\
         01:55:17 1234   6  2001:db8::1:22       L> 2001:db8::2:22957    ESTABLISHED\n",
    ),
    (
        "tcpretrans of bpftrace",
        [0, 0, 0, 0, 0, 0, 1, 0],
        "Attaching 2 probes...\nTracing tcp retransmits. Hit Ctrl-C to end.\n\
         TIME     PID                LADDR:LPORT          RADDR:RPORT          STATE\n\
         00:43:54 0                127.0.0.1:34448    127.0.0.1:9999       ESTABLISHED\n",
    ),
    (
        "tcpdrop",
        [0, 0, 0, 0, 0, 0, 1, 0],
        "TIME     PID    IP SADDR:SPORT          > DADDR:DPORT          STATE (FLAGS)\n\
         20:49:06 0      4  10.32.119.56:443     > 10.66.65.252:22912   CLOSE (ACK)\n\
         \ttcp_drop+0x1\n\ttcp_data_queue+0x2b9\n\n",
    ),
    (
        "runqslower -P",
        [0, 0, 0, 0, 1, 0, 0, 0],
        "Tracing run queue latency higher than 10000 us.\n\
         TIME     COMM             TID           LAT(us) PREV COMM        PREV TID\n\
         13:11:43 kworker/0:2      8680            10250 swapper/0        0\n",
    ),
    (
        "syncsnoop",
        [2, 0, 0, 0, 0, 0, 0, 0],
        "TIME(s)            CALL\n16458148.611952    sync()\n16458151.533709    sync()\n",
    ),
    (
        "syncsnoop of bpftrace",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "Attaching 7 probes...\nTracing sync syscalls... Hit Ctrl-C to end.\n\
         TIME      PID    COMM             EVENT\n\
         02:02:17  27933  sync             tracepoint:syscalls:sys_enter_sync\n",
    ),
    (
        "statsnoop -t",
        [2, 0, 0, 0, 0, 0, 0, 0],
        "TIME(s)       PID    COMM             FD ERR PATH\n\
         0.000366347   9118   ls               -1   2 /etc/ld.so.preload\n\
         0.000392181   9118   ls                0   0 /etc/ld.so.cache\n",
    ),
    (
        "gethostlatency",
        [0, 0, 2, 0, 0, 0, 0, 0],
        "TIME      PID    COMM                  LATms HOST\n\
         06:10:24  28011  wget                  90.00 www.iovisor.org\n\
         06:10:41  28404  my wget             5009.00 foo\n",
    ),
    (
        "killsnoop",
        [0, 0, 0, 0, 0, 1, 0, 0],
        "TIME      PID    COMM             SIG  TPID   RESULT\n\
         12:10:51  13967  bash             9    13885  0\n",
    ),
    (
        "oomkill",
        [0, 0, 0, 0, 0, 1, 0, 0],
        "Tracing OOM kills... Ctrl-C to stop.\n\
         21:03:39 Triggered by PID 3297 (\"ntpd\"), OOM kill of PID 22516 (\"perl\"), 3850642 pages, loadavg: 0.99 0.39 0.30 3/282 22724\n",
    ),
    (
        "drsnoop -T",
        [0, 0, 0, 0, 0, 0, 0, 1],
        "TIME(s)       COMM           PID     LAT(ms) PAGES\n\
         0.000000000   summond        17678      0.19   143\n",
    ),
    (
        "execsnoop -TU",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "TIME     UID   PCOMM            PID     PPID    RET ARGS\n\
         05:57:16 1000  bash             15887   15885     0 /bin/bash -c echo\n",
    ),
    (
        "opensnoop of libbpf-tools",
        [1, 0, 0, 0, 0, 0, 0, 0],
        "TIME     PID    COMM              FD ERR PATH\n\
         05:27:16 1576   snmpd             11   0 /proc/sys/net\n",
    ),
];
