"""Records a small load on another kernel in an emulated machine, and compares the recording with the
load's operations.

    python3 benches/eval/kernels.py target/release/whyslow [KERNEL.deb …]

Without KERNEL.deb, apt downloads Debian's linux-image-cloud-amd64. Needs qemu-system-x86,
busybox-static, cpio and e2fsprogs, but neither KVM nor root.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BOOT_SECONDS_MAX = 900
# Uses busybox, so that the user space consists of three programs.
INIT = r"""#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/tmp TERM=dumb PAGER=cat NO_COLOR=1
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev; mount -t tmpfs tmp /tmp
for module in crc16 crc32c_generic libcrc32c mbcache jbd2 ext4 loop; do
    [ -f /modules/$module.ko ] && insmod /modules/$module.ko
done
cd /tmp; exec </dev/null
cat >load <<'END'
truncate -s 64M disk; mkfs.ext4 -q disk; mkdir m; losetup /dev/loop0 disk; mount -t ext4 /dev/loop0 m; cd m
for i in 1 2 3 4 5 6 7; do dd if=/dev/zero of=f$i bs=4096 count=13 conv=fsync 2>/dev/null; done
dd if=/dev/zero of=direct bs=8192 count=97 oflag=direct 2>/dev/null
i=0; while [ $i -lt 53 ]; do /bin/busybox cat /etc/hostname >/dev/null; i=$((i+1)); done
cd ..; umount m; losetup -d /dev/loop0; rm disk; rmdir m
END
# The wall clock is set forward by an hour and back while files are written.
cat >calendar <<'END'
dd if=/dev/zero of=before bs=512 count=101 2>/dev/null; sleep 3
date -s @$(($(date +%s) + 3600)) >/dev/null; sleep 3
dd if=/dev/zero of=hour-on bs=512 count=103 2>/dev/null; sleep 3
date -s @$(($(date +%s) - 3600)) >/dev/null; sleep 3
dd if=/dev/zero of=after bs=512 count=107 2>/dev/null
END
echo; echo "section doctor"; whyslow doctor --json
echo "section record"; whyslow --no-progress record -o rec.wsl --full -- sh load 2>&1
echo "section files"; whyslow files top rec.wsl --json -n 0
echo "section calls"; whyslow syscalls stats rec.wsl --by name --json -n 0
echo "section blocks"; whyslow block top rec.wsl --op write --json -n 0
echo "section commits"; whyslow fs log rec.wsl --op journal_commit --json -n 0
echo "section work"; whyslow work log rec.wsl -c dd --json -n 0
rm -rf rec.wsl; whyslow -q --no-progress record -o rec.wsl -- sh calendar 2>&1
echo "section calendar_info"; whyslow info rec.wsl --json
echo "section calendar_files"; whyslow files top rec.wsl --json -n 0
echo "section calendar_sleeps"; whyslow syscalls log rec.wsl --name nanosleep,clock_nanosleep --min 2s --json -n 0
mount -t tracefs tracefs /sys/kernel/tracing
for form in raw classic; do
    refuse=typed; [ $form = raw ] || refuse=typed,raw
    rm -rf rec.wsl; whyslow -q --no-progress record -o rec.wsl --what syscalls,sched,block --refuse $refuse -- sh load 2>&1
    echo "section files_$form"; whyslow files top rec.wsl --json -n 0
    echo "section blocks_$form"; whyslow block top rec.wsl --op write --json -n 0
    echo "section states_$form"; whyslow states log rec.wsl -c dd --op uninterruptible --json -n 0
done
echo "section stop"; poweroff -f
"""


def fetch(folder):
    listed = subprocess.run(["apt-cache", "depends", "linux-image-cloud-amd64"], capture_output=True, text=True, check=True)
    package = re.search(r"Depends: (linux-image-\S+)", listed.stdout).group(1)
    subprocess.run(["apt-get", "download", "-q", package], cwd=folder, check=True, capture_output=True)
    return next(Path(folder).glob("*.deb"))


def libraries(program):
    return re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout)


def put(root, source, target=None):
    target = root / (target or str(source).lstrip("/"))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(Path(source).read_bytes())
    target.chmod(0o755)


def make_root(root, whyslow, kernel):
    for folder in ["bin", "proc", "sys", "dev", "tmp", "etc", "modules"]:
        (root / folder).mkdir(parents=True)
    (root / "etc/hostname").write_text("emulated\n")
    put(root, "/bin/busybox", "bin/busybox")
    for name, program in [("whyslow", whyslow), ("mkfs.ext4", "/sbin/mkfs.ext4")]:
        put(root, program, f"bin/{name}")
        for library in libraries(program):
            put(root, library)
    for module in ["crc16", "crc32c_generic", "libcrc32c", "mbcache", "jbd2", "ext4", "loop"]:
        for found in kernel.glob(f"lib/modules/*/kernel/**/{module}.ko"):
            put(root, found, f"modules/{module}.ko")
    (root / "init").write_text(INIT)
    (root / "init").chmod(0o755)


def boot(work, kernel):
    image = next(kernel.glob("boot/vmlinuz-*"))
    pack = "find . | cpio -o -H newc 2>/dev/null | gzip -1 >../initrd.gz"
    subprocess.run(["sh", "-c", pack], cwd=work / "root", check=True)
    command = [
        "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048",
        "-kernel", image, "-initrd", work / "initrd.gz", "-append", "console=ttyS0 quiet panic=-1",
        "-nographic", "-no-reboot", "-nic", "none",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, timeout=BOOT_SECONDS_MAX, stdin=subprocess.DEVNULL)
    return done.stdout.decode(errors="replace").replace("\r", "")


def sections(output):
    parts = re.split(r"^section (\w+)\n", output, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def answer(text):
    """Parses JSON, ignoring lines that the kernel printed in between."""
    begin, end = text.index("{"), text.rindex("}")
    return json.loads("\n".join(line for line in text[begin : end + 1].splitlines() if not line.startswith("[ ")))


def rows(text):
    return answer(text)["tables"][0]["rows"]


def compare_calendar(parts, expect):
    """Setting the wall clock must not stretch or lose anything."""
    tables = {table["name"]: table for table in answer(parts["calendar_info"])["tables"]}
    length = tables["recording"]["facts"]["length_ns"] / 1e9
    expect("length of a recording with clock steps is plausible", 12 <= length < BOOT_SECONDS_MAX, True)
    stepped = [row["count"] for row in tables["anomalies"]["rows"] if row["name"] == "CLOCK_STEPPED"]
    expect("clock steps", stepped, [2])
    files = {row["file"]: row for row in rows(parts["calendar_files"])}
    for name, writes in [("before", 101), ("hour-on", 103), ("after", 107)]:
        row = files.get(f"/tmp/{name}", {})
        expect(f"writes of {name}", (row.get("writes"), row.get("write_bytes")), (writes, writes * 512))
    sleeps = [row["dur_ns"] for row in rows(parts["calendar_sleeps"])]
    expect("sleeps", len(sleeps), 4)
    expect("durations of sleeps are plausible", all(3e9 <= dur < 60e9 for dur in sleeps), True)


def compare(parts, kernel):
    """Differences as texts, for a kernel of this version."""
    wrong = []

    def expect(what, found, wanted):
        if found != wanted:
            wrong.append(f"{what}: {found} instead of {wanted}")

    for form in ["", "_raw", "_classic"]:
        files = {row["file"]: row for row in rows(parts["files" + form])}
        for name in [f"/tmp/m/f{number}" for number in range(1, 8)]:
            row = files.get(name, {})
            expect(name + form, (row.get("writes"), row.get("write_bytes")), (13, 13 * 4096))
        row = files.get("/tmp/m/direct", {})
        expect("direct writes" + form, (row.get("writes"), row.get("write_bytes")), (97, 97 * 8192))
        direct = [row for row in rows(parts["blocks" + form]) if row["bytes"] == 8192 and row["comm"] == "dd"]
        expect("direct requests" + form, len(direct) >= 97, True)
    for form in ["raw", "classic"]:
        expect(f"waits of dd, {form}", len(rows(parts[f"states_{form}"])) >= 97, True)
    loops = [row for row in rows(parts["work"]) if row["workqueue"] == "loop0"]
    expect("workqueue items of the loop device for dd", len(loops) > 0, True)
    compare_calendar(parts, expect)
    # busybox runs some commands without execve; mount, mkfs.ext4 and cat are programs.
    calls = {row["name"]: row["count"] for row in rows(parts["calls"])}
    if calls.get("execve", 0) < 53 or calls.get("fsync", 0) < 7:
        wrong.append(f"calls: {calls.get('execve')} execve, {calls.get('fsync')} fsync")
    expect("at least 7 journal commits", len(rows(parts["commits"])) >= 7, True)
    missing = [row for row in rows(parts["doctor"]) if row["state"] != "ok"]
    # The cloud kernel has no XFS until its module is loaded.
    unexpected = [row for row in missing if row["check"] in ("syscalls", "sched", "block", "irq", "mem", "work", "tcp", "net", "pages")]
    # Verifiers before 6.2 reject this program of the topic, and no other.
    if kernel < (6, 2):
        pages = [row for row in unexpected if row["check"] == "pages"]
        programs = [re.findall(r"\((\w+): ", row["found"]) for row in pages]
        expect("programs of pages that do not load", programs, [["on_cache_add"]])
        unexpected = [row for row in unexpected if row["check"] != "pages"]
    expect("topics that do not load", unexpected, [])
    for row in missing:
        print(f"  {row['check']}: {row['found']}")
    return wrong


def main(whyslow, packages):
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for package in packages or [fetch(folder)]:
            with tempfile.TemporaryDirectory() as work:
                work = Path(work)
                subprocess.run(["dpkg-deb", "-x", package, work / "kernel"], check=True)
                make_root(work / "root", whyslow, work / "kernel")
                print(f"{Path(package).name}:", flush=True)
                output = boot(work, work / "kernel")
                parts = sections(output)
                if "stop" not in parts:
                    print(output[-3000:])
                    wrong = ["the machine stopped before the end of its script"]
                else:
                    print("  " + "\n  ".join(parts["record"].strip().splitlines()))
                    version = re.search(r"linux-image-(\d+)\.(\d+)", Path(package).name)
                    wrong = compare(parts, tuple(map(int, version.groups())) if version else (0, 0))
                print("  " + ("\n  ".join(wrong) or "ok"))
                failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
