import pytest

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.tables.options import TableOptions, read_weights
from graphormer_sepnorm.tables.splits import Sizes

HALF = Sizes(0.5, 0.25, 0.25)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"targets": ()}, "target_columns"),
        ({"targets": ("y", "y")}, "named twice: y, y"),
        ({"split": "column"}, "--split column needs --split-column NAME"),
        ({"split_column": "fold"}, "--split-column fold needs --split column or --split time"),
        ({"split": "column", "split_column": "fold", "sizes": HALF}, "--split-sizes cannot be combined with"),
        ({"folds": 2, "sizes": HALF}, "--split-sizes cannot be combined with --folds"),
        ({"folds": 2, "split": "time", "split_column": "year"}, "--folds requires .*; time makes only one split"),
        ({"balance": True}, "--balance is for --task classification"),
        ({"loss": "mse", "kind": "classification"}, "--loss is only for --task regression"),
        ({"metric": "rocauc"}, "'rocauc' does not score a regression: choose one of mae, rmse, r2"),
        ({"targets": ("caf\udce9",)}, r"'caf\\udce9' has bytes that are not UTF-8"),
        ({"feature_columns": ("\udcb5M",)}, r"'\\udcb5M' has bytes that are not UTF-8"),
        ({"kind": "multiclass", "classes": ("a", "\udce9")}, r"'y_\\udce9' has bytes that are not UTF-8"),
        ({"weights": (1.0, 2.0)}, "--target-weights has 2 for 1 target column"),
        ({"weights": (0.0,)}, "--target-weights must be above 0"),
        ({"weights": (1.0,), "kind": "multiclass", "classes": ("a", "b")}, "--target-weights is for several columns"),
        ({"folds": 1}, "--folds 1: choose at least 2"),
        ({"test_csv": "b.csv", "folds": 3}, "--test-csv cannot be combined with --folds"),
        ({"test_csv": "b.csv", "split": "time", "split_column": "year"}, "--test-csv cannot be combined with"),
        ({"log10": ("z",)}, "--log10 or --negative-log-molar names 'z', which is not a target column"),
        ({"negative_log_molar": ("z=nM",)}, "names 'z', which is not a target column"),
        ({"negative_log_molar": ("y=mg",)}, "'mg' is no unit of a concentration"),
        ({"negative_log_molar": ("nM", "uM")}, "two units for all columns: write COLUMN=UNIT"),
        ({"targets": ("Ki (nM)",), "negative_log_molar": ("uM",)}, "names nM as its unit, not uM"),
        ({"negative_log_molar": ("y=nM",), "log10": ("y",)}, "named twice by --log10 and --negative-log-molar"),
        ({"targets": ("Ki_nM", "Ki_uM"), "negative_log_molar": ("Ki_nM=nM", "Ki_uM=uM")}, "would be modelled as pKi"),
        ({"feature_columns": ("y",)}, "--feature-columns names a column twice, or a target column"),
        ({"log10": ("y",), "kind": "classification"}, "logarithms are for regressions; see log10, "),
        ({"called": ("a", "b")}, "--name is for columns of numbers or of two classes: give one name for each"),
        ({"called": ("a",), "kind": "multiclass", "classes": ("a", "b")}, "--name is for columns of numbers"),
        ({"targets": ("y", "z"), "called": ("a", "a")}, "two target columns would be modelled as a"),
    ],
)
def test_options_that_do_not_fit_together(options, sentence):
    with pytest.raises(InputError, match=sentence):
        TableOptions("table.csv", **{"targets": ("y",), **options})


def test_weights_are_numbers():
    assert read_weights("1,2, 0.5") == (1.0, 2.0, 0.5) and read_weights("") == ()
    with pytest.raises(InputError, match="target weights are '1_0,2'"):
        read_weights("1_0,2")
    with pytest.raises(InputError, match=r"give a number for each column, such as 1,2,0\.5"):
        read_weights("1;2")


def test_scales_of_all_targets_and_of_some():
    options = TableOptions("a.csv", ("a", "b", "c"), negative_log_molar=("uM", "b=nM"), log10=("c",))
    assert options.scales == ("-log10 uM", "-log10 nM", "log10")
    assert options.names == ("-log10(a)", "-log10(b)", "log10(c)")
    assert TableOptions("a.csv", ("a", "b")).scales == ()
