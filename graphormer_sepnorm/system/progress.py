"""One bar over the phases of a long command, with an estimate of the time that is left."""

import contextlib
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

from tqdm import tqdm

Item = TypeVar("Item")
FORMAT = "{desc} {percentage:3.0f} %|{bar}| {elapsed}, about {remaining} left"
AS_LINES = "GRAPHORMER_SEPNORM_PROGRESS"  # environment variable; if it is set, the bar is written as lines of text
MARK = "@@"  # begins such a line
LINE = f"{MARK}{{desc}}|{{percentage:.0f}}|{{remaining}}\n"


def is_on_page() -> bool:
    """Whether the page shows the command, which has no shell for what a command advises."""
    return bool(os.environ.get(AS_LINES))


@dataclass
class Phases:
    bar: tqdm
    costs: dict[str, float]  # of phases that have not begun
    title: str = ""
    cost: float = 0.0  # of the phase in progress
    end: float = 0.0  # place of the bar at its end

    def begin(self, name: str) -> None:
        """Completes the phase before and begins the named one, which costs nothing when it is begun again."""
        self.advance(1)
        self.cost = self.costs.pop(name, 0.0)
        self.end += self.cost
        self.bar.set_description_str(f"{self.title}{name}")

    def advance(self, share: float) -> None:
        """Moves the bar by a share of the phase, at most to its end."""
        self.bar.update(max(min(self.bar.n + share * self.cost, self.end) - self.bar.n, 0))


CURRENT: ContextVar[Phases | None] = ContextVar("phases", default=None)


@contextlib.contextmanager
def phases(costs: Mapping[str, float], title: str = "") -> Iterator[None]:
    """Context manager: a bar over phases by expected cost, on a terminal or as lines for a program that asks."""
    line, hidden = (LINE, False) if is_on_page() else (FORMAT, None)
    size = shutil.get_terminal_size()  # some terminals say that they have no rows, where tqdm shows nothing
    with tqdm(total=sum(costs.values()), bar_format=line, leave=False, disable=hidden, nrows=size.lines) as bar:
        token = CURRENT.set(Phases(bar, dict(costs), title))
        try:
            yield
        finally:
            CURRENT.reset(token)


def begin(phase: str) -> None:
    if (current := CURRENT.get()) is not None:
        current.begin(phase)


def tracked(items: Iterable[Item], count: int, share: float = 1.0) -> Iterator[Item]:
    """The items, ``count`` of them, which together advance the phase in progress by a share of its cost."""
    for item in items:
        yield item
        if (current := CURRENT.get()) is not None:
            current.advance(share / count)


def say(sentences: Iterable[str]) -> None:
    """Prints sentences to standard error, one per line, above a bar."""
    for sentence in sentences:
        tqdm.write(sentence, sys.stderr)
