import pytest

from graphormer_sepnorm.tables.labels import LabelledTable, read_labelled
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.remarks import remarks, repeatability
from tests.tables import write


def read(tmp_path, rows: list[str], **options) -> tuple[TableOptions, LabelledTable]:
    path = write(tmp_path, "a.csv", "\n".join(["smiles,y", *rows, ""]))
    found = TableOptions(str(path), ("y",), split="random", **options)
    return found, read_labelled(found, found.featurizer)


def chains(count: int = 20) -> list[str]:
    return [f"{'C' * number},{number}" for number in range(1, count + 1)]


def test_an_ordinary_table_needs_no_remark(tmp_path):
    assert remarks(*read(tmp_path, chains())) == []


def test_repeated_measurements_are_named_with_their_deviation(tmp_path):
    table = read(tmp_path, [*chains(), "C,2", "CC,40"])
    first, second = remarks(*table)
    assert first.startswith("2 molecules appear in several rows, 1 of them with labels that contradict each other")
    deviation = ((0.5 + 722) / 2) ** 0.5
    assert f"deviation of {deviation:.3g}; this is a rough guess, from only 2 repeated" in second
    assert repeatability(*table) == {"y": pytest.approx(deviation)}


def test_a_molecule_is_repeated_under_each_condition_by_itself(tmp_path):
    lines = ["smiles,y,T", *(f"{line},25" for line in chains()), "C,2,25", "C,5,40", "C,9,40", "CC,7,40"]
    (tmp_path / "a.csv").write_text("\n".join(lines))
    found = TableOptions(str(tmp_path / "a.csv"), ("y",), split="random", feature_columns=("T",))
    first, *_ = remarks(found, read_labelled(found, found.featurizer))
    assert first.startswith("2 combinations of a molecule and conditions appear in several rows, 1 of them with labels")


@pytest.mark.parametrize(("repeated", "said"), [(29, "; this is a rough guess"), (30, "; no model can be expected")])
def test_many_repeated_molecules_are_a_limit_for_models(tmp_path, repeated, said):
    again = [f"{'C' * number},{number + 0.1}" for number in range(1, repeated + 1)]
    _, sentence = remarks(*read(tmp_path, [*chains(30), *again]))
    assert said in sentence


def test_copies_of_rows_do_not_show_the_noise(tmp_path):
    rows, copies = remarks(*read(tmp_path, ["CO,0.1", *chains(), "CO,0.1", "CO,0.1"]))
    assert rows.startswith("1 molecule appears in several rows; ") and "probably copies" in copies


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


@pytest.mark.parametrize(("split", "where"), [("train", "but share a split"), ("test", "and 1 of them in several")])
def test_forms_in_several_splits_are_counted(tmp_path, split, where):
    rows = [f"{row},train" for row in chains()] + ["CC(N)CC,1,train", f"C[C@H](N)CC,2,{split}", "CCO,1,val", "N,1,test"]
    path = write(tmp_path, "a.csv", "\n".join(["smiles,y,part", *rows, ""]))
    options = TableOptions(str(path), ("y",), split="column", split_column="part")
    (said,) = [text for text in remarks(options, read_labelled(options, "mol")) if "with and without stereo" in text]
    assert said.startswith("1 molecule is drawn") and where in said


def test_molecules_that_lose_stereo_are_counted(tmp_path):
    rows = [*chains(), "CC(/O)=C(/C)C(C)=O,1", "C[C@H](N)C(=O)O,2", "C[C@@H](N)C(=O)O,3"]
    options, labelled = read(tmp_path, rows, standardize="tautomer")
    (said,) = [text for text in remarks(options, labelled) if "by standardization" in text]
    assert said.startswith("1 molecule loses stereo") and len(labelled.rows) == len(rows), "L and D are two molecules"


@pytest.mark.parametrize(("last", "said"), [("20000", True), ("900", False), ("-1", False)])
def test_labels_over_three_decades_are_pointed_at(tmp_path, last, said):
    found = " ".join(remarks(*read(tmp_path, [*chains(), "CCO,0.5" if said else "CCO,1", f"CCN,{last}"])))
    assert ("labels from 0.5 to 2e+04 are" in found and "--log10 y" in found) == said


def test_labels_of_zero_do_not_hide_the_decades_of_the_others(tmp_path):
    (sentence,) = remarks(*read(tmp_path, [*chains(), "CCO,0", "CCC=O,0", "CCN,20000"]))
    assert "from 1 to 2e+04 are" in sentence and "; 2 labels of 0 have no logarithm" in sentence
    (sentence,) = remarks(*read(tmp_path, [*chains(), "CCO,0", "CCN,20000"]))
    assert "; 1 label of 0 has no logarithm" in sentence


def test_labels_that_are_logarithms_already_are_not_pointed_at(tmp_path):
    assert remarks(*read(tmp_path, [*chains(), "CCN,90000"], log10=("y",))) == []


@pytest.mark.parametrize(
    ("rows", "words"), [(["CO,0"], "1 of them for a label"), (["CO,0", "CN,-1"], "2 of them for labels")]
)
def test_labels_without_a_logarithm_are_counted(tmp_path, rows, words):
    (sentence,) = remarks(*read(tmp_path, [*chains(40), *rows, "C(,1"], log10=("y",)))
    assert sentence.startswith(f"{len(rows) + 1} rows were skipped, {words} of 0 or below")


@pytest.mark.parametrize(("equal", "beyond", "said"), [(30, 0, True), (30, 1, True), (30, 9, False), (19, 0, False)])
def test_many_equal_labels_at_one_end_are_pointed_at(tmp_path, equal, beyond, said):
    lower = [f"{'C' * (k + 1)}N,{k / 100 + 0.1}" for k in range(beyond)]
    rows = [
        *(f"{'C' * (k + 1)}O,4.74" for k in range(equal)),
        *(f"{'C' * (k + 1)}S,{k + 5}" for k in range(40)),
        *lower,
    ]
    found = [sentence for sentence in remarks(*read(tmp_path, rows)) if "limit of the assay" in sentence]
    assert len(found) == said
    if said:
        assert "% of the labels equal 4.74, and " in found[0] and "write these labels with < so" in found[0]


@pytest.mark.parametrize(
    ("scales", "value", "sign"),
    [({"negative_log_molar": ("nM",)}, "10000", ">"), ({"log10": ("IC50",)}, "10000", ">"), ({}, "1000004.25", ">")],
)
def test_a_limit_is_named_as_it_is_in_the_table(tmp_path, scales, value, sign):
    """Inactive molecules are at the largest measured concentration, which is the smallest negative logarithm."""
    rows = [f"{'C' * (k + 1)}O,{value}" for k in range(30)] + [f"{'C' * (k + 1)}S,{k + 5}" for k in range(40)]
    (tmp_path / "in.csv").write_text("smiles,IC50\n" + "\n".join(rows))
    options = TableOptions(str(tmp_path / "in.csv"), ("IC50",), "regression", split="random", **scales)
    (found,) = (each for each in remarks(options, read_labelled(options, "mol")) if "limit of the assay" in each)
    assert f"labels equal {value}, and 0 labels are higher" in found and f"write these labels with {sign} so" in found
    assert "as 'at least' this value" in found


def test_the_unit_in_the_name_of_a_column_is_in_the_advice(tmp_path):
    rows = "\n".join(f"{'C' * number},{10.0 ** (number % 5)}" for number in range(1, 21))
    (tmp_path / "in.csv").write_text(f"smiles,IC50 [uM]\n{rows}\n")
    options = TableOptions(str(tmp_path / "in.csv"), ("IC50 [uM]",), "regression", split="random")
    (sentence,) = remarks(options, read_labelled(options, "mol"))
    assert "from 1 to 1e+04 are" in sentence and "--negative-log-molar 'IC50 [uM]=uM'" in sentence


def test_rows_whose_inchi_fits_several_drawings_are_named(tmp_path):
    imidazole, amide = "InChI=1S/C4H6N2/c1-4-2-5-3-6-4/h2-3H,1H3,(H,5,6)", "InChI=1S/C2H5NO/c1-2(3)4/h1H3,(H2,3,4)"
    (said,) = remarks(*read(tmp_path, [*chains(), f'"{imidazole}",3', f'"{amide}",3']))
    assert said.startswith("the InChI of 1 row leaves open where a hydrogen or charge is (row 21)")
    assert "InChI" not in "".join(remarks(*read(tmp_path, [*chains(), "Cc1c[nH]cn1,3"])))
