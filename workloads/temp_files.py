"""Each request to a small service creates hundreds of temporary files, in another thread.

Afterwards, the files and folders are gone, and the thread that answers requests has written
nothing.
"""

from __future__ import annotations

import os
import queue
import threading
import uuid
from pathlib import Path
from typing import Any

from lab import Lab, name_thread

REQUESTS = 3
FILES = 331
BYTES = 1009


def churn(folder: Path) -> dict[str, Any]:
    """The work of one request."""
    folder.mkdir()
    written = read = 0
    for number in range(FILES):
        path = str(folder / f"{number}.txt")
        fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        written += os.write(fd, b"t" * (BYTES + number))
        os.close(fd)
        fd = os.open(path, os.O_RDONLY)
        read += len(os.read(fd, 4096))
        os.close(fd)
        os.unlink(path)
    folder.rmdir()
    return {"folder": str(folder), "files": FILES, "bytes_written": written, "bytes_read": read}


def serve(folders: list[Path]) -> dict[str, Any]:
    wanted: queue.Queue[Path | None] = queue.Queue()
    done: queue.Queue[dict[str, Any]] = queue.Queue()

    def make_thumbnails() -> None:
        name_thread("thumbnailer")
        while (folder := wanted.get()) is not None:
            done.put(churn(folder))

    worker = threading.Thread(target=make_thumbnails)
    worker.start()
    requests = []
    for folder in folders:
        wanted.put(folder)
        requests.append(done.get())
    wanted.put(None)
    worker.join()
    return {
        "pid": os.getpid(),
        "comm": "webapp",
        "requests": requests,
        "guilty": {"tid": worker.native_id, "comm": "thumbnailer"},
    }


def work(lab: Lab, seconds: float) -> dict[str, Any]:
    del seconds  # takes less than a second
    folders = [Path("/tmp") / str(uuid.uuid4()) for _ in range(REQUESTS)]
    for folder in folders:
        lab.will_undo("folder", str(folder))
    service = lab.start("webapp", serve, folders).result()
    requests = service["requests"]
    return {
        "service": service,
        "files": sum(request["files"] for request in requests),
        "bytes_written": sum(request["bytes_written"] for request in requests),
        "bytes_read": sum(request["bytes_read"] for request in requests),
    }
