import math

import pytest
import torch

from graphormer_sepnorm.data.load import load_split
from graphormer_sepnorm.layers.norms import ShareNorm
from tests.examples import load_example


@pytest.fixture(scope="module")
def example():
    return load_example("contrastive")


def test_loss_of_orthogonal_pairs(example):
    """Each embedding has its partner at similarity 1 and two others at 0."""
    x = torch.eye(2)
    expected = -math.log(math.e / (math.e + 2))
    assert example.nt_xent(x, 3 * x, temperature=1.0).item() == pytest.approx(expected)


def test_loss_tells_partners_apart(example):
    x = torch.eye(2)
    assert example.nt_xent(x, x) < example.nt_xent(x, x.flip(0))


def test_views_are_the_same_molecules_with_a_fifth_of_the_atoms_masked(example):
    torch.manual_seed(0)
    molecules = load_split("sample", "val", ()).batch(range(200))
    first, second = example.view(molecules), example.view(molecules)
    assert molecules.x.max() < example.MASK
    for view in (first, second):
        masked = view.x == example.MASK
        assert 0.18 < masked.float().mean() < 0.22
        assert torch.equal(view.x[~masked], molecules.x[~masked])
        assert torch.equal(view.ptr, molecules.ptr)
    assert not torch.equal(first.x, second.x)


def test_norms_are_separate_or_shared(example):
    assert example.make_model(True).blocks[0].ffn_norm.cls_norm_layer.weight.shape == (80,)
    assert isinstance(example.make_model(False).blocks[0].ffn_norm, ShareNorm)


@pytest.mark.slow
def test_one_seed_gives_one_result(example):
    assert example.run(True, 0, 128, epochs=1) == example.run(True, 0, 128, epochs=1)


@pytest.mark.slow
def test_training_finds_partners_and_prints_a_table(example, monkeypatch, capsys):
    arguments = ["contrastive.py", "--molecules", "256", "--epochs", "3", "--seeds", "1"]
    monkeypatch.setattr("sys.argv", arguments)
    example.main()
    header, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert header == ["norm", "seed", "uniformity", "alignment", "found"]
    assert [row[0] for row in rows] == ["ShareNorm", "SepNorm"]
    for _, _, spread, distance, found in rows:
        assert -4.2 < float(spread) < 0
        assert 0 < float(distance) < 4
        assert float(found.rstrip("%")) > 10  # half a per cent by chance
