"""Finds and runs the program `whyslow`."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache

from .errors import ProgramError, QueryError

#: Path of the program; if unset, PATH is searched.
VARIABLE = "WHYSLOW_BINARY"

_COMMAND = re.compile(r"  ([a-z][a-z0-9-]*)(?:  +(.*))?")
_HINT = re.compile(r"(?:hint|tip): (.*)", re.DOTALL)


def find() -> str:
    """Path of the program.

    Raises:
        ProgramError: not found; the hint shows how to install it.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if os.path.isfile(named) and os.access(named, os.X_OK):
            return os.path.abspath(named)
        raise ProgramError(f"{VARIABLE}: `{named}` is not an executable file")
    found = shutil.which("whyslow")
    if found is None:
        raise ProgramError(
            "cannot run `whyslow`: not found in PATH",
            hint="in a clone, run: cargo install --locked --path crates/whyslow; "
            f"or set {VARIABLE}",
        )
    return os.path.abspath(found)


def run(words: Sequence[str | bytes], folder: str | bytes | None = None) -> bytes:
    """Standard output of the program.

    Args:
        words: arguments, passed without a shell.
        folder: working directory.

    Raises:
        QueryError: the program failed; message, causes and hint come from it.
        ProgramError: not found, or failed to start.
    """
    program = find()
    try:
        done = subprocess.run(
            [program, *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            cwd=folder,
            env=_environment(),
        )
    except ValueError as error:
        raise QueryError(f"cannot pass the arguments to the program: {error}") from None
    except OSError as error:
        raise ProgramError(f"failed to start `{program}`", causes=[str(error)]) from None
    if done.returncode == 0:
        return done.stdout
    message = done.stderr.decode("utf-8", "replace")
    if done.returncode < 0:
        raise ProgramError(f"`{program}` was killed by signal {-done.returncode}", causes=[message])
    raise refusal(message, done.returncode)


def _environment() -> dict[str, str]:
    """Disables colours in messages and help: notebooks force them for every program."""
    forced = ("CLICOLOR_FORCE", "FORCE_COLOR")
    kept = {name: value for name, value in os.environ.items() if name not in forced}
    return {**kept, "NO_COLOR": "1"}


def refusal(output: str, exit_code: int) -> QueryError:
    """Parses an error of the program: `error:`, causes, `hint:` (or `tip:` of its parser)."""
    message, causes, hint = "", [], None
    for block in re.split(r"\n\s*\n", output.strip()):
        found = _HINT.match(block.strip())
        if found:
            hint = hint or found[1].strip()
        elif not message and "error: " in block:
            first, *causes = re.split(r"\n  cause: ", block[block.index("error: ") + 7 :])
            message = first.strip()
    return QueryError(
        message or output.strip() or f"the program exited with status {exit_code}",
        causes=causes,
        hint=hint,
        exit_code=exit_code,
    )


def commands(*words: str) -> dict[str, str]:
    """Subcommands of a command with their descriptions; empty for a command without any.

    Raises:
        QueryError: the program does not have the command.
        ProgramError: the program was not found.
    """
    program = find()
    return dict(_commands(program, os.stat(program).st_mtime_ns, words))


@lru_cache(maxsize=64)
def _commands(
    program: str, _changed_ns: int, words: tuple[str, ...]
) -> tuple[tuple[str, str], ...]:
    lines = run([*words, "--help"]).decode("utf-8", "replace").splitlines()
    if "Commands:" not in lines:
        return ()
    found = []
    for line in lines[lines.index("Commands:") + 1 :]:
        if not line:
            break
        command = _COMMAND.fullmatch(line)
        if command:
            found.append((command[1], command[2] or ""))
    return tuple(found)
