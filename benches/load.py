"""What recording costs real loads: fio, a web server and a scheduler benchmark, by recorder."""

import contextlib
import os
import re
import shutil
import signal
import socket
import statistics
import subprocess
import time
from pathlib import Path

import cost

FIO_READS = 400_000
REQUESTS = 10_000
CONNECTIONS = 16
PAGE_BYTES = 4096
MESSAGING = ["-g", "10", "-l", "40"]
# Peers do not tell when they are ready.
START_SECONDS = 2.5
STOP_SECONDS = 60
# Of the issue: cached reads with system calls recorded, as a multiple of those without.
MARK_OF_READS = 1.3
CALLS = "whyslow record --what syscalls"


def tree_cpu(command):
    """CPU seconds of a command and of those it waited for; its output."""
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, errors = child.stdout.read(), child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise cost.Unavailable(f"`{command[0]}` fails: {errors.strip()[-200:]}")
    return usage.ru_utime + usage.ru_stime, out


class Fio:
    """4 KiB reads at random from a file that is in memory."""

    title = "fio: cached 4 KiB reads (psync)"
    unit = "ns a read"
    needs = ["fio"]

    def __init__(self, work):
        self.file = work / "fio.data"
        self.file.write_bytes(os.urandom(64 << 20))

    def run(self):
        self.file.read_bytes()
        cpu, _ = tree_cpu([
            "fio", "--name=reads", f"--filename={self.file}", "--size=64m", "--bs=4k", "--rw=randread", "--ioengine=psync",
            f"--number_ios={FIO_READS}", "--io_size=100g", "--norandommap", "--invalidate=0", "--output=/dev/null",
        ])
        return cpu * 1e9 / FIO_READS

    def close(self):
        self.file.unlink()


class Nginx:
    """A web server with a log, and a load tool that opens a connection for each request."""

    title = f"nginx: pages of {PAGE_BYTES} bytes, {CONNECTIONS} connections at a time (ab)"
    unit = "µs of the server a request"
    needs = ["nginx", "ab"]

    def __init__(self, work):
        folder = work / "nginx"
        (folder / "html").mkdir(parents=True)
        (folder / "html/index.html").write_bytes(b"x" * PAGE_BYTES)
        # Its workers give up being root, and have to get there.
        for each in (work, folder, folder / "html"):
            each.chmod(0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        (folder / "nginx.conf").write_text(
            f"daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/errors;\n"
            "events { worker_connections 256; }\n"
            f"http {{ access_log {folder}/access; sendfile on; server {{ listen 127.0.0.1:{self.port}; root {folder}/html; }} }}\n")
        self.server = subprocess.Popen(["nginx", "-p", folder, "-c", folder / "nginx.conf"],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        self.close()
        raise cost.Unavailable("nginx does not answer")

    def cpu_ns(self):
        """Of the server and its workers, each of one thread."""
        pids = [self.server.pid, *map(int, Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children").read_text().split())]
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids)

    def run(self):
        before = self.cpu_ns()
        _, said = tree_cpu(["ab", "-q", "-n", REQUESTS, "-c", CONNECTIONS, f"http://127.0.0.1:{self.port}/index.html"])
        if not re.search(rf"Complete requests:\s+{REQUESTS}\b", said) or not re.search(r"Failed requests:\s+0\b", said):
            raise cost.Unavailable("requests failed")
        return (self.cpu_ns() - before) / 1e3 / REQUESTS

    def close(self):
        self.server.terminate()
        self.server.wait()


class Messaging:
    """Processes that send each other messages through sockets: little but calls and switches."""

    title = f"perf bench sched messaging {' '.join(MESSAGING)}"
    unit = "ms"
    needs = ["perf"]

    def __init__(self, work):
        pass

    def run(self):
        cpu, _ = tree_cpu(["perf", "bench", "sched", "messaging", *MESSAGING])
        return cpu * 1e3

    def close(self):
        pass


def recorders(whyslow, work):
    """Name and command; each records the whole machine until it is interrupted."""
    ours = [whyslow, "record", "--force", "--buffer", "256MiB", "-o", work / "load.wsl"]
    return [
        ("none", None),
        (CALLS, [*ours, "--what", "syscalls"]),
        ("whyslow record (the default profile)", ours),
        ("bpftrace, a hash and a histogram", ["bpftrace", "-q", "-e", cost.BPFTRACE]),
        ("perf sched record", ["perf", "sched", "record", "-a", "-o", work / "sched.data"]),
        ("perf trace record", ["perf", "trace", "record", "-a", "-o", work / "trace.data"]),
    ]


@contextlib.contextmanager
def recording(command, whyslow, work, told):
    """A recorder at work; afterwards `told` has its CPU seconds and what it lost."""
    if command is None:
        yield
        return
    errors = work / "recorder.txt"
    with open(errors, "wb") as file:
        child = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=file,
                                 stdin=subprocess.DEVNULL, cwd=work)
    try:
        give_up = time.monotonic() + (20 if command[0] == whyslow else START_SECONDS)
        while time.monotonic() < give_up and not (command[0] == whyslow and "recording;" in errors.read_text()):
            if child.poll() is not None:
                raise cost.Unavailable(errors.read_text(errors="replace").strip()[-200:])
            time.sleep(0.05)
        yield
    finally:
        usage = ended(child)
    said = errors.read_text(errors="replace")
    if command[0] == whyslow:
        _, cpu, _, lost = cost.own_cost(said)
    else:
        cpu = usage.ru_utime + usage.ru_stime
        # perf tells of chunks or of events, whichever it knows.
        lost = sum(int(count) for count in re.findall(r"[Ll]ost (\d+) ", said))
    told.append((cpu, lost))


def ended(child):
    """Interrupts a recorder and waits for what it still has to write; its usage."""
    if child.returncode is not None:
        return None
    child.send_signal(signal.SIGINT)
    give_up = time.monotonic() + STOP_SECONDS
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            child.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.monotonic() > give_up:
            child.kill()
            give_up = float("inf")
        time.sleep(0.02)


def measure(whyslow, work, runs, tell):
    """Tables, each a title, a header and rows; notes."""
    if os.geteuid() != 0:
        return [], ["only root can record: nothing was measured"]
    cost.need_tracefs()
    tables, notes = [], []
    all_recorders = recorders(whyslow, work)
    for name, command in list(all_recorders):
        if command and shutil.which(str(command[0])) is None:
            notes.append(f"`{command[0]}` is not installed")
            all_recorders.remove((name, command))
    for kind in (Fio, Nginx, Messaging):
        missing = [program for program in kind.needs if shutil.which(program) is None]
        if missing:
            notes.append(f"{kind.title}: `{missing[0]}` is not installed")
            continue
        try:
            load = kind(work)
        except cost.Unavailable as error:
            notes.append(f"{kind.title}: {error}")
            continue
        try:
            rows, medians, more = of_load(load, all_recorders, whyslow, work, runs, tell)
        finally:
            load.close()
        header = ["recorder", f"median, {load.unit}", "least", "more than none", "ratio", "recorder itself, CPU ms", "lost"]
        tables.append((f"CPU time of a load while the machine is recorded: {load.title}", header, rows))
        notes += more
        if kind is Fio and CALLS in medians:
            ratio = medians[CALLS] / medians["none"]
            missed = "" if ratio <= MARK_OF_READS else ": missed"
            notes.append(f"Cached reads with system calls recorded take {ratio:.2f}× the time (mark {MARK_OF_READS}×{missed})")
    return tables, notes


def of_load(load, all_recorders, whyslow, work, runs, tell):
    found = {name: ([], []) for name, _ in all_recorders}
    notes = []
    for _ in range(runs):
        for name, command in all_recorders:
            if name not in found:
                continue
            took, told = found[name]
            try:
                with recording(command, whyslow, work, told):
                    took.append(load.run())
            except cost.Unavailable as error:
                notes.append(f"{load.title}, {name} fails: {error}")
                del found[name]
                continue
            tell(f"{load.title}, {name}: {took[-1]:.1f}")
    if "none" not in found:
        return [], {}, notes
    medians = {name: statistics.median(took) for name, (took, _) in found.items()}
    none, rows = medians["none"], []
    for name, (took, told) in found.items():
        own = [f"{statistics.median(cpu for cpu, _ in told) * 1e3:.0f}", f"{sum(lost for _, lost in told):,}"] if told else ["–", "–"]
        rows.append([name, f"{medians[name]:.1f}", f"{min(took):.1f}", f"{medians[name] - none:+.1f}",
                     f"{medians[name] / none:.2f}×", *own])
    return rows, medians, notes
