import math
from dataclasses import replace

import numpy as np
import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.labels import (
    LabelledRow,
    LabelledTable,
    check_splits,
    mean_row,
    pooled_deviation,
    read_folds,
    read_labelled,
    read_usable,
    read_whole,
    table_task,
)
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.remarks import remarks, repeatability
from graphormer_sepnorm.tables.task_guess import guess_task, look_at_columns
from tests.tables import chains, table


def given(folder, columns: str, *rows: str, targets: tuple[str, ...] = ("y",), **options) -> TableOptions:
    """The options of a table that is divided at random if nothing else is said."""
    return TableOptions(table(folder / "a.csv", columns, *rows), targets, **{"split": "random", **options})


BY_FOLD = {"split": "column", "split_column": "fold"}


def test_rows_that_cannot_be_used_are_skipped_with_their_number_and_reason(tmp_path):
    smiles = ["C", "CC", "CCC", "CCCC", "CCCCC", "CO", "CCO", "CN", "CCN", "CF"]
    splits = ["train"] * 6 + ["val"] * 2 + ["test"] * 2
    rows = [f"{text},{number},{split}" for number, (text, split) in enumerate(zip(smiles, splits, strict=True))]
    rows += ["C(,1,train", "CCF,,train", "CCF,x,train", "CCF,1,fold3", "CCF"]
    labelled = read_labelled(given(tmp_path, "smiles,y,fold", *rows, **BY_FOLD), "ogb")
    assert [row.number for row in labelled.rows] == list(range(1, 11))
    assert [row.labels for row in labelled.rows] == [[float(number)] for number in range(10)]
    assert ([row.smiles for row in labelled.rows], [row.split for row in labelled.rows]) == (smiles, splits)
    reasons = {number: reason for number, _, reason in labelled.skipped}
    assert sorted(reasons) == [11, 12, 13, 14, 15]
    assert "not a valid SMILES" in reasons[11] and reasons[12] == "it has no label"
    assert reasons[13] == "y is 'x', not a number" and reasons[14] == "its split is 'fold3', not train, val or test"
    assert reasons[15] == "the row has 1 fields, the header has 3"


@pytest.mark.parametrize(("readable", "refused"), [(0, True), (1, True), (2, False)])
def test_a_column_without_molecules_is_refused_if_another_one_has_their_name(tmp_path, readable, refused):
    ids = ["CCO"] * readable + [f"ABC-{number}" for number in range(20 - readable)]
    options = given(tmp_path, "id,Structure,y", *(f"{name},C,1" for name in ids), smiles_column="id")
    if not refused:
        assert len(read_usable(options, "ogb").skipped) == 18
        return
    with pytest.raises(InputError, match=f"{readable} of 20 rows have a readable SMILES .* is 'Structure' the column"):
        read_usable(options, "ogb")
    assert len(read_usable(replace(options, smiles_column="Structure"), "ogb").rows) == 20
    given(tmp_path, "id,drawing,y", *(f"{name},C,1" for name in ids))
    assert len(read_usable(options, "ogb").rows) == readable


def test_rows_by_time_and_rows_without_one(tmp_path):
    times = [2009, 2001, 2002, 2003, 2004, 2005, 2006, 2007, 2008, 2000]
    rows = [f"{line},{time}" for line, time in zip(chains(10), times, strict=True)]
    rows += ["CO,1,soon", "CO,1,", f"{10 * 'C'},3,2030"]
    labelled = read_labelled(given(tmp_path, "smiles,y,year", *rows, split="time", split_column="year"), "ogb")
    assert [row.split for row in labelled.rows] == ["test", *["train"] * 7, "val", "train"]
    assert labelled.usable[-1].split == "train", "the rows of a molecule have the first time of it"
    reasons = [reason.partition(", ")[0] for _, _, reason in labelled.skipped]
    assert reasons == ["its time is 'soon'", "its time is ''"]


def test_several_classes_are_a_column_each(tmp_path):
    labels = ["Low", "high", "mid", "", *["low", "high", "mid"] * 4]
    options = given(tmp_path, "smiles,y", *(f"{'C' * number},{label}" for number, label in enumerate(labels, 1)))
    guess = guess_task(look_at_columns(read_whole(options.path), ("y",)))
    assert (guess.kind, guess.classes) == ("multiclass", ("high", "Low", "mid"))
    options = replace(options, kind=guess.kind, classes=guess.classes)
    labelled = read_labelled(options, "ogb")
    assert [row.labels for row in labelled.rows[:3]] == [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    assert [(number, reason) for number, _, reason in labelled.skipped] == [(4, "it has no label")]
    task = table_task(options)
    assert (task.kind, task.targets, task.metric) == ("multiclass", ("y_high", "y_Low", "y_mid"), "rocauc")


@pytest.mark.parametrize(
    ("train", "val", "test", "problem"),
    [
        ((0, 0), (0, 1), (0, 1), "is 0 for every training molecule"),
        ((0, 1), (1, 1), (0, 1), "validation split: ROC-AUC needs both classes"),
        ((0, 1), (0, 1), (1, 1), "test split: ROC-AUC needs both classes"),
    ],
)
def test_splits_that_cannot_be_learnt_or_scored_are_refused(train, val, test, problem):
    parts = {"train": train, "val": val, "test": test}
    rows = [LabelledRow(1, "C", [float(label)], split) for split, found in parts.items() for label in found]
    options = TableOptions("a.csv", ("y",), "classification", balance=True)
    with pytest.raises(InputError, match=problem):
        check_splits(options, table_task(options), LabelledTable(rows))


@pytest.mark.parametrize(("kind", "label"), [("regression", "1"), ("classification", "active")])
def test_one_label_everywhere_is_refused_without_advice_to_split_otherwise(kind, label):
    rows = [LabelledRow(number, "C", [1.0], split) for number, split in enumerate(("train", "train", "val", "test"))]
    options, names = TableOptions("a.csv", ("y",), kind), (("0", "active"),) if kind == "classification" else ()
    with pytest.raises(InputError, match=rf"^a\.csv: all labels of y are {label}: there is nothing to learn$"):
        check_splits(options, table_task(options), LabelledTable(rows, class_names=names))


def test_folds_need_no_division_without_them(tmp_path):
    options = given(tmp_path, "smiles,y", *chains(6))
    with pytest.raises(InputError, match=r"6 usable rows, too few: none is left for the test$"):
        read_labelled(options, "ogb")
    short = table(tmp_path / "b.csv", "smiles,y", "C,1", "CC,x")
    with pytest.raises(InputError, match=r"1 usable row, .* validation; 1 row was skipped, the first of them row 3"):
        read_labelled(TableOptions(short, ("y",)), "ogb")
    folds = read_folds(replace(options, folds=2), "ogb")
    counts = [[len(fold.of_split(split)) for split in ("train", "val", "test")] for fold in folds]
    assert counts == [[2, 1, 3]] * 2


def test_the_rows_of_a_molecule_are_averaged_within_a_split(tmp_path):
    rows = [*(f"{line},train" for line in chains(20)), "C,3,train", "CC,9,test", "CCO,1,val", "CCN,1,test"]
    found = read_labelled(given(tmp_path, "smiles,y,fold", *rows, **BY_FOLD), "mol")
    assert len(found.usable) == 24 and len(found.rows) == len(found.structures.keys) == 23
    assert (found.rows[0].labels, found.rows[0].number) == ([2.0], 1)
    assert [row.labels[0] for row in found.rows if row.smiles == "CC"] == [2.0, 9.0]


def test_a_column_without_validation_gets_it_from_the_training_rows(tmp_path):
    rows = [f"{line},{'test' if place % 4 == 0 else 'train'}" for place, line in enumerate(chains(40))]
    options = given(tmp_path, "smiles,y,fold", *rows, **BY_FOLD, seed=1)
    splits = [row.split for row in read_labelled(options, "mol").rows]
    assert {place for place, split in enumerate(splits) if split == "test"} == set(range(0, 40, 4))
    assert splits.count("val") == 3 and splits.count("train") == 27
    path = table(tmp_path / "b.csv", "smiles,y,fold", *(f"{line},train" for line in chains(40)))
    with pytest.raises(InputError, match=r"the column fold has test in none of 40 usable rows: name some rows test$"):
        read_labelled(replace(options, path=path), "mol")


def test_classes_keep_their_names(tmp_path):
    rows = ["smiles,a,b", "CCO,No,1", "CCN,yes,"]
    options = given(tmp_path, *rows, targets=("a", "b"), kind="classification")
    assert read_usable(options, "mol").class_names == (("No", "yes"), ("0", "1"))
    assert read_usable(replace(options, targets=("b",)), "mol").class_names == ()
    assert read_usable(replace(options, kind="regression"), "mol").class_names == ()


def test_labels_are_learnt_on_the_scale_that_is_asked_for(tmp_path):
    rows = ["C,1000,10", "CC,<10,1", "CCC,0,5", "CCCC,>1e6,0.1", *(f"{'C' * n},{n},{n}" for n in range(5, 20))]
    scales = {"negative_log_molar": ("IC50_nM=nM",), "log10": ("S",)}
    options = given(tmp_path, "smiles,IC50_nM,S", *rows, targets=("IC50_nM", "S"), **scales)
    found = read_labelled(options, "mol")
    assert found.rows[0].labels == pytest.approx([6, 1])
    assert [row.bounds for row in found.rows[1:3]] == [{0: ">8.0"}, {}]
    assert found.rows[2].gaps == {0: "IC50_nM is 0, which has no logarithm"} and not found.skipped
    assert found.rows[2].labels[1] == pytest.approx(math.log10(5)) and found.rows[3].bounds == {0: "<3.0"}
    task = table_task(options)
    assert (task.targets, task.scales) == (("pIC50", "log10(S)"), ("-log10 nM", "log10"))


def test_a_table_of_its_own_is_the_test_split(tmp_path):
    train = table(tmp_path / "a.csv", "id,smiles,y", *(f"a{row},{line}" for row, line in enumerate(chains(40))))
    test = table(tmp_path / "b.csv", "y,smiles,id", "1,[CH4],b0", "2,CCO,b1", "x,CCN,b2", "3,OC(=O)C,b3")
    found = read_labelled(TableOptions(train, ("y",), split="random", test_csv=test), "mol")
    assert [(row.number, row.smiles) for row in found.of_split("test")] == [(41, "[CH4]"), (42, "CCO"), (44, "OC(=O)C")]
    assert [(number, reason) for number, _, reason in found.skipped] == [
        (1, "its molecule (or a form of it) is in --test-csv, so it is not used for training"),
        (43, "y is 'x', not a number"),
    ]  # fmt: skip
    assert {split: len(found.of_split(split)) for split in ("train", "val")} == {"train": 35, "val": 4}
    assert (found.names[2], found.names[42]) == ("a1", "b1")
    assert (found.in_file(1), found.in_file(43)) == ("row 2", "row 4 of --test-csv")


@pytest.mark.parametrize("scale", [{"negative_log_molar": ("nM",)}, {"log10": ("y",)}])
def test_a_column_that_is_a_logarithm_already_is_named(tmp_path, scale):
    rows = [f"{'C' * number},{4 - number / 3}" for number in range(1, 41)]
    options = given(tmp_path, "smiles,y", *rows, **scale)
    option = "--" + next(iter(scale)).replace("_", "-")
    message = rf"a\.csv: rows with labels of 0 or less, which have no logarithm: 29; leave out {option} if the column"
    with pytest.raises(InputError, match=message):
        read_labelled(options, "mol")
    assert len(read_labelled(given(tmp_path, "smiles,y", *rows[:15], **scale), "mol").skipped) == 4


def test_a_label_that_cannot_be_read_is_a_gap_of_its_own_target(tmp_path):
    rows = [f"{'C' * size},{size},{'<LOD' if size % 3 else size}" for size in range(1, 31)]
    found = read_labelled(given(tmp_path, "smiles,a,b", *rows, "CF,n.b.,<LOD", targets=("a", "b")), "mol")
    assert [row.labels[0] for row in found.rows] == list(range(1, 31))
    assert [row.labels[1] for row in found.rows if not row.gaps] == list(range(3, 31, 3))
    assert found.rows[0].gaps == {1: "b is '<LOD', not a number"}
    assert found.skipped == [(31, "CF", "b is '<LOD', not a number")]


def test_a_column_with_only_bounds_is_refused(tmp_path):
    rows = [f"{'C' * size},<{size},{size}" for size in range(1, 31)]
    options = given(tmp_path, "smiles,a,b", *rows, targets=("a", "b"))
    with pytest.raises(InputError, match=r"column a: all labels are bounds"):
        check_splits(options, table_task(options), read_labelled(options, "mol"))


def test_test_rows_whose_molecules_are_trained_on_are_counted(tmp_path):
    rows = [f"{'C' * number}O,{number},{split}" for number in range(1, 9) for split in ("train", "val", "test")]
    rows += ["CC(=O)O,1,train", "CC(=O)[O-].[Na+],1,test", "CCN,1,test"]
    found = read_labelled(given(tmp_path, "smiles,y,fold", *rows, **BY_FOLD), "mol")
    assert found.known == {"tested_in_training": 8, "tested_related_to_training": 1}
    assert set(found.take([]).known.values()) == {0}


NAN = math.nan


def test_rows_with_one_key_become_their_mean():
    rows = [
        LabelledRow(1, "C", [1.0, NAN], bounds={1: "<5.0"}),
        LabelledRow(3, "C", [3.0, NAN], bounds={1: "<9.0"}),
        LabelledRow(4, "C", [NAN, NAN]),
    ]
    found = mean_row(rows)
    weighted = mean_row([LabelledRow(1, "C", [1.0], weight=3.0), LabelledRow(2, "C", [5.0])])
    assert (weighted.labels, weighted.weight) == ([2.0], 2.0)
    assert mean_row(rows[:1]) is rows[0] and (found.number, found.labels[0]) == (1, 2.0)
    assert math.isnan(found.labels[1]) and found.bounds == {1: "<5.0"}


def test_an_exact_label_takes_the_place_of_bounds_and_else_the_tightest_one_is_kept():
    rows = [LabelledRow(1, "C", [NAN], bounds={0: "<5.0"}), LabelledRow(2, "C", [4.0])]
    assert mean_row(rows).labels == [4.0] and mean_row(rows).bounds == {}
    for *bounds, kept in ((">50.0", ">100.0", ">100.0"), ("<5.0", "<2.0", "<2.0"), (">5.0", "<2.0", ">5.0")):
        rows = [LabelledRow(number, "C", [NAN], bounds={0: text}) for number, text in enumerate(bounds)]
        assert mean_row(rows).bounds == {0: kept}


def test_the_pooled_deviation_by_hand():
    """Of 1, 3 and of 0, 0, 3: squares 2 and 6, degrees of freedom 1 and 2."""
    y = np.array([[1.0, NAN], [3.0, 2.0], [0.0, NAN], [0.0, NAN], [3.0, NAN], [9.0, NAN]])
    found, molecules = pooled_deviation(y, [[0, 1], [2, 3, 4]])
    assert found[0] == pytest.approx((8 / 3) ** 0.5) and math.isnan(found[1]) and molecules.tolist() == [2, 0]


def test_most_repeated_molecules_with_equal_labels_are_copies():
    """Two of three pairs are equal: only 1, 3 counts, with a square of 2. Of one of two, both count."""
    y = np.array([[1.0], [3.0], [5.0], [5.0], [7.0], [7.0]])
    pairs = [[0, 1], [2, 3], [4, 5]]
    assert [each.tolist() for each in pooled_deviation(y, pairs)] == [[2**0.5], [1]]
    assert [each.tolist() for each in pooled_deviation(y, pairs[:2])] == [[1.0], [2]]
    assert [each.tolist() for each in pooled_deviation(y, pairs[1:])] == [[0.0], [2]], "nothing else is known"


def read_given(folder, rows: list[str], **options) -> tuple[TableOptions, LabelledTable]:
    found = given(folder, "smiles,y", *rows, **options)
    return found, read_labelled(found, found.featurizer)


def test_repeated_measurements_are_named_with_their_deviation(tmp_path):
    table = read_given(tmp_path, [*chains(), "C,2", "CC,40"])
    first, second = remarks(*table)
    assert first.startswith("2 molecules appear in several rows, 1 of them with labels that contradict each other")
    deviation = ((0.5 + 722) / 2) ** 0.5
    assert f"deviation of {deviation:.3g}; this is a rough guess, from only 2 repeated" in second
    assert repeatability(*table) == {"y": pytest.approx(deviation)}


def test_salts_are_found_unless_they_are_taken_away(tmp_path):
    rows = [*chains(), "CC(=O)[O-].[Na+],1", "CC(=O)O,2", "CCN.Cl,3"]
    (sentence,) = remarks(*read_given(tmp_path, rows))
    assert sentence.startswith("2 molecules are salts or mixtures (such as CC(=O)[O-].[Na+]), 1 of them with the same")
    assert "salts" not in " ".join(remarks(*read_given(tmp_path, rows, standardize="parent")))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (["C[C@H](N)C(=O)O,1", "CC(N)C(=O)O,2", "C[C@@H](F)CC,2", "C[C@H](F)CC,2"], "1 molecule is drawn with and"),
        (["C[C@H](N)C(=O)O.Cl,1", "CC([NH3+])C(=O)[O-],2", "CC(F)CC,1", "C[C@H](F)CC,2"], "2 molecules are drawn with"),
        (["NCC(=O)O.CC(N)C(=O)O,1", "CCCCCCN.Cl,1"], "1 molecule has several parts that could be the parent"),
    ],
)
def test_forms_of_molecules_are_counted(tmp_path, rows, words):
    found = remarks(*read_given(tmp_path, [*chains(), *rows]))
    assert sum(text.startswith(words) for text in found) == 1, found


def test_molecules_that_lose_stereo_are_counted(tmp_path):
    rows = [*chains(), "CC(/O)=C(/C)C(C)=O,1", "C[C@H](N)C(=O)O,2", "C[C@@H](N)C(=O)O,3"]
    options, labelled = read_given(tmp_path, rows, standardize="tautomer")
    (said,) = [text for text in remarks(options, labelled) if "by standardization" in text]
    assert said.startswith("1 molecule loses stereo") and len(labelled.rows) == len(rows), "L and D are two molecules"


@pytest.mark.parametrize(
    ("rows", "last"),
    [(["CO,0"], "row 43 ('C('"), (["CO,0", "CN,-1"], "row 43 (y is -1"), (["CO,0"] * 4, "row 44 (y is 0")],
)
def test_skipped_rows_are_named_as_a_spreadsheet_counts_them(tmp_path, rows, last):
    (sentence,) = remarks(*read_given(tmp_path, [*chains(40), *rows, "C(,1"], log10=("y",)))
    assert sentence.startswith(f"{len(rows) + 1} rows were skipped, ") and f"{len(rows)} of them as 0" in sentence
    assert "row 42 (y is 0, which" in sentence and last in sentence and (", ..." in sentence) == (len(rows) > 2)


def test_dates_in_place_of_labels_and_labels_below_what_is_measured_are_pointed_at(tmp_path):
    assert "45001" in remarks(*read_given(tmp_path, [f"{'C' * k}O,{45_000 + k}" for k in range(1, 20)]))[-1]
    rows = [f"{'C' * k}O,{0.001 if k < 4 else k}" for k in range(1, 20)]
    assert (
        "3 labels are below 10 pM, read in nM" in remarks(*read_given(tmp_path, rows, negative_log_molar=("nM",)))[-1]
    )


@pytest.mark.parametrize(("name", "molar"), [("LC50 (mg/L)", False), ("LC50", True)])
def test_masses_are_not_to_be_learnt_as_concentrations(tmp_path, name, molar):
    options, labelled = read_given(tmp_path, [f"{'C' * k}O,{2**k}" for k in range(1, 20)])
    (sentence,) = (each for each in remarks(replace(options, targets=(name,)), labelled) if "logarithms" in each)
    assert "--log10" in sentence and ("--negative-log-molar" in sentence) == molar


@pytest.mark.parametrize(("equal", "beyond", "said"), [(30, 0, True), (30, 1, True), (30, 9, False), (19, 0, False)])
def test_many_equal_labels_at_one_end_are_pointed_at(tmp_path, equal, beyond, said):
    lower = [f"{'C' * (k + 1)}N,{k / 100 + 0.1}" for k in range(beyond)]
    rows = [f"{'C' * (k + 1)}O,4.74" for k in range(equal)] + [f"{'C' * (k + 1)}S,{k + 5}" for k in range(40)] + lower
    found = [sentence for sentence in remarks(*read_given(tmp_path, rows)) if "limit of the assay" in sentence]
    assert len(found) == said
    if said:
        assert "% of the labels equal 4.74, and " in found[0] and "write these labels with < so" in found[0]
