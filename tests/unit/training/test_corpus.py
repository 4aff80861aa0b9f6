"""The script in data/ that writes a corpus for pretraining."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "data" / "make_corpus.py"


@pytest.mark.slow
def test_each_molecule_occurs_once_and_held_out_ones_do_not(tmp_path):
    (tmp_path / "a.csv").write_text("smiles,split\nCCO,train\nOCC,train\nCCN,val\nCCC,train\nC(,train\nC,train\n")
    (tmp_path / "b.csv").write_text("smiles\nCC[NH3+]\nCCS\nC[C@H](O)Cl\nc1ccccc1\n")
    (tmp_path / "c.csv").write_text("smiles,y,split\nC[C@@H](O)Cl,1,train\n")
    files = ["--take", tmp_path / "a.csv", "--take", tmp_path / "b.csv", "--hold", tmp_path / "c.csv"]
    for out in ("one.smi", "two.smi"):
        subprocess.run([sys.executable, SCRIPT, tmp_path / out, *files], check=True)
    lines = (tmp_path / "one.smi").read_text().splitlines()
    assert sorted(lines) == ["CCC", "CCO", "CCS", "c1ccccc1"] and lines != sorted(lines)
    assert (tmp_path / "two.smi").read_text().splitlines() == lines
