import json

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from tests.examples import load_example


@pytest.fixture(scope="module")
def example():
    return load_example("comparison")


def scores(model: str, norm: str, seed: int) -> dict[str, float]:
    return {"score": {"ShareNorm": 1.0, "SepNorm": 3.0, "LayerNorm on the CLS": 1.0}[norm] + seed}


def test_gains_are_differences_seed_by_seed(example, tmp_path, capsys):
    """The scores vary by the seed, the gain does not."""
    example.compare(tmp_path, {}, ["A"], 3, scores)
    rows = [[cell.strip() for cell in line.split("|")] for line in capsys.readouterr().out.splitlines()]
    found = {row[2]: row[4] for row in rows[2:]}
    assert found["ShareNorm"] == "2.000 ± 2.484"
    assert found["SepNorm"] == "4.000 ± 2.484 (+2.000 ± 0.000)"
    assert (tmp_path / "results.png").read_bytes().startswith(b"\x89PNG")


def test_what_was_measured_is_not_measured_again(example, tmp_path):
    """A comparison that breaks off in its third cell goes on there, and keeps its rows if seeds are added."""
    seen = []

    def measure(*cell):
        seen.append(cell)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return scores(*cell)

    with pytest.raises(KeyboardInterrupt):
        example.compare(tmp_path, {"epochs": 1}, ["A"], 1, measure)
    assert len(json.loads((tmp_path / "results.json").read_text())["rows"]) == 2
    table = example.compare(tmp_path, {"epochs": 1}, ["A"], 2, measure)
    norms = ["ShareNorm", "SepNorm", "LayerNorm on the CLS"]
    cells = [("A", norm, seed) for seed in (0, 1) for norm in norms]
    assert seen == [*cells[:3], *cells[2:]]
    assert len(table) == 6


@pytest.mark.parametrize("content", ["", "[1]", "{}", '{"setting": {"epochs": 2}, "hardware": "", "rows": []}'])
def test_results_of_something_else_are_refused_and_kept(example, tmp_path, content):
    (tmp_path / "results.json").write_text(content)
    with pytest.raises(InputError, match="--out"):
        example.compare(tmp_path, {"epochs": 1}, ["A"], 1, scores)
    assert (tmp_path / "results.json").read_text() == content


def test_the_probe_is_chosen_on_validation(example):
    """Features that tell the training labels by noise alone are best regularized most."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=60)
    parts = {"train": (rng.normal(size=(60, 40)), y), "val": (rng.normal(size=(200, 40)), rng.normal(size=200))}
    assert example.linear_probe(parts, "neg_mean_squared_error")[-1].alpha == 1e4
    seen = np.stack([y, y**2], axis=1)
    parts = {"train": (seen, 3 * y), "val": (seen, 3 * y)}
    assert example.linear_probe(parts, "neg_mean_squared_error")[-1].alpha == 0.1
