"""A small bug, and how it gets into a file."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutation:
    """One bug.

    Attributes:
        file: of the package, from its folder on.
        old: text that occurs once in the file.
        new: what stands in its place.
        tests: files or names of tests, from the folder ``tests`` on.
        survives: why no test fails; "" where one must.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    survives: str = ""

    def applied(self, text: str) -> str:
        """The file with the bug; raises ValueError unless the place is there once."""
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {self.old!r} {text.count(self.old)} times")
        return text.replace(self.old, self.new)

    def line(self, package: Path) -> int:
        """Where the bug is, counted from 1."""
        before, _, _ = (package / self.file).read_text().partition(self.old)
        return before.count("\n") + 1


def mutations(file: str, tests: str, *edits: tuple[str, ...]) -> tuple[Mutation, ...]:
    """Bugs of one file.

    Args:
        file: as ``Mutation``.
        tests: as ``Mutation``, with spaces between them.
        edits: old and new text, and why the bug survives, if it does.
    """
    return tuple(Mutation(file, old, new, tuple(tests.split()), *rest) for old, new, *rest in edits)


def tests_of(file: str, *names: str) -> str:
    """Some tests of one file, as ``mutations`` takes them."""
    return " ".join(f"{file}::{name}" for name in names)
