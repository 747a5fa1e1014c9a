"""Errors in the form of the program: a message, its causes, and a hint."""

from __future__ import annotations

from collections.abc import Sequence


class WhyslowError(Exception):
    """Base of all errors of this package.

    Attributes:
        message: the error in one sentence.
        causes: underlying errors, the nearest first.
        hint: how to fix it; None if unknown.
    """

    def __init__(self, message: str, *, causes: Sequence[str] = (), hint: str | None = None):
        super().__init__(message)
        self.message = message
        self.causes = tuple(causes)
        self.hint = hint

    def __str__(self) -> str:
        lines = [self.message, *(f"  cause: {cause}" for cause in self.causes)]
        if self.hint is not None:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class RecordingError(WhyslowError):
    """Not a recording, or one that cannot be read: too new, incomplete, damaged."""


class LakeError(WhyslowError):
    """Not a lake, or one that is unreadable or inconsistent."""


class QueryError(WhyslowError):
    """An invalid query, or an incomplete answer.

    Attributes:
        exit_code: exit code of the program; None if it was not run.
    """

    def __init__(
        self,
        message: str,
        *,
        causes: Sequence[str] = (),
        hint: str | None = None,
        exit_code: int | None = None,
    ):
        super().__init__(message, causes=causes, hint=hint)
        self.exit_code = exit_code


class ProgramError(WhyslowError):
    """The program `whyslow` was not found or failed to start."""


class MissingPackageError(WhyslowError, ImportError):
    """An optional Python package is not installed."""
