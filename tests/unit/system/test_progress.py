"""A bar over phases."""

import io

import pytest

from graphormer_sepnorm.system import progress
from graphormer_sepnorm.system.progress import AS_LINES, CURRENT, MARK, begin, phases, say, tracked


@pytest.fixture
def terminal(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Terminal()
    real = progress.tqdm
    monkeypatch.setattr(progress, "tqdm", lambda **options: real(**options | {"file": screen, "mininterval": 0}))
    return screen


def test_a_bar_moves_through_phases_by_their_costs(terminal):
    places = []
    with phases({"reading": 30, "fitting": 10}):
        bar = CURRENT.get().bar
        begin("reading")
        for _ in tracked(range(4), 4, share=0.5):
            places.append(bar.n)
        assert list(tracked("abc", 3, share=0.9)) == ["a", "b", "c"] and bar.n == 30, "never beyond its end"
        begin("fitting")
        places.append(bar.n)
        begin("reading")
        assert bar.n == bar.total == 40
    assert places == [0, 3.75, 7.5, 11.25, 30]
    assert "reading" in terminal.getvalue() and "left" in terminal.getvalue()
    assert CURRENT.get() is None


def test_a_program_reads_phases_as_lines(monkeypatch, capsys):
    monkeypatch.setenv(AS_LINES, "1")
    with phases({"a|b": 1, "c": 3}):
        begin("a|b")
        say(["a sentence"])
        begin("c")
    lines = [line.strip() for line in capsys.readouterr().err.splitlines() if line.strip()]
    assert "a sentence" in lines
    found = [line.removeprefix(MARK).rsplit("|", 2)[:2] for line in lines if line.startswith(MARK)]
    assert [each for place, each in enumerate(found) if each not in found[:place]] == [
        ["", "0"],
        ["a|b", "0"],
        ["c", "25"],
    ]
