"""Records the machine with the default topics, as a user would."""

from __future__ import annotations

import signal
import subprocess
import time
from pathlib import Path

import watchdog
from lab import Lab, UnavailableError

READY_SECONDS, END_SECONDS = 30, 60
# If nothing ends the recorder earlier.
SECONDS_MAX = 60


class Recorder:
    """Entering waits until the recorder is ready. Leaves a spool, which is imported later."""

    def __init__(self, lab: Lab, program: str, output: Path) -> None:
        self._lab, self._program, self._output = lab, program, output
        self._log = output.with_suffix(".log")
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Recorder:
        words = [self._program, "record", "-o", self._output, "--force", "--no-import"]
        words += ["--for", f"{SECONDS_MAX}s"]
        with open(self._log, "w") as log:
            child = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log)
        self._lab.will_undo("process", child.pid, watchdog.start_of(child.pid))
        self._child = child
        deadline = time.monotonic() + READY_SECONDS
        while "recording started" not in self._log.read_text():
            if child.poll() is not None or time.monotonic() > deadline:
                raise UnavailableError(f"cannot record: {self._log.read_text().strip()}")
            time.sleep(0.05)
        return self

    def __exit__(self, *_: object) -> None:
        if self._child is None:
            return
        self._child.send_signal(signal.SIGINT)
        if self._child.wait(END_SECONDS) != 0:
            raise RuntimeError(f"the recorder failed: {self._log.read_text().strip()}")
