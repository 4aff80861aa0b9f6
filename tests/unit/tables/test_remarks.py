import pytest

from graphormer_sepnorm.tables.labels import LabelledTable, read_labelled
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.remarks import remarks, repeatability
from tests.tables import chains, write


def read(tmp_path, rows: list[str], **options) -> tuple[TableOptions, LabelledTable]:
    path = write(tmp_path, "a.csv", "\n".join(["smiles,y", *rows, ""]))
    found = TableOptions(str(path), ("y",), split="random", **options)
    return found, read_labelled(found, found.featurizer)


def test_repeated_measurements_are_named_with_their_deviation(tmp_path):
    table = read(tmp_path, [*chains(), "C,2", "CC,40"])
    first, second = remarks(*table)
    assert first.startswith("2 molecules appear in several rows, 1 of them with labels that contradict each other")
    deviation = ((0.5 + 722) / 2) ** 0.5
    assert f"deviation of {deviation:.3g}; this is a rough guess, from only 2 repeated" in second
    assert repeatability(*table) == {"y": pytest.approx(deviation)}


def test_salts_are_found_unless_they_are_taken_away(tmp_path):
    rows = [*chains(), "CC(=O)[O-].[Na+],1", "CC(=O)O,2", "CCN.Cl,3"]
    (sentence,) = remarks(*read(tmp_path, rows))
    assert sentence.startswith("2 molecules are salts or mixtures (such as CC(=O)[O-].[Na+]), 1 of them with the same")
    assert "salts" not in " ".join(remarks(*read(tmp_path, rows, standardize="parent")))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["C[C@H](N)C(=O)O,1", "CC(N)C(=O)O,2", "C[C@@H](F)CC,2", "C[C@H](F)CC,2"], "1 molecule is drawn with and"),
        (["C[C@H](N)C(=O)O.Cl,1", "CC([NH3+])C(=O)[O-],2", "CC(F)CC,1", "C[C@H](F)CC,2"], "2 molecules are drawn with"),
        (["NCC(=O)O.CC(N)C(=O)O,1", "CCCCCCN.Cl,1"], "1 molecule has several parts that could be the parent"),
    ],
)
def test_forms_of_molecules_are_counted(tmp_path, rows, words):
    found = remarks(*read(tmp_path, [*chains(), *rows]))
    assert sum(text.startswith(words) for text in found) == 1, found


def test_molecules_that_lose_stereo_are_counted(tmp_path):
    rows = [*chains(), "CC(/O)=C(/C)C(C)=O,1", "C[C@H](N)C(=O)O,2", "C[C@@H](N)C(=O)O,3"]
    options, labelled = read(tmp_path, rows, standardize="tautomer")
    (said,) = [text for text in remarks(options, labelled) if "by standardization" in text]
    assert said.startswith("1 molecule loses stereo") and len(labelled.rows) == len(rows), "L and D are two molecules"


@pytest.mark.parametrize(
    ("rows", "last"),
    [(["CO,0"], "row 43 ('C('"), (["CO,0", "CN,-1"], "row 43 (y is -1"), (["CO,0"] * 4, "row 44 (y is 0")],
)
def test_skipped_rows_are_named_as_a_spreadsheet_counts_them(tmp_path, rows, last):
    (sentence,) = remarks(*read(tmp_path, [*chains(40), *rows, "C(,1"], log10=("y",)))
    assert sentence.startswith(f"{len(rows) + 1} rows were skipped, ") and f"{len(rows)} of them as 0" in sentence
    assert "row 42 (y is 0, which" in sentence and last in sentence and (", ..." in sentence) == (len(rows) > 2)


@pytest.mark.parametrize(("equal", "beyond", "said"), [(30, 0, True), (30, 1, True), (30, 9, False), (19, 0, False)])
def test_many_equal_labels_at_one_end_are_pointed_at(tmp_path, equal, beyond, said):
    lower = [f"{'C' * (k + 1)}N,{k / 100 + 0.1}" for k in range(beyond)]
    rows = [f"{'C' * (k + 1)}O,4.74" for k in range(equal)] + [f"{'C' * (k + 1)}S,{k + 5}" for k in range(40)] + lower
    found = [sentence for sentence in remarks(*read(tmp_path, rows)) if "limit of the assay" in sentence]
    assert len(found) == said
    if said:
        assert "% of the labels equal 4.74, and " in found[0] and "write these labels with < so" in found[0]
