"""What is needed next, made by a thread in the meantime."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

DEPTH = 2


def ahead(function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """What ``function`` makes of each item, in order, made by one thread up to ``DEPTH`` results before it is needed.

    An exception of ``function`` is raised where its result is needed.
    """
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(1) as thread:
        for item in items:
            waiting.append(thread.submit(function, item))
            if len(waiting) > DEPTH:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
