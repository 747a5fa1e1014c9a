"""Makes the files of fixtures/blktrace: a blktrace of two disks of an emulated machine.

    python3 workloads/tracing/blktrace.py FOLDER [KERNEL.deb]

Many kernels do not let blktrace open its channels (lockdown, containers); an emulated one does.
Without KERNEL.deb, apt downloads Debian's linux-image-cloud-amd64. Needs blktrace,
qemu-system-x86, busybox-static and cpio, but neither KVM nor root.
"""

import base64
import io
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches/eval"))
import kernels

MODULES = ["loop"]
# Outputs of blkparse: the default, with durations, and in a custom format.
PRINTED = {
    "loops": ["-i", "loop0", "-i", "loop1"],
    "times": ["-t", "-i", "loop1"],
    "own": ["-i", "loop1", "-f", "%T.%t %D %p %a %d %S + %n [%C]\n"],
}
# One disk has a partition, so that its requests are remapped.
INIT = r"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t debugfs debug /sys/kernel/debug
insmod /modules/loop.ko max_part=8
cd /tmp; exec </dev/null
truncate -s 32M one; truncate -s 32M two; dd if=/etc/partitions of=one conv=notrunc 2>/dev/null
losetup /dev/loop0 one; losetup /dev/loop1 two; blockdev --rereadpt /dev/loop0
mkdir trace
blktrace -d /dev/loop0 -d /dev/loop1 -D trace >/dev/null 2>output &
tracer=$!
sleep 3
dd if=/dev/zero of=/dev/loop0p1 bs=64k count=6 conv=fsync 2>/dev/null &
dd if=/dev/zero of=/dev/loop1 bs=4k count=16 oflag=direct 2>/dev/null
wait $!
echo 3 >/proc/sys/vm/drop_caches
dd if=/dev/loop1 of=/dev/null bs=2M count=3 iflag=direct 2>/dev/null
dd if=/dev/loop0p1 of=/dev/null bs=4k count=200 2>/dev/null
kill -INT $tracer; wait $tracer
echo; cat output
echo "section files"; tar -c -f - trace | gzip | base64
echo "section stop"; poweroff -f
"""


def partitions():
    """A table with one partition, from sector 2048 on, of 40960 sectors."""
    entry = (
        bytes([0, 0, 0, 0, 0x83, 0, 0, 0])
        + (2048).to_bytes(4, "little")
        + (40960).to_bytes(4, "little")
    )
    return bytes(446) + entry + bytes(48) + b"\x55\xaa"


def make_root(root, kernel):
    for folder in ["bin", "proc", "sys", "dev", "tmp", "etc", "modules"]:
        (root / folder).mkdir(parents=True)
    kernels.put(root, "/bin/busybox", "bin/busybox")
    kernels.put(root, "/usr/sbin/blktrace", "bin/blktrace")
    for library in kernels.libraries("/usr/sbin/blktrace"):
        kernels.put(root, library)
    for module in MODULES:
        for found in kernel.glob(f"lib/modules/*/kernel/**/{module}.ko"):
            kernels.put(root, found, f"modules/{module}.ko")
    (root / "etc/partitions").write_bytes(partitions())
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)


def main(folder, package=None):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        package = package or kernels.fetch(work)
        subprocess.run(["dpkg-deb", "-x", package, work / "kernel"], check=True)
        make_root(work / "root", work / "kernel")
        output = kernels.boot(work, work / "kernel")
    parts = kernels.sections(output)
    if "stop" not in parts:
        sys.exit(f"error: the machine stopped before the end of its script:\n{output[-3000:]}")
    packed = re.sub(
        r"[^A-Za-z0-9+/=]",
        "",
        "".join(line for line in parts["files"].splitlines() if not line.startswith("[")),
    )
    with tarfile.open(fileobj=io.BytesIO(base64.b64decode(packed)), mode="r:gz") as files:
        for member in files.getmembers():
            if member.isfile():
                (folder / Path(member.name).name).write_bytes(files.extractfile(member).read())
    for name, options in PRINTED.items():
        printed = subprocess.run(
            ["blkparse", "-q", *options], cwd=folder, capture_output=True, check=True
        )
        (folder / f"{name}.blkparse.txt").write_bytes(printed.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
