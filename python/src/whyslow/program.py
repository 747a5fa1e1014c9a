"""The program `whyslow`: where it is, and running it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache

from .errors import ProgramError, QuestionError

#: Names the program; without it, PATH is searched.
VARIABLE = "WHYSLOW_BINARY"

_COMMAND = re.compile(r"  ([a-z][a-z0-9-]*)(?:  +(.*))?")
_HINT = re.compile(r"(?:hint|tip): (.*)", re.DOTALL)


def find() -> str:
    """Path of the program.

    Raises:
        ProgramError: there is none; tells how to get one.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if os.path.isfile(named) and os.access(named, os.X_OK):
            return os.path.abspath(named)
        raise ProgramError(f"{VARIABLE} names `{named}`, which is not a program")
    found = shutil.which("whyslow")
    if found is None:
        raise ProgramError(
            "answers come from the program `whyslow`, which is not in PATH",
            hint="in a clone of whyslow: cargo install --locked --path crates/whyslow, "
            f"or name a program in {VARIABLE}",
        )
    return os.path.abspath(found)


def run(words: Sequence[str | bytes], folder: str | bytes | None = None) -> bytes:
    """Standard output of the program.

    Args:
        words: arguments, each as it is: no shell reads them.
        folder: to start it in.

    Raises:
        QuestionError: it refused; message, causes and hint are its own.
        ProgramError: it was not found or did not start.
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
        raise QuestionError(f"the program cannot be given this: {error}") from None
    except OSError as error:
        raise ProgramError(f"failed to start `{program}`", causes=[str(error)]) from None
    if done.returncode == 0:
        return done.stdout
    said = done.stderr.decode("utf-8", "replace")
    if done.returncode < 0:
        raise ProgramError(f"`{program}` was ended by signal {-done.returncode}", causes=[said])
    raise refusal(said, done.returncode)


def _environment() -> dict[str, str]:
    """Without colours in messages and help: notebooks ask every program for them."""
    forced = ("CLICOLOR_FORCE", "FORCE_COLOR")
    kept = {name: value for name, value in os.environ.items() if name not in forced}
    return {**kept, "NO_COLOR": "1"}


def refusal(said: str, exit_code: int) -> QuestionError:
    """The error that the program told: `error:`, causes, `hint:` (or `tip:` of its parser)."""
    message, causes, hint = "", [], None
    for block in re.split(r"\n\s*\n", said.strip()):
        found = _HINT.match(block.strip())
        if found:
            hint = hint or found[1].strip()
        elif not message and "error: " in block:
            first, *causes = re.split(r"\n  cause: ", block[block.index("error: ") + 7 :])
            message = first.strip()
    return QuestionError(
        message or said.strip() or f"the program ended with {exit_code}",
        causes=causes,
        hint=hint,
        exit_code=exit_code,
    )


def commands(*words: str) -> dict[str, str]:
    """Commands below these words with what each is about; none where they end a command.

    Raises:
        QuestionError: the program does not know the words.
        ProgramError: there is no program.
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
