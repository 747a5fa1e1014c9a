// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only
/* All programs of the recorder: which of them are loaded is decided at start. */
#include "common.h"

#include "stacks.h"
#include "targets.h"

#include "syscalls.h"

#include "away.h"

#include "wall.h"

#include "locks.h"

#include "process.h"

#include "sched.h"

#include "signals.h"

#include "block.h"

#include "raw.h"

#include "classic.h"

#include "irq.h"

#include "dns.h"

#include "functions.h"

#include "usdt.h"

#include "fills.h"

#include "mem.h"

#include "fs.h"

#include "net.h"

#include "tcp.h"

#include "work.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
