"""Lists every test of the repository by name, from its sources, and compares two such lists.

    python3 scripts/test_names.py list                    print all names, one per line
    python3 scripts/test_names.py compare BEFORE MOVED    fail if a name of BEFORE is missing

A name is `rust CRATE FUNCTION`, `python FILE FUNCTION` or `web FILE TITLE`, without modules and
executables, because these change without changing the test. MOVED has lines `OLD -> NEW` for tests
that were merged into another one or moved to another crate, and `rust OLD_CRATE * -> rust NEW_CRATE
*` for all other tests of a crate.
"""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
RUST = re.compile(r"#\[test\]\s*(?:#\[[^\]]*\]\s*|//[^\n]*\n\s*)*(?:pub(?:\([a-z]+\))? )?fn (\w+)")
PYTHON = re.compile(r"^ *(?:async )?def (test_\w+)", re.M)
WEB = re.compile(r"""^\s*(?:await )?(?:test|it|t\.test)\(\s*(["'`])(.*?)\1""", re.M | re.S)


def names():
    for path in sorted([*ROOT.glob("crates/*/**/*.rs"), *ROOT.glob("xtask/**/*.rs")]):
        relative = path.relative_to(ROOT).parts
        crate = relative[1] if relative[0] == "crates" else relative[0]
        for found in RUST.finditer(path.read_text()):
            yield f"rust {crate} {found[1]}"
    for path in sorted([*ROOT.glob("python/tests/*.py"), *ROOT.glob("crates/*/tests/**/*.py")]):
        for found in PYTHON.finditer(path.read_text()):
            yield f"python {path.name} {found[1]}"
    for path in sorted([*ROOT.glob("web/tests/**/*.test.ts"), *ROOT.glob("web/tests/**/*.test.mjs")]):
        for found in WEB.finditer(path.read_text()):
            yield f"web {path.name} {' '.join(found[2].split())}"


def compare(before_path, moved_path):
    before = collections.Counter(pathlib.Path(before_path).read_text().splitlines())
    now = collections.Counter(names())
    moves = [
        tuple(part.strip() for part in line.split("->"))
        for line in pathlib.Path(moved_path).read_text().splitlines()
        if "->" in line and not line.startswith("#")
    ]
    total = sum(before.values())
    for old, new in moves:
        if not old.endswith("*"):
            before[new] += before.pop(old, 0)
    lost = before - now
    # The tests of a divided crate may be in any of its parts.
    added = now - before
    for old, new in moves:
        if not old.endswith("*"):
            continue
        for name in [name for name in lost if name.startswith(old[:-1])]:
            there = new[:-1] + name[len(old) - 1 :]
            found = min(lost[name], added[there])
            lost[name] -= found
            added[there] -= found
    lost = +lost
    for name, count in sorted(lost.items()):
        print(f"lost: {name}" + (f" ({count} times)" if count > 1 else ""))
    print(f"{total} tests before, {sum(now.values())} now, {sum(lost.values())} lost")
    return 1 if lost else 0


if sys.argv[1:] == ["list"]:
    print("\n".join(names()))
elif len(sys.argv) == 4 and sys.argv[1] == "compare":
    sys.exit(compare(*sys.argv[2:]))
else:
    sys.exit(__doc__)
