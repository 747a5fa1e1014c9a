"""Network faults between two hosts: unreachable resolver, lost packets, slow server, flood."""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct
import time
from pathlib import Path
from typing import Any, Callable

from faults.cpu import cpu_of_victim, truth_of
from faults.plan import MS, Plan, Span, act, myself, overlap, repeat, undisturbed
from faults.truth import Culprit, Thing, Truth
from lab import LIBC, Lab, UnavailableError, needs, run

CLONE_NEWNET, CLONE_NEWNS = 0x40000000, 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
HERE, THERE, PORT = "10.213.0.1", "10.213.0.2", 7000
SMALL = 100


class Net:
    """Two network namespaces with a veth pair, separate from the machine's network."""

    def __init__(self, lab: Lab) -> None:
        needs("ip", "nft")
        self.lab = lab
        self.names = [f"whyslow-{os.getpid()}-{side}" for side in ("here", "there")]
        for name in self.names:
            lab.will_undo("netns", name)
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        here, there = self.names
        cable = "link add cable type veth peer name cable netns"
        run("ip", "-n", here, *cable.split(), there)
        for name, address in zip(self.names, (HERE, THERE)):
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "cable")
            run("ip", "-n", name, "link", "set", "cable", "up")

    def nft(self, rule: str) -> None:
        """Adds a rule for incoming packets on the far side."""
        run("ip", "netns", "exec", self.names[1], "nft", rule)

    def filter(self) -> None:
        self.nft("add table ip lab")
        self.nft("add chain ip lab in { type filter hook input priority 0; }")

    def clear(self) -> None:
        self.nft("flush chain ip lab in")

    def start(self, name: str, side: int, do: Callable[..., Any], *words: Any) -> Any:
        return self.lab.start(name, inside, self.names[side], do, *words)


def inside(name: str, do: Callable[..., Any], *words: Any) -> Any:
    """Runs a function in a network namespace."""
    fd = os.open(f"/run/netns/{name}", os.O_RDONLY)
    if LIBC.setns(fd, CLONE_NEWNET) != 0:
        raise RuntimeError("setns failed")
    os.close(fd)
    return do(*words)


def as_resolver(file: Path) -> None:
    """Makes lookups of this process use `file` as /etc/resolv.conf."""
    target = os.path.realpath("/etc/resolv.conf").encode()
    if (
        LIBC.unshare(CLONE_NEWNS) != 0
        or LIBC.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None) != 0
        or LIBC.mount(str(file).encode(), target, None, ctypes.c_ulong(MS_BIND), None) != 0
    ):
        raise RuntimeError("cannot mount resolv.conf")


def dns(lab: Lab, plan: Plan) -> Truth:
    net = Net(lab)
    net.filter()
    config = lab.folder / "resolv.conf"
    config.write_text(f"nameserver {THERE}\noptions timeout:1 attempts:2\n")
    plan.begin()
    server = net.start("resolverd", 1, answer_names, plan)
    victim = net.start("webapp", 0, look_up, plan, config)
    some = f"numgen random mod 100 < {plan.whole(8, 20)}"
    rules = iter([f"add rule ip lab in udp dport 53 {which} drop" for which in ("", some)])
    faults = plan.switch(lambda: net.nft(next(rules)), net.clear)
    result = victim.result()
    server.result()
    culprit = Culprit("peer", THERE, ["dns_lookup"])
    culprit.near = ["webapp", "resolverd", "timer", "poll*"]
    culprit.objects = [Thing("peer", f"{THERE}:53"), Thing("host", "db.internal")]
    culprit.objects.append(Thing("any", "db.internal"))
    truth = Truth(plan, faults, [culprit])
    own = undisturbed(result["spans"], faults)
    for begin, end in result["spans"]:
        lost = end - begin - own if end - begin > 500 * MS else 0
        truth.add(result, "poll", (begin, end), [max(0, lost)])
    return truth


def look_up(plan: Plan, config: Path) -> dict[str, Any]:
    as_resolver(config)

    def once() -> None:
        with contextlib.suppress(socket.gaierror):
            socket.getaddrinfo("db.internal", 5432, socket.AF_INET, socket.SOCK_STREAM)

    return repeat(plan, once, 0.01)


def answer_names(plan: Plan) -> int:
    """A resolver that returns one address for every name."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((THERE, 53))
    server.settimeout(0.2)
    count = 0
    while not plan.is_over():
        try:
            query, sender = server.recvfrom(512)
        except socket.timeout:
            continue
        end = query.index(b"\0", 12) + 5
        head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0)
        address = struct.pack(">HHHIH4B", 0xC00C, 1, 1, 0, 4, 10, 213, 0, 9)
        server.sendto(head + query[12:end] + address, sender)
        count += 1
    return count


def serve(plan: Plan, delay: Callable[[int], float], needed: int = SMALL) -> dict[str, Any]:
    """Answers requests of a fixed size, one connection after another."""
    server = socket.create_server((THERE, PORT), backlog=64)
    server.settimeout(0.2)
    late: list[Span] = []
    number = 0
    while not plan.is_over():
        try:
            connection, _ = server.accept()
        except socket.timeout:
            continue
        connection.settimeout(2)
        try:
            while True:
                got = 0
                while got < needed:
                    part = connection.recv(needed - got)
                    if not part:
                        break
                    got += len(part)
                if got < needed:
                    break
                number += 1
                if (pause := delay(number)) > 0:
                    begin = time.monotonic_ns()
                    time.sleep(pause)
                    late.append((begin, time.monotonic_ns()))
                connection.sendall(b"a" * SMALL)
        except OSError:
            pass
        connection.close()
    return {**myself(), "late": late}


def request_once() -> None:
    """Sends a request on a new connection; a failed one counts, too."""
    try:
        with socket.create_connection((THERE, PORT), timeout=4) as connection:
            connection.sendall(b"q" * SMALL)
            connection.recv(SMALL)
    except OSError:
        pass


def lost_packets(lab: Lab, plan: Plan) -> Truth:
    net = Net(lab)
    net.filter()
    percent = plan.whole(4, 9)
    plan.begin()
    server = net.start("shop-api", 1, serve, plan, lambda _: 0)
    victim = net.start("webapp", 0, repeat, plan, request_once, 0.004)
    rule = f"add rule ip lab in tcp dport {PORT} numgen random mod 100 < {percent} drop"
    faults = plan.switch(lambda: net.nft(rule), net.clear)
    result = victim.result()
    server.result()
    culprit = Culprit("peer", THERE, ["network_retransmit"])
    culprit.near = ["shop-api", "webapp", f"{HERE}:*"]
    culprit.objects = [Thing("peer", f"{THERE}:{PORT}")]
    truth = Truth(plan, faults, [culprit])
    own = undisturbed(result["spans"], faults)
    for span in result["spans"]:
        # Nothing else takes as long as TCP's minimum retransmission timeout.
        lost = span[1] - span[0] - own
        truth.add(result, "recvfrom", span, [lost if lost > 180 * MS else 0])
    return truth


def slow_server(lab: Lab, plan: Plan) -> Truth:
    net = Net(lab)
    pause, every = plan.whole(200, 400) / 1000, plan.whole(3, 6)
    plan.begin()

    def delay(number: int) -> float:
        return pause if plan.is_on() and number % every == 0 else 0

    server = net.start("shop-api", 1, serve, plan, delay)
    victim = net.start("webapp", 0, repeat, plan, request_once, 0.01)
    result = victim.result()
    late = [(begin, end) for begin, end in server.result()["late"]]
    names = ["local_ipc", "timer_sleep", "network_remote"]
    culprit = Culprit("process", "shop-api", names, server.pid)
    culprit.objects = [Thing("peer", f"{THERE}:{PORT}")]
    culprit.near = [f"{THERE}*"]
    truth = Truth(plan, late, [culprit])
    for begin, end in result["spans"]:
        truth.add(result, "recvfrom", (begin, end), [overlap((begin, end), late)])
    return truth


def delayed_acknowledgement(lab: Lab, plan: Plan) -> Truth:
    """Two small writes and a read: the second write waits for a delayed acknowledgement."""
    net = Net(lab)
    plan.begin()
    server = net.start("shop-api", 1, serve, plan, lambda _: 0)
    victim = net.start("webapp", 0, write_write_read, plan)
    result = victim.result()
    server.result()
    culprit = Culprit(
        "own", "webapp", ["send_delayed", "timer_sleep", "network_remote", "local_ipc"]
    )
    culprit.near = ["shop-api", f"{THERE}*", "timer"]
    culprit.pid = victim.pid
    culprit.objects = [Thing("peer", f"{THERE}:{PORT}")]
    truth = Truth(plan, plan.windows, [culprit])
    own = undisturbed(result["spans"], plan.windows)
    for span in result["spans"]:
        lost = span[1] - span[0] - own
        truth.add(result, "recvfrom", span, [lost if 30 * MS < lost < 250 * MS else 0])
    return truth


def write_write_read(plan: Plan) -> dict[str, Any]:
    connection = socket.create_connection((THERE, PORT), timeout=4)

    def once() -> None:
        if plan.is_on():
            connection.send(b"q" * (SMALL // 2))
            connection.send(b"q" * (SMALL - SMALL // 2))
        else:
            connection.send(b"q" * SMALL)
        connection.recv(SMALL)

    result = repeat(plan, once, 0.005)
    connection.close()
    return result


def udp_flood(lab: Lab, plan: Plan) -> Truth:
    cpu = cpu_of_victim()
    net = Net(lab)
    steer = f"echo {1 << cpu:x} > /sys/class/net/cable/queues/rx-0/rps_cpus"
    try:
        run("ip", "netns", "exec", net.names[1], "sh", "-c", steer)
    except UnavailableError as error:
        raise UnavailableError("cannot steer packets to a CPU") from error
    plan.begin()
    victim = act(lab, plan, "work", f"cpu={cpu}", "work_us=5000", "pause_us=5000")
    words = ["cpu=0", f"host={THERE}", f"rate={plan.whole(60, 90) * 1000}"]
    flooder = act(lab, plan, "flood", *words, prefix=("ip", "netns", "exec", net.names[0]))
    result = flooder.result()
    culprit = Culprit("process", "flooder", ["irq_stolen"], flooder.pid)
    culprit.near = ["NET_RX*", "net_rx*", f"ksoftirqd/{cpu}"]
    culprit.objects = [Thing("irq", "NET_RX"), Thing("irq", "net_rx"), Thing("cpu", str(cpu))]
    faults = [(begin, end) for begin, end in result["flood"]["spans"]]
    truth = truth_of(plan, faults, culprit, victim.result(), victim.pid)
    truth.notes["sent"] = result["sent"]
    return truth
