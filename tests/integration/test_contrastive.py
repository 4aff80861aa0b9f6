import importlib.util
import math
from pathlib import Path

import pytest
import torch
from rdkit import Chem

from graphormer_sepnorm.separate import SequenceSepNorm


@pytest.fixture(scope="module")
def example():
    path = Path(__file__).parents[2] / "examples" / "contrastive.py"
    spec = importlib.util.spec_from_file_location("contrastive", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_loss_of_orthogonal_pairs(example):
    """Each embedding has its partner at similarity 1 and two others at 0."""
    x = torch.eye(2)
    expected = -math.log(math.e / (math.e + 2))
    assert example.nt_xent(x, 3 * x, temperature=1.0).item() == pytest.approx(expected)


def test_loss_tells_partners_apart(example):
    x = torch.eye(2)
    assert example.nt_xent(x, x) < example.nt_xent(x, x.flip(0))


def test_views_are_spellings_of_the_same_molecule(example):
    molecules = [Chem.MolFromSmiles(smiles) for smiles in ("CC(=O)Oc1ccccc1C(=O)O", "C")]
    rows = [example.spellings(molecules, seed) for seed in range(4)]
    assert all(row[:, 0].eq(example.CLS).all() for row in rows)
    aspirin = {"".join(chr(t - example.FIRST_CHARACTER) for t in row[0, 1:].tolist() if t > 1) for row in rows}
    assert len(aspirin) > 1
    assert {Chem.CanonSmiles(smiles) for smiles in aspirin} == {Chem.MolToSmiles(molecules[0])}
    assert rows[0][1, 2:].eq(example.PAD).all()


def test_padding_does_not_change_an_embedding(example):
    torch.manual_seed(0)
    model = example.Encoder().eval()
    tokens = example.spellings([Chem.MolFromSmiles("CCO")], 0)
    padded = torch.nn.functional.pad(tokens, (0, 5), value=example.PAD)
    torch.testing.assert_close(model(padded), model(tokens))


def test_norms_of_the_encoder_are_separated(example):
    model = example.separate_norms(example.Encoder())
    assert len(model.separated_norms.replaced) == 4
    assert isinstance(model.encoder.layers[0].norm1, SequenceSepNorm)


def test_one_seed_gives_one_result(example):
    molecules = example.load_molecules(24)
    assert example.run(True, 0, molecules, epochs=1) == example.run(True, 0, molecules, epochs=1)


@pytest.mark.slow
def test_training_finds_partners_and_prints_a_table(example, monkeypatch, capsys):
    arguments = ["contrastive.py", "--molecules", "100", "--epochs", "6", "--seeds", "1"]
    monkeypatch.setattr("sys.argv", arguments)
    example.main()
    header, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert header == ["norm", "seed", "uniformity", "alignment", "found"]
    assert [row[0] for row in rows] == ["ShareNorm", "SepNorm"]
    for _, _, spread, distance, found in rows:
        assert -4.2 < float(spread) < 0
        assert 0 < float(distance) < 4
        assert float(found.rstrip("%")) > 10  # 4% by chance
