// A recording with hostile names: markup, scripts, control characters.
const NAMES = ["<img src=x onerror=alert(1)>", "</script><script>alert(2)</script>", "a\u202eexe.txt", "\\x1b[31mred\\x07", "javascript:alert(3)", `/${"long/".repeat(800)}end`];

export function hostileTrace() {
    const lines = ["whyslow-text 1"];
    NAMES.forEach((name, at) => {
        const quoted = `"${name}"`;
        const comm = `"${name.startsWith("\\") ? name : name.slice(0, 15)}"`;
        const tid = 100 + at;
        const time = (ms) => `${1 + at}.${String(ms).padStart(3, "0")}000000`;
        lines.push(
            `${time(0)} [0] sched_switch prev=0 next=${tid} prev_state=R next_comm=${comm}`,
            `${time(1)} [0] (tid=${tid} pid=${tid} comm=${comm}) syscall_enter name=openat path=${quoted}`,
            `${time(2)} [0] (tid=${tid} comm=${comm}) sched_switch prev=${tid} prev_comm=${comm} prev_state=D next=0`,
            `${time(402)} [0] sched_switch prev=0 prev_state=R next=${tid} next_comm=${comm}`,
            `${time(402)} [0] (tid=${tid} comm=${comm}) stack kind=back since=${time(2)} state=D cpu=0 kernel=${quoted} user=${quoted}`,
            `${time(403)} [0] (tid=${tid} comm=${comm}) syscall_exit name=openat ret=3`,
            `${time(404)} [0] (tid=${tid} comm=${comm}) sched_switch prev=${tid} prev_comm=${comm} prev_state=S next=0`,
        );
    });
    return `${lines.join("\n")}\n`;
}

/** The same as a Chrome trace with timestamps, as py-spy writes it. */
export function hostileProfile() {
    const events = [];
    NAMES.forEach((name, at) => {
        const of = { cat: "py-spy", pid: 7, tid: 1000 + at, args: { filename: name, line: 1 } };
        const names = [`thread (${200 + at}): ${name}`, name, `${name} called`];
        for (const one of names) events.push({ ...of, name: one, ph: "B", ts: 1000 });
        for (const one of names.toReversed()) events.push({ ...of, name: one, ph: "E", ts: 500_000 + at });
    });
    return JSON.stringify(events);
}
