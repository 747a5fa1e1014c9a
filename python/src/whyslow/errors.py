"""What can go wrong, told as the program tells it: message, causes, and a hint that mends it."""

from __future__ import annotations

from collections.abc import Sequence


class WhyslowError(Exception):
    """Base of all errors of this package.

    Attributes:
        message: what went wrong, in one sentence.
        causes: what was behind it, the nearest first.
        hint: what helps; None where nothing is known to.
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
    """The folder is no recording, or one that cannot be read: too new, incomplete, damaged."""


class LakeError(WhyslowError):
    """There is no lake there, it cannot be read, or what is in it does not fit together."""


class QuestionError(WhyslowError):
    """A question that cannot be answered as it was asked, or an answer that is incomplete.

    Attributes:
        exit_code: of the program; None where it was not asked.
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
    """The program `whyslow` was not found or could not be started."""


class MissingPackageError(WhyslowError, ImportError):
    """A Python package that only this conversion needs is not installed."""
