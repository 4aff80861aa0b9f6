import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.labels import read_whole
from graphormer_sepnorm.tables.task_guess import Column, guess_task, look_at_columns


def column(*labels: str, name: str = "y") -> Column:
    return Column.of(name, labels)


@pytest.mark.parametrize(
    ("labels", "kind", "classes"),
    [
        (["0", "1", "", "1.0"], "classification", ()), (["True", "FALSE"], "classification", ()),
        (["yes", "No"], "classification", ()), (["Active", "inactive", "NA"], "classification", ()),
        (["Soluble", "insoluble"], "classification", ()), (["low", "High"], "classification", ()),
        (["1", "1"], "classification", ()), (["0", "1", "2"], "regression", ()),
        (["0.5", "<3", "high"], "regression", ()), (["1,5", "2", "3"], "regression", ()),
        (["0", "1", "1", "unclear"], "multiclass", ("0", "1", "unclear")),
        (["active", "inactive", "inconclusive"], "multiclass", ("active", "inactive", "inconclusive")),
        (["toxic", "safe", "Safe"], "multiclass", ("safe", "toxic")),
        (["B", "a", "C", "b"], "multiclass", ("a", "B", "C")), (["1", "2", "2.0"], "multiclass", ("1", "2")),
        (["-1", "1", ""], "multiclass", ("-1", "1")), (["<1", ">2"], "regression", ()),
        (["12 +- 3", "~120", "45", "1.5"], "regression", ()), (["1.2e-5 M", "5 nM", "7 uM"], "regression", ()),
        (["1,234", "11,748,976", "8'709.6", "2"], "regression", ()),
        (["+", "-", "++", "k.A."], "multiclass", ("+", "++", "-")), (["-", "?", "#WERT!", "1.5"], "regression", ()),
        (["3 mg", "4 mg", "5"], "multiclass", ("3 mg", "4 mg", "5")),
    ],
)  # fmt: skip
def test_the_task_of_labels_by_hand(labels, kind, classes):
    guess = guess_task([column(*labels * 5)])
    assert (guess.kind, guess.classes) == (kind, classes) and guess.sentence.startswith("y")


def test_a_class_of_few_rows_is_refused():
    labels = ["inactive"] * 20 + ["Active"] * 10 + ["abc", "akt", "Akt"]
    with pytest.raises(InputError, match=r"y has 4 classes, some in too few rows \('abc' in 1, 'akt' in 2\): correct"):
        guess_task([column(*labels)])
    assert guess_task([column(*labels[:30], *["abc"] * 5)]).classes == ("abc", "Active", "inactive")


def test_what_is_asked_for_is_done_or_refused():
    assert guess_task([column("0", "1")], "regression").kind == "regression"
    assert guess_task([column("0", "1")], "classification").sentence == ""
    guess = guess_task([column(*["0", "2.0", "1", "2"] * 5)], "classification")
    assert (guess.kind, guess.classes) == ("multiclass", ("0", "1", "2.0")) and "3 classes" in guess.sentence
    numbers = [f"{number}.5" for number in range(60)]
    with pytest.raises(InputError, match=r"y has more than 50 different labels .*--task regression"):
        guess_task([column(*numbers)], "classification")
    with pytest.raises(InputError, match="y has more than 50 different labels"):
        guess_task([column(*(f"note {number}" for number in range(51)))])


def test_several_columns_are_of_one_kind():
    numbers, classes, words = column("0.5", name="a"), column("0", "1", name="b"), column("x", "y", "z", name="c")
    assert guess_task([numbers, column("7", name="d")]).kind == "regression"
    assert guess_task([classes, column("yes", name="e")]).kind == "classification"
    assert guess_task([numbers, classes], "regression").kind == "regression"
    with pytest.raises(InputError, match="a asks for regression, b asks for classification"):
        guess_task([numbers, classes])
    with pytest.raises(InputError, match=r"column c has 3 classes .* predict only it, or give a column of 0 and 1 for"):
        guess_task([classes, words])


def test_columns_of_a_table_are_looked_at(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("smiles,a,b\nC,1,x\nCC\nCCC,2.5,X\n")
    a, b = look_at_columns(read_whole(str(path)), ("a", "b", "c"))
    assert (a.labels, a.numbers, a.texts) == (2, 2, {"1": "1", "2.5": "2.5"})
    assert (b.labels, b.numbers, b.texts) == (2, 0, {"x": "x"})
