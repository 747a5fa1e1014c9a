"""RabbitMQ: a message waits in a queue because its only consumer is busy."""

from __future__ import annotations

import socket
import struct
import time
from pathlib import Path
from typing import Any, ClassVar

from faults.plan import Span, myself, repeat
from faults.truth import Culprit, Thing, Truth
from real.scenario import WaitingPlan
from real.sealed.kit import Served, await_until, dial, disturb
from web.stack import free_port

# (class, method) of AMQP 0-9-1.
START, START_OK, TUNE, TUNE_OK = (10, 10), (10, 11), (10, 30), (10, 31)
OPEN, CHANNEL_OPEN, DECLARE = (10, 40), (20, 10), (50, 10)
CONSUME, PUBLISH, DELIVER = (60, 20), (60, 40), (60, 60)


def short(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()


class Channel:
    """A connection to RabbitMQ with one channel: declares, publishes and consumes."""

    def __init__(self, port: int) -> None:
        self._socket = dial(port)
        self._socket.settimeout(None)
        self._buffer = b""
        self._socket.sendall(b"AMQP\0\0\x09\x01")
        self._await(START)
        login = b"\0guest\0guest"
        answer = struct.pack(">I", 0) + short("PLAIN") + struct.pack(">I", len(login)) + login
        self._send(0, START_OK, answer + short("en_US"))
        self._await(TUNE)
        # One channel, frames of up to 128 KiB, no heartbeats.
        self._send(0, TUNE_OK, struct.pack(">HIH", 1, 131072, 0))
        self._call(0, OPEN, short("/") + b"\0\0")
        self._call(1, CHANNEL_OPEN, b"\0")

    def declare(self, queue: str) -> None:
        self._call(1, DECLARE, b"\0\0" + short(queue) + b"\0" + struct.pack(">I", 0))

    def consume(self, queue: str) -> None:
        """Messages need no acknowledgement."""
        self._call(1, CONSUME, b"\0\0" + short(queue) + b"\0\x02" + struct.pack(">I", 0))

    def publish(self, queue: str, body: bytes) -> None:
        method = struct.pack(">HH", *PUBLISH) + b"\0\0" + b"\0" + short(queue) + b"\0"
        header = struct.pack(">HHQH", 60, 0, len(body), 0)
        frames = [frame(1, 1, method), frame(2, 1, header), frame(3, 1, body)]
        self._socket.sendall(b"".join(frames))

    def receive(self) -> bytes:
        """The body of the next message, which has one frame."""
        self._await(DELIVER)
        self._next()
        return self._next()[1]

    def _call(self, channel: int, method: tuple[int, int], words: bytes) -> None:
        self._send(channel, method, words)
        self._await((method[0], method[1] + 1))

    def _send(self, channel: int, method: tuple[int, int], words: bytes) -> None:
        self._socket.sendall(frame(1, channel, struct.pack(">HH", *method) + words))

    def _await(self, method: tuple[int, int]) -> None:
        kind, payload = self._next()
        if kind != 1 or struct.unpack(">HH", payload[:4]) != method:
            raise RuntimeError(f"RabbitMQ answered {payload!r}, not {method}")

    def _next(self) -> tuple[int, bytes]:
        head = self._read(7)
        kind, _, size = struct.unpack(">BHI", head)
        return kind, self._read(size + 1)[:-1]

    def _read(self, size: int) -> bytes:
        while len(self._buffer) < size:
            part = self._socket.recv(65536)
            if not part:
                raise RuntimeError("RabbitMQ closed the connection")
            self._buffer += part
        part, self._buffer = self._buffer[:size], self._buffer[size:]
        return part


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


def work(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """The only consumer: resizes one picture after another; the spans of large ones."""
    channel = Channel(port)
    for queue in ("jobs", "gallery", "importer"):
        channel.declare(queue)
    channel.consume("jobs")
    spans = []
    while (job := channel.receive().split())[0] != b"end":
        owner, rounds = job[0].decode(), int(job[1])
        begin = time.monotonic_ns()
        for _ in range(rounds):
            sum(range(10_000))
        if rounds > 1:
            spans.append((begin, time.monotonic_ns()))
        channel.publish(owner, b"done")
    return {**myself(), "spans": spans}


def submit(plan: WaitingPlan, port: int) -> dict[str, Any]:
    """The victim: sends small jobs and waits for the result of each."""
    channel = ready(port, "gallery")

    def once() -> None:
        channel.publish("jobs", b"gallery 1")
        channel.receive()

    once()
    plan.wait()
    result = repeat(plan, once, 0.012)
    channel.publish("jobs", b"end")
    return result


def submit_large(plan: WaitingPlan, port: int, rounds: int) -> dict[str, Any]:
    channel = ready(port, "importer")

    def act() -> None:
        channel.publish("jobs", b"importer %d" % rounds)
        channel.receive()

    return disturb(plan, act, 0.15)


def ready(port: int, queue: str) -> Channel:
    channel = Channel(port)
    channel.declare(queue)
    channel.declare("jobs")
    channel.consume(queue)
    return channel


class RabbitMQ(Served):
    """A private broker with its own daemon for names."""

    packages: ClassVar[dict[str, str]] = {
        "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server": "rabbitmq-server",
        "epmd": "erlang-base",
    }

    def start_broker(self) -> int:
        names, port, distribution = free_port(), free_port(), free_port()
        folder = self.lab.folder
        values = {
            # Names of Erlang nodes; a daemon that outlives the broker would be started otherwise.
            "ERL_EPMD_PORT": str(names),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "HOME": str(folder),
            "RABBITMQ_NODENAME": "lab@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(distribution),
            "RABBITMQ_BASE": str(folder),
            "RABBITMQ_LOG_BASE": str(folder / "rabbit-log"),
            "RABBITMQ_LOGS": "-",
            "RABBITMQ_MNESIA_BASE": str(folder / "rabbit-data"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "no-plugins"),
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbit.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(folder / "no-rabbit-env.conf"),
            "RABBITMQ_FEATURE_FLAGS_FILE": str(folder / "feature-flags"),
        }
        (folder / "rabbit.conf").write_text("loopback_users = none\n")
        (folder / "no-plugins").write_text("[].\n")
        environment = self.environment(**values)
        self.serve("epmd", ["epmd", "-port", names, "-address", "127.0.0.1"], names)
        scripts = "/usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin/rabbitmq-server"
        script = sorted(Path("/").glob(scripts[1:]))[-1]
        self.serve("RabbitMQ", [script], port, env=environment)
        await_until(lambda: is_open(port), "RabbitMQ")
        return port


class RabbitConsumer(RabbitMQ):
    name = "rabbitmq_consumer"
    about = "a job waits in a queue of RabbitMQ while the only consumer resizes a large picture"

    def setup(self) -> None:
        port = self.start_broker()
        rounds = self.plan.whole(1500, 3500)
        self.worker = self.client("resizer", work, port)
        self.victim = self.client("gallery", submit, port)
        self.other = self.client("importer", submit_large, port, rounds)

    def truth(self, faults: list[Span]) -> Truth:
        del faults
        victim, other, worker = self.victim.result(), self.other.result(), self.worker.result()
        culprit = Culprit("process", "resizer", ["cpu_running"], worker["pid"])
        culprit.also, culprit.middlemen = [other["pid"]], ["beam.smp", "erts_*"]
        culprit.objects = [Thing("any", "jobs")]
        return self.held(victim, "recvfrom", worker["spans"], culprit)


def is_open(port: int) -> bool:
    try:
        Channel(port)
    except (RuntimeError, OSError, socket.timeout):
        return False
    return True
