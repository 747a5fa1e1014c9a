"""Overhead of recording for real loads: fio, a web server and a scheduler benchmark, by recorder."""

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
# Peers do not report when they are ready.
START_SECONDS = 2.5
STOP_SECONDS = 60
# Target of the issue: cost of cached reads with system calls recorded, as a multiple of the cost without.
MARK_OF_READS = 1.3
CALLS = "whyslow record --what syscalls"


def tree_cpu(command):
    """CPU seconds of a command and its reaped children; its output."""
    child = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, errors = child.stdout.read(), child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise cost.Unavailable(f"`{command[0]}` fails: {errors.strip()[-200:]}")
    return usage.ru_utime + usage.ru_stime, out


class Fio:
    """Random 4 KiB reads from a file in the page cache."""

    title = "fio: cached 4 KiB reads (psync)"
    unit = "ns per read"
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
    """A web server with an access log, and a load tool that opens a connection per request."""

    title = f"nginx: pages of {PAGE_BYTES} bytes, {CONNECTIONS} concurrent connections (ab)"
    unit = "server µs per request"
    needs = ["nginx", "ab"]

    def __init__(self, work):
        folder = work / "nginx"
        (folder / "html").mkdir(parents=True)
        (folder / "html/index.html").write_bytes(b"x" * PAGE_BYTES)
        # Its workers drop root and need access to the folders.
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
        raise cost.Unavailable("nginx does not respond")

    def cpu_ns(self):
        """CPU time of the server and its workers, which are single-threaded."""
        pids = [self.server.pid, *map(int, Path(f"/proc/{self.server.pid}/task/{self.server.pid}/children").read_text().split())]
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids)

    def run(self):
        before = self.cpu_ns()
        _, output = tree_cpu(["ab", "-q", "-n", REQUESTS, "-c", CONNECTIONS, f"http://127.0.0.1:{self.port}/index.html"])
        if not re.search(rf"Complete requests:\s+{REQUESTS}\b", output) or not re.search(r"Failed requests:\s+0\b", output):
            raise cost.Unavailable("requests failed")
        return (self.cpu_ns() - before) / 1e3 / REQUESTS

    def close(self):
        self.server.terminate()
        self.server.wait()


class Messaging:
    """Processes that exchange messages through sockets: mostly system calls and context switches."""

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
    """Name and command of recorders of the whole machine, which run until they are interrupted."""
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
def recording(command, whyslow, work, costs):
    """Runs a recorder; appends its CPU seconds and lost records to `costs`."""
    if command is None:
        yield
        return
    errors = work / "recorder.txt"
    with open(errors, "wb") as file:
        child = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=file,
                                 stdin=subprocess.DEVNULL, cwd=work)
    try:
        give_up = time.monotonic() + (20 if command[0] == whyslow else START_SECONDS)
        while time.monotonic() < give_up and not (command[0] == whyslow and "recording started" in errors.read_text()):
            if child.poll() is not None:
                raise cost.Unavailable(errors.read_text(errors="replace").strip()[-200:])
            time.sleep(0.05)
        yield
    finally:
        usage = ended(child)
    output = errors.read_text(errors="replace")
    if command[0] == whyslow:
        _, cpu, _, lost = cost.own_cost(output)
    else:
        cpu = usage.ru_utime + usage.ru_stime
        # perf reports lost chunks or lost events.
        lost = sum(int(count) for count in re.findall(r"[Ll]ost (\d+) ", output))
    costs.append((cpu, lost))


def ended(child):
    """Interrupts a recorder and waits until it has written everything; returns its resource usage."""
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


def measure(whyslow, work, runs, report_progress):
    """Tables, each a title, a header and rows; notes."""
    if os.geteuid() != 0:
        return [], ["skipped: recording needs root"]
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
            rows, medians, more = of_load(load, all_recorders, whyslow, work, runs, report_progress)
        finally:
            load.close()
        header = ["recorder", f"median, {load.unit}", "minimum", "overhead", "ratio", "recorder CPU ms", "lost"]
        tables.append((f"CPU time of a load while the machine is recorded: {load.title}", header, rows))
        notes += more
        if kind is Fio and CALLS in medians:
            ratio = medians[CALLS] / medians["none"]
            missed = "" if ratio <= MARK_OF_READS else ": missed"
            notes.append(f"Cached reads with system calls recorded take {ratio:.2f}× the time (target {MARK_OF_READS}×{missed})")
    return tables, notes


def of_load(load, all_recorders, whyslow, work, runs, report_progress):
    found = {name: ([], []) for name, _ in all_recorders}
    notes = []
    for _ in range(runs):
        for name, command in all_recorders:
            if name not in found:
                continue
            took, costs = found[name]
            try:
                with recording(command, whyslow, work, costs):
                    took.append(load.run())
            except cost.Unavailable as error:
                notes.append(f"{load.title}, {name} fails: {error}")
                del found[name]
                continue
            report_progress(f"{load.title}, {name}: {took[-1]:.1f}")
    if "none" not in found:
        return [], {}, notes
    medians = {name: statistics.median(took) for name, (took, _) in found.items()}
    none, rows = medians["none"], []
    for name, (took, costs) in found.items():
        own = [f"{statistics.median(cpu for cpu, _ in costs) * 1e3:.0f}", f"{sum(lost for _, lost in costs):,}"] if costs else ["–", "–"]
        rows.append([name, f"{medians[name]:.1f}", f"{min(took):.1f}", f"{medians[name] - none:+.1f}",
                     f"{medians[name] / none:.2f}×", *own])
    return rows, medians, notes
