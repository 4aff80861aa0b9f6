"""No pattern of the package backtracks: each is tried on long repetitions, within a bound on the processor's time."""

import ast
import importlib
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

import graphormer_sepnorm

PACKAGE = Path(graphormer_sepnorm.__file__).parent
METHODS = {"match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer"}
# Patterns of developers, and those that read texts of this package, may be made as the program runs.
NOT_OF_USERS = {"layers.separate", "runs.zoo", "report.page"}
LENGTH = 6_000
SECONDS = 0.05  # of the processor: twenty times what a linear pattern takes, a fraction of what a quadratic one does
UNITS = [
    *"0aC.,-+= \t\n_'\"()[]<>:|/\\%#*é",
    "0.", "0,", ".000", "a ", "C1", "(C", "[C", "[C]", "[a:1", "<a", " |", "1-", "-C",
]  # fmt: skip
AROUND = [("", ""), ("", "!"), ("-", "x"), ("[", "\n"), ("> <", "0"), ("InChI=", " ")]


def modules() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
        text = path.read_text()
        if "re." in text:
            yield name, ast.parse(text)


def found_patterns() -> Iterator[tuple[str, re.Pattern, str]]:
    """Where a pattern is used, the pattern, and the method that tries it."""
    trees = dict(modules())
    named: dict[str, list[str]] = {}
    for name, tree in trees.items():
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("re.compile("):
                named.setdefault(ast.unparse(node.targets[0]), []).append(name)
    for name, tree in trees.items():
        for call in ast.walk(tree):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in METHODS):
                continue
            owner = ast.unparse(call.func.value).split(".")[-1]
            where = f"{name}:{call.lineno}"
            if owner == "re" and name not in NOT_OF_USERS:
                values = vars(importlib.import_module(f"graphormer_sepnorm.{name}"))
                pattern, *_ = call.args
                yield where, re.compile(eval(ast.unparse(pattern), values)), call.func.attr  # NameError: name it
            homes = named.get(owner, []) if owner != "re" else []
            for home in [name] if name in homes else homes:
                values = vars(importlib.import_module(f"graphormer_sepnorm.{home}"))
                yield where, values[owner], call.func.attr


def stop(number: int, frame: object) -> NoReturn:
    raise TimeoutError


def try_on_repetitions(pattern: re.Pattern, method: str) -> None:
    """Raises TimeoutError for a pattern that backtracks."""
    more = [""] if method in ("sub", "subn") else []
    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        for unit in UNITS:
            for start, end in AROUND:
                text = start + unit * (LENGTH // len(unit)) + end
                signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
                getattr(pattern, method)(*more, text)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


PATTERNS = {(pattern, method): where for where, pattern, method in found_patterns()}


def test_the_patterns_are_found():
    assert len(PATTERNS) > 40


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timer of the processor's time")
@pytest.mark.parametrize(("pattern", "method"), PATTERNS, ids=PATTERNS.values())
def test_no_pattern_backtracks(pattern, method):
    try_on_repetitions(pattern, method)


def test_a_pattern_that_backtracks_is_noticed():
    with pytest.raises(TimeoutError):
        try_on_repetitions(re.compile(r"\d+[.,]?\d*"), "fullmatch")
