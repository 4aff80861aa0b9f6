import math

import pytest

from graphormer_sepnorm.chem.features import Sample
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.table_model.features import Conditions
from graphormer_sepnorm.tables.formats import open_table
from graphormer_sepnorm.tables.formats.table import Row
from graphormer_sepnorm.tables.label_text import UNDECIDED
from graphormer_sepnorm.tables.labels import read_labelled, read_usable
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.rows import NO_CONDITIONS, AskedConditions, TargetReader, labels_in, samples_of
from tests.tables import chains, table
from tests.unit.tables.formats.test_cells import workbook


@pytest.mark.parametrize(
    ("columns", "name"),
    [
        ("smiles,y,id,Compound ID", "c1"), ("smiles,y,id,extra", None), ("smiles,y,,Name", "c1"),
        ("smiles,y,x,id", "c1"), ("smiles,y,id,id", None),
    ],
)  # fmt: skip
def test_names_of_rows_are_found_in_a_column_that_is_not_empty(tmp_path, columns, name):
    options = TableOptions(table(tmp_path / "a.csv", columns, *(f"{line},,c1" for line in chains(20))), ("y",))
    assert read_usable(options, "mol").names.get(1) == name


def test_rows_count_as_much_as_a_column_says(tmp_path):
    rows = ["C,1,2", "CC,2,0", "CCC,3,-1", "CCCC,4,x", "CCCCC,5,0.5"]
    options = TableOptions(table(tmp_path / "a.csv", "smiles,y,w", *rows), ("y",), weight_column="w")
    found = read_usable(options, "mol")
    assert [row.weight for row in found.rows] == [2.0, 0.5]
    assert [reason for _, _, reason in found.skipped] == [
        *(f"its weight is {text!r}, not a number above 0 and up to 1,000,000" for text in ("0", "-1")),
        "its weight is 'x', not a number",
    ]


def test_conditions_are_read_with_labels_and_tell_replicates_apart(tmp_path):
    rows = [*(f"{line},25,A" for line in chains(20)), 'C,3,"25,0",A', "C,4,37,A", "CC,1,,A", "CC,1,25,na"]
    path = table(tmp_path / "a.csv", "smiles,y,T,assay", *rows)
    found = read_labelled(TableOptions(path, ("y",), split="random", feature_columns=("T", "assay")), "mol")
    methane = {row.conditions: row.labels for row in found.rows if row.smiles == "C"}
    assert methane == {("25.0", "A"): [2.0], ("37.0", "A"): [4.0]}
    assert [row.conditions for row in found.rows if "" in row.conditions] == [("", "A"), ("25.0", "")]
    required = TableOptions(path, ("y",), split="random", feature_columns=("T", "assay"), require_conditions=True)
    reasons = [reason for _, _, reason in read_usable(required, "mol").skipped]
    assert reasons == ["its T is missing", "its assay is missing"]


def test_a_comma_that_nothing_decides_on_is_refused_or_asked_about(tmp_path):
    path = table(tmp_path / "a.tsv", "smiles\ty", "C\t46,774", "CC\t7", "CCC\t<1,000")
    known = {None: [7.0], "point": [46774.0, 7.0, "<1000.0"], "comma": [46.774, 7.0, "<1.0"]}
    for decimal, labels in known.items():
        rows = read_usable(TableOptions(path, ("y",), decimal=decimal), "mol").rows
        assert [row.bounds.get(0, row.labels[0]) for row in rows] == labels


@pytest.mark.parametrize(
    ("labels", "read", "reason"),
    [
        (["1,5", "1.234", ">10.000"], [1.5, 1234.0, ">10000.0"], None), (["1.234,5", "1.234"], [1234.5, 1234.0], None),
        (["1.234.567", "1.234"], [1234567.0, 1234], None), (["11,748,976", "46,774"], [11748976.0, 46774.0], None),
        (["250.5", "10,000"], [250.5], "y is '10,000', which may be 10000 or 10.000"),
        (["250.5", ">10,000"], [250.5], "y is '10,000', which may be 10000 or 10.000"),
        (["1.234", "1.500"], [1.234, 1.5], None), (["10,000", "1,5"], [10.0, 1.5], None),
        (["0,5", "2.5", "5,123"], [0.5, 2.5, 5.123], None),
    ],
)  # fmt: skip
def test_separators_of_thousands_are_known_by_the_other_numbers(tmp_path, labels, read, reason):
    rows = [f"{'C' * size};{text}" for size, text in enumerate(labels, 1)]
    found = read_usable(TableOptions(table(tmp_path / "a.csv", "smiles;y", *rows), ("y",)), "mol")
    assert [row.bounds.get(0, row.labels[0]) for row in found.rows] == read
    assert [why for _, _, why in found.skipped] == ([] if reason is None else [reason])


@pytest.mark.parametrize(
    ("texts", "read", "skipped"),
    [
        ([">10.000"], [], [3]), (["1,234"], [], [3]), ([">10.000", "0,5"], [">10000.0", 0.5], []),
        ([">10.000", "0.5"], [">10.0", 0.5], []), (["2,34"], [2.34], []),
    ],
)  # fmt: skip
def test_cells_of_numbers_tell_nothing_of_the_texts_in_their_column(tmp_path, texts, read, skipped):
    """Neither do texts tell what the points of numbers are, as Excel shows them with the separators of its reader."""
    path = workbook(tmp_path / "a.xlsx", ["smiles", "y"], ["C", 1.234], ["C", 120], *(["C", text] for text in texts))
    found = read_usable(TableOptions(str(path), ("y",)), "mol")
    assert [row.bounds.get(0, row.labels[0]) for row in found.rows] == [1.234, 120.0, *read]
    assert [row for row, _, _ in found.skipped] == skipped


@pytest.mark.parametrize(
    ("other", "read", "skipped"),
    [("2,31", [120.0, 10.0], [1]), ("2.31", [1.25, 120.0], [3]), ("2", [120.0], [1, 3]), ("05.2023", [120.0], [1, 3])],
)
def test_other_columns_say_which_separators_a_table_has(tmp_path, other, read, skipped):
    rows = [f"{molecule};{ic50};{other};0" for molecule, ic50 in (("C", "1.250"), ("CC", "120"), ("CCC", "10,000"))]
    path = table(tmp_path / "a.csv", "smiles;IC50;logD;y", *rows)
    found = read_usable(TableOptions(path, ("IC50",)), "mol")
    assert [row.bounds.get(0, row.labels[0]) for row in found.rows] == read
    assert [row for row, _, _ in found.skipped] == skipped
    conditions = read_usable(TableOptions(path, ("y",), feature_columns=("IC50",)), "mol")
    assert [row.conditions for row in conditions.rows] == [(str(number),) for number in read]
    with open_table(path) as content:
        samples = samples_of(content.columns, AskedConditions(("IC50",)), path, content.delimiter)(list(content.rows))
    _, errors = Conditions.of(("IC50",), [("1",), ("2",)]).encode_all([sample.conditions for sample in samples])
    assert [row for row, error in enumerate(errors, 1) if error] == skipped


def test_separators_of_a_part_of_the_rows_are_those_of_the_whole_table():
    rows = [Row(["C", "1.250"], "C"), Row(["CC", "0,5"], "CC")]
    dose = AskedConditions(("dose",))
    read = samples_of(["smiles", "dose"], dose, "t.csv", ";", lambda: rows)
    assert read(rows) == [Sample("C", ("1250.0",)), Sample("CC", ("0.5",))]
    assert read(rows[:1]) == read(rows)[:1]
    assert samples_of(["smiles", "dose"], dose, "t.csv", ";")(rows[:1])[0].conditions == ("1.25",)


def test_what_a_model_reads_of_rows():
    rows = [Row(["C", "25", "A"], "C"), Row(["CC", " 3e1", ""], "CC")]
    columns = ["smiles", "T", "assay"]
    assert samples_of(columns, NO_CONDITIONS, "t.csv")(rows) == ["C", "CC"]
    assert samples_of(columns, AskedConditions(("assay", "T")), "t.csv")(rows) == [
        Sample("C", ("A", "25.0")),
        Sample("CC", ("", "30.0")),
    ]
    with pytest.raises(InputError, match=r"no column pH, lab \(1\): .*pH=VALUE --condition 'lab \(1\)=VALUE'$"):
        samples_of(columns, AskedConditions(("T", "pH", "lab (1)")), "t.csv")
    with pytest.raises(InputError, match=r"t\.csv has the column assay, and another value is given"):
        samples_of(columns, AskedConditions(("T",), {"assay": "a"}), "t.csv")


def read(column: str, texts: list[str], **options) -> list:
    """The label of each text, its bound if it is one, or the reason why it cannot be read."""
    reader = TargetReader.of(column, TableOptions("a.csv", (column,), **options), UNDECIDED, texts)
    rows = [labels_in([reader], [text], 1) for text in texts]
    return [gaps.get(0) or bounds.get(0) or labels[0] for labels, bounds, gaps in rows]


def test_labels_are_converted_to_the_unit_of_the_column():
    assert read("IC50", ["5 nM", "1.5 uM", "<2 nM", "7 nM"]) == [5, 1500, "<2.0", 7]
    assert read("IC50_uM", ["5", "500 nM"]) == [5, 0.5]
    assert read("y", ["45%", "3 %"]) == [45, 3]
    for texts in (["45%", "3 %", "0.5"], ["0.5", "7", "45%"], ["5 nM", "7 nM", "8"]):
        assert "write all in one unit" in read("y", texts)[2]


def test_a_bound_is_turned_where_larger_numbers_are_smaller_on_the_scale():
    texts = ["10", "<10", ">1 uM", "1e-5 M"]
    assert read("IC50", texts, negative_log_molar=("nM",)) == [8, ">8.0", "<6.0", 5]
    assert read("y", ["<10", ">100"], log10=("y",)) == ["<1.0", ">2.0"]


def test_a_threshold_makes_classes_of_numbers_and_bounds():
    texts = ["5", "100", "150", "<5", ">10000", "<100", ">50", "<1 uM", "2 uM", "0.05 uM"]
    found = read("IC50_nM", texts, kind="classification", active_below="100 nM")
    assert found[:6] + found[8:] == [1, 0, 0, 1, 0, 1, 0, 1]
    assert found[6:8] == [f"IC50_nM is '{text}', which may be on either side of 100" for text in (">50", "<1 uM")]
    above = read("pIC50", ["7", "6.5", ">8", "<5", ">5", ""], kind="classification", active_above="6.5")
    assert above[:4] == [1, 0, 1, 0] and "either side" in above[4] and math.isnan(above[5])
    with pytest.raises(InputError, match="y has no unit"):
        read("y", ["5"], kind="classification", active_below="100 nM")
