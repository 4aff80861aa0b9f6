"""How the page understands a table to train on."""

import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.reading import look_at
from graphormer_sepnorm.interfaces.web.schemas import TableLook, TrainingChoice

# Rings of 3 to 14 atoms, a salt, a row that cannot be read, one without a label, and a bound.
RINGS = [f"C1{'C' * number}C1,{number}0 nM,{number % 2},{2010 + number}" for number in range(1, 13)]
OTHERS = ["[Na+].[O-]CCCC,900 nM,1,2023", "C1CC,5 nM,0,2024", "CCCO,,1,2025", "OCCO,<5 nM,0,2026"]
TABLE = "\n".join(["smiles,IC50,active,year", *RINGS, *OTHERS])


def look(tmp_path, content: str = TABLE, most_rows: int = 100, **choice) -> TableLook:
    path = tmp_path / "t.csv"
    path.write_text(content)
    return look_at(path, "assay.csv", most_rows, TrainingChoice(**{"split": "random"} | choice))


def test_a_regression(tmp_path):
    found = look(tmp_path, targets=["IC50"], scale="nM")
    assert [(each.name, each.content, each.filled) for each in found.columns] == [
        ("smiles", "SMILES", 16), ("IC50", "numbers", 15), ("active", "classes", 16), ("year", "numbers", 16),
    ]  # fmt: skip
    assert (found.rows, found.smiles_column, found.problem, found.skipped) == (16, "smiles", "", 2)
    assert [row for row, _, _ in found.reasons] == [14, 15] and all(why for *_, why in found.reasons)
    (target,) = found.targets
    assert (target.name, target.labels, target.bounds, target.unit) == ("pIC50", 13, 1, "nM")
    assert target.values == "6.046 to 8"  # of 900 nM and of 10 nM
    assert sum(found.splits.values()) == 14 and set(found.splits) == {"train", "val", "test"}
    assert any("salt" in sentence for sentence in found.sentences)


def test_classes(tmp_path):
    found = look(tmp_path, targets=["active"])
    assert [(each.labels, each.values) for each in found.targets] == [(15, "7 x 0, 8 x 1")]


def test_the_split_by_time(tmp_path):
    found = look(tmp_path, targets=["IC50"], split="time", split_column="year")
    assert sum(found.splits.values()) == 14 and set(found.splits) == {"train", "val", "test"}


def test_the_only_column_is_predicted(tmp_path):
    rings = "".join(f"\nC1{'C' * number}C1,{number}" for number in range(1, 13))
    found = look(tmp_path, f"smiles,y{rings}", scale="log10")
    assert found.chosen == ["y"] and found.targets[0].values == "0 to 1.079"


@pytest.mark.parametrize(
    "choice", [{}, {"targets": ["none"]}, {"targets": ["smiles"]}, {"targets": ["active"], "scale": "log10"}]
)
def test_a_problem_comes_with_the_columns(tmp_path, choice):
    found = look(tmp_path, **choice)
    assert found.problem and str(tmp_path) not in found.problem and len(found.columns) == 4 and not found.targets
    assert "--" not in found.problem


def test_the_column_of_the_smiles_is_chosen(tmp_path):
    content = TABLE.replace("smiles", "drawing", 1)
    found = look(tmp_path, content, targets=["IC50"])
    assert found.problem and [each.name for each in found.columns] == ["drawing", "IC50", "active", "year"]
    assert not look(tmp_path, content, targets=["IC50"], smiles_column="drawing").problem


@pytest.mark.parametrize("content", ["smiles,y\n", "smiles,y\nC,1\nCC,2\nCCC,3\n", "\x00\x01"])
def test_what_is_no_table_or_too_large_is_refused(tmp_path, content):
    with pytest.raises(InputError) as error:
        look(tmp_path, content, most_rows=2)
    assert str(tmp_path) not in str(error.value)
