"""Records a small load on another kernel, in an emulated machine, and compares what it holds with
what the load did.

    python3 benches/eval/kernels.py target/release/whyslow [KERNEL.deb …]

Without a package the kernel of Debian stable for clouds is fetched by apt. Needs qemu-system-x86,
busybox-static, cpio and e2fsprogs; the emulation needs neither KVM nor root.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BOOT_SECONDS_MAX = 900
# Of busybox, so that everything but the kernel is in three files.
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
# The calendar goes an hour on and back again while files are written.
cat >calendar <<'END'
dd if=/dev/zero of=before bs=512 count=101 2>/dev/null; sleep 3
date -s @$(($(date +%s) + 3600)) >/dev/null; sleep 3
dd if=/dev/zero of=hour-on bs=512 count=103 2>/dev/null; sleep 3
date -s @$(($(date +%s) - 3600)) >/dev/null; sleep 3
dd if=/dev/zero of=after bs=512 count=107 2>/dev/null
END
echo; echo "told doctor"; whyslow doctor --json
echo "told record"; whyslow --no-progress record -o rec.wsl --full -- sh load 2>&1
echo "told files"; whyslow files top rec.wsl --json -n 0
echo "told calls"; whyslow syscalls stats rec.wsl --by name --json -n 0
echo "told blocks"; whyslow block top rec.wsl --op write --json -n 0
echo "told commits"; whyslow fs log rec.wsl --op journal_commit --json -n 0
echo "told work"; whyslow work log rec.wsl -c dd --json -n 0
rm -rf rec.wsl; whyslow -q --no-progress record -o rec.wsl -- sh calendar 2>&1
echo "told calendar_info"; whyslow info rec.wsl --json
echo "told calendar_files"; whyslow files top rec.wsl --json -n 0
echo "told calendar_sleeps"; whyslow syscalls log rec.wsl --name nanosleep,clock_nanosleep --min 2s --json -n 0
mount -t tracefs tracefs /sys/kernel/tracing
for form in raw classic; do
    refuse=typed; [ $form = raw ] || refuse=typed,raw
    rm -rf rec.wsl; whyslow -q --no-progress record -o rec.wsl --what syscalls,sched,block --refuse $refuse -- sh load 2>&1
    echo "told files_$form"; whyslow files top rec.wsl --json -n 0
    echo "told blocks_$form"; whyslow block top rec.wsl --op write --json -n 0
    echo "told states_$form"; whyslow states log rec.wsl -c dd --op uninterruptible --json -n 0
done
echo "told stop"; poweroff -f
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


def told(output):
    parts = re.split(r"^told (\w+)\n", output, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def answer(text):
    """The kernel may write a line of its own between."""
    begin, end = text.index("{"), text.rindex("}")
    return json.loads("\n".join(line for line in text[begin : end + 1].splitlines() if not line.startswith("[ ")))


def rows(text):
    return answer(text)["tables"][0]["rows"]


def compare_calendar(parts, expect):
    """Nothing may become an hour long, or be lost, because somebody set the calendar."""
    tables = {table["name"]: table for table in answer(parts["calendar_info"])["tables"]}
    length = tables["recording"]["facts"]["length_ns"] / 1e9
    expect("length of a recording whose calendar was set", 12 <= length < BOOT_SECONDS_MAX, True)
    stepped = [row["count"] for row in tables["anomalies"]["rows"] if row["name"] == "CLOCK_STEPPED"]
    expect("times the calendar was set", stepped, [2])
    files = {row["file"]: row for row in rows(parts["calendar_files"])}
    for name, writes in [("before", 101), ("hour-on", 103), ("after", 107)]:
        row = files.get(f"/tmp/{name}", {})
        expect(f"writes of {name}", (row.get("writes"), row.get("write_bytes")), (writes, writes * 512))
    sleeps = [row["dur_ns"] for row in rows(parts["calendar_sleeps"])]
    expect("sleeps", len(sleeps), 4)
    expect("their lengths", all(3e9 <= dur < 60e9 for dur in sleeps), True)


def compare(parts, kernel):
    """What does not fit, in words; of a kernel of that version."""
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
    expect("work of the loop device for dd", len(loops) > 0, True)
    compare_calendar(parts, expect)
    # busybox runs some of its commands without execve: the mount, mkfs.ext4 and cat are programs.
    calls = {row["name"]: row["count"] for row in rows(parts["calls"])}
    if calls.get("execve", 0) < 53 or calls.get("fsync", 0) < 7:
        wrong.append(f"calls: {calls.get('execve')} execve, {calls.get('fsync')} fsync")
    expect("commits of the journal", len(rows(parts["commits"])) >= 7, True)
    lacking = [row for row in rows(parts["doctor"]) if row["state"] != "ok"]
    # The kernel for clouds has no XFS until its module is loaded.
    unexpected = [row for row in lacking if row["check"] in ("syscalls", "sched", "block", "irq", "mem", "work", "tcp", "net", "pages")]
    # Verifiers before 6.2 refuse that one program of the topic, and no other.
    if kernel < (6, 2):
        pages = [row for row in unexpected if row["check"] == "pages"]
        programs = [re.findall(r"\((\w+): ", row["found"]) for row in pages]
        expect("programs of pages that do not load", programs, [["on_cache_add"]])
        unexpected = [row for row in unexpected if row["check"] != "pages"]
    expect("topics that do not load", unexpected, [])
    for row in lacking:
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
                parts = told(output)
                if "stop" not in parts:
                    print(output[-3000:])
                    wrong = ["it did not come to its end"]
                else:
                    print("  " + "\n  ".join(parts["record"].strip().splitlines()))
                    version = re.search(r"linux-image-(\d+)\.(\d+)", Path(package).name)
                    wrong = compare(parts, tuple(map(int, version.groups())) if version else (0, 0))
                print("  " + ("\n  ".join(wrong) or "everything is there"))
                failed |= bool(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
