"""Lost packets between two network namespaces, and a slow name server."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
from typing import Any, ClassVar

from faults.network import HERE, THERE, Net
from faults.plan import MS, Span, myself, undisturbed
from faults.truth import Culprit, Thing, Truth
from real import http, servers
from real.scenario import Scenario, WaitingPlan

HOST = "db.internal"


class LostPackets(Scenario):
    name = "lost_packets_nginx"
    about = "a page of nginx in another network namespace takes longer, because packets are lost"
    packages: ClassVar[dict[str, str]] = {
        "nginx": "nginx-light",
        "nft": "nftables",
        "ip": "iproute2",
    }
    on: ClassVar[tuple[float, float]] = (2.0, 2.8)

    def setup(self) -> None:
        self.net = Net(self.lab)
        self.net.filter()
        folder = self.lab.folder / "www"
        folder.mkdir()
        (folder / "page").write_bytes(b"p" * 5000)
        file = self.lab.folder / "nginx.conf"
        file.write_text(
            f"daemon off; worker_processes 1; pid {folder}/pid; user root;"
            f"error_log {folder}/error.log; events {{ worker_connections 64; }}"
            f"http {{ access_log off; server {{ listen {THERE}:7000; root {folder}; }} }}"
        )
        place = ["ip", "netns", "exec", self.net.names[1]]
        words = [*place, "nginx", "-c", file, "-e", folder / "error.log"]
        self.nginx = self.stack.start(words)
        time.sleep(1)
        percent = self.plan.whole(4, 9)
        self.rule = f"add rule ip lab in tcp dport 7000 numgen random mod 100 < {percent} drop"

    def load(self) -> None:
        self.victim = self.net.start(
            "browser", 0, http.fetch_anew, self.plan, 7000, "/page", 0.005, THERE
        )

    def begin_fault(self) -> None:
        self.net.nft(self.rule)

    def end_fault(self) -> None:
        self.net.clear()

    def truth(self, faults: list[Span]) -> Truth:
        victim = self.victim.result()
        culprit = Culprit("peer", THERE, ["network_retransmit"])
        culprit.near = [f"{HERE}:*"]
        culprit.middlemen = ["nginx"]
        culprit.objects = [Thing("peer", f"{THERE}:7000")]
        truth = Truth(self.plan, faults, [culprit])
        usual = undisturbed(victim["spans"], faults)
        for begin, end in victim["spans"]:
            lost = end - begin - usual
            # Nothing else takes as long as the minimum retransmission timeout.
            truth.add(victim, "recvfrom", (begin, end), [lost if lost > 180 * MS else 0])
        return truth


def resolve(plan: WaitingPlan, address: str, delay_s: float) -> dict[str, Any]:
    """A name server that waits for its own upstream while the fault is on."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 53))
    server.settimeout(0.1)
    plan.wait()
    late: list[Span] = []
    number = 0
    while not plan.is_over():
        try:
            query, sender = server.recvfrom(512)
        except socket.timeout:
            continue
        number += 1
        if plan.is_on() and number % 3 == 0:
            begin = time.monotonic_ns()
            time.sleep(delay_s)
            late.append((begin, time.monotonic_ns()))
        end = query.index(b"\0", 12) + 5
        head = query[:2] + struct.pack(">HHHHH", 0x8180, 1, 1, 0, 0)
        answer = struct.pack(">HHHIH4B", 0xC00C, 1, 1, 0, 4, 127, 0, 0, 1)
        with contextlib.suppress(OSError):
            server.sendto(head + query[12:end] + answer, sender)
    return {**myself(), "spans": late}


class DnsSlow(Scenario):
    name = "dns_slow"
    about = "a Ruby job looks up a name for each task, and the local name server replies late"
    packages: ClassVar[dict[str, str]] = {"ruby": "ruby"}

    def setup(self) -> None:
        address = f"127.{self.plan.whole(70, 120)}.0.53"
        self.resolver = self.client("resolved", resolve, address, self.plan.pick(0.25, 0.6))
        self.log = self.lab.folder / "lookups.log"
        words = ["ruby", servers.PROGRAMS / "lookups.rb", self.lab.folder / "plan.json", self.log]
        self.job = self.stack.start([*words, HOST], resolver=address)

    def inject(self) -> list[Span]:
        return self.plan.switch(lambda: None, lambda: None)

    def truth(self, faults: list[Span]) -> Truth:
        late = [(begin, end) for begin, end in self.resolver.result()["spans"]]
        self.job.wait(10)
        names = ["dns_lookup", "timer_sleep"]
        culprit = Culprit("process", "resolved", names, self.resolver.pid)
        culprit.objects = [Thing("host", HOST), Thing("any", HOST)]
        victim = {"pid": self.job.pid, "tid": self.job.pid, "comm": "ruby"}
        victim["spans"] = http.spans_of(self.log)
        return self.held(victim, "poll", late, culprit)
