import io
import json
import sys

import pytest

from graphormer_sepnorm.interfaces import cli


@pytest.fixture
def command(monkeypatch, capsys):
    """Runs a command in this process; gives its exit code, the JSON that it printed and its messages."""

    def run(*arguments) -> tuple[int, dict | None, str]:
        monkeypatch.setattr(sys, "argv", ["graphormer-sepnorm", *map(str, arguments)])
        capsys.readouterr()  # what fixtures printed before
        with pytest.raises(SystemExit) as end:
            cli.main()
        printed = capsys.readouterr()
        return end.value.code or 0, json.loads(printed.out or "null"), printed.err

    return run


@pytest.fixture
def blank_pictures(monkeypatch):
    """Figures are put together, but nothing is painted; ``test_info.py`` paints them."""
    from matplotlib.figure import Figure  # its import takes time, which other tests need not spend

    blank = io.BytesIO()
    Figure(figsize=(0.1, 0.1)).savefig(blank, format="png")
    monkeypatch.setattr(Figure, "savefig", lambda figure, file, **options: file.write(blank.getvalue()))
