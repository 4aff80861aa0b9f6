"""Options for reading, splitting and fitting a user's table, declared once for commands and for Python."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from graphormer_sepnorm.chem.features import FOR_TABLES, prepared_name, without_salts
from graphormer_sepnorm.chem.standardize import chembl_pipeline
from graphormer_sepnorm.config import OPTIONS, Kind, Loss, Scale
from graphormer_sepnorm.dataset import SPLITS, SplitName
from graphormer_sepnorm.errors import InputError, one_of
from graphormer_sepnorm.options import Option
from graphormer_sepnorm.tables.label_text import as_float, read_threshold, refuse_other_bytes
from graphormer_sepnorm.tables.splits import SPLITTERS, Sizes, read_sizes
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.scales import modelled_name, molar_scale, named_unit, unit_of

MAX_WEIGHT = 1e3
STANDARDIZED = {"parent": "standardized", "tautomer": "tautomer", "chembl": "chembl"}  # in ``PREPARATIONS``


def either(kind: Kind, without: tuple[str, ...] = ()) -> str:
    *names, last = (name for name in TASKS[kind].metrics if name not in without)
    return f"{', '.join(names)} or {last}"


OF_CLASSES = either("multiclass", without=TASKS["classification"].metrics)
METRIC_HELP = f"Metric: {either('regression')}; {either('classification')}; for several classes also {OF_CLASSES}."


def read_weights(text: str) -> tuple[float, ...]:
    """Weights of targets such as "1,2,0.5"; raises InputError for a text that is not a list of numbers."""
    try:
        return tuple(as_float(part) for part in text.split(",") if text)
    except ValueError:
        raise InputError(f"the target weights are {text!r}: give a number for each column, such as 1,2,0.5") from None


@dataclass(frozen=True)
class TableOptions:
    """Options for reading, splitting and fitting a table; raises InputError unless they fit together."""

    path: str
    targets: Annotated[
        tuple[str, ...],
        Option("Columns to predict; by default the only one that is no SMILES or id.", "target-columns"),
    ] = ()
    kind: Kind = "regression"
    smiles_column: Annotated[str | None, Option("SMILES column of the table; by default found by its name.")] = None
    delimiter: Annotated[str | None, Option("Delimiter of the table; by default detected from its header.")] = None
    sheet: Annotated[str | None, Option("Sheet of an Excel FILE; by default the first that has molecules.")] = None
    split: Annotated[SplitName, Option("How rows are chosen for training, validation and test.")] = "scaffold"
    split_column: Annotated[str | None, Option("Column with train, val or test, or with times (--split time).")] = None
    sizes: Annotated[
        Sizes,
        Option("Sizes of the training, validation and test sets; by default 80:10:10.", "split-sizes", read_sizes),
    ] = field(default_factory=Sizes)
    balance: Annotated[bool, Option("Weight rare positives as much as negatives.")] = False
    seed: int = 0
    classes: tuple[str, ...] = ()  # of "multiclass", the labels in the single target column
    metric: Annotated[str | None, Option(METRIC_HELP)] = None
    loss: Annotated[Loss | None, Option("Loss of a regression; by default mse for rmse and r2, else l1.")] = None
    weights: Annotated[
        tuple[float, ...],
        Option("Weight of each of --target-columns in the loss, such as 1,2,0.5.", "target-weights", read_weights),
    ] = ()
    folds: Annotated[int, Option("Cross-validate with this many folds: each molecule is tested once.", default="")] = 0
    strip_salts: Annotated[bool, Option("Read molecules of the table without counter-ions and solvents.")] = False
    standardize: Annotated[
        Literal["parent", "tautomer", "chembl"] | None,
        Option("Replace each molecule by its neutral parent, the canonical tautomer of that, or ChEMBL's parent."),
    ] = None
    log10: Annotated[tuple[str, ...], Option("Target columns to learn as logarithms.")] = ()
    negative_log_molar: Annotated[
        tuple[str, ...],
        Option("Unit of concentrations to learn as -log10 of mol/l, such as nM, or COLUMN=UNIT for some columns."),
    ] = ()
    test_csv: Annotated[str | None, Option("A separate table to test on, with the same columns as FILE.")] = None
    weight_column: Annotated[str | None, Option("Column with sample weights.")] = None
    feature_columns: Annotated[
        tuple[str, ...], Option("Columns with conditions of measurements, such as temperature or assay.")
    ] = ()
    id_column: Annotated[str | None, Option("Column with names of rows; by default one such as id or name.")] = None
    require_conditions: Annotated[
        bool, Option("Skip rows with a blank condition; by default it is the median, or a category of its own.")
    ] = False
    decimal: Annotated[
        Literal["point", "comma"] | None, Option("Decimal separator of numbers; by default detected in each column.")
    ] = None
    active_below: Annotated[str | None, Option("Make classes of numbers: 1 below this, such as 100nM, else 0.")] = None
    active_above: Annotated[str | None, Option("Make classes of numbers: 1 above this, such as 6.5, else 0.")] = None
    units: tuple[str, ...] = ()  # of the labels of each target, "" without one; empty: each column tells its own
    called: Annotated[tuple[str, ...], Option("Names of the predictions, one per target column.", "name")] = ()
    final: Annotated[bool, Option("Train on all rows and keep none for a test; scores are out of fold.")] = False
    title: Annotated[str | None, Option("Title of the report; by default the run folder and the targets.")] = None

    def __post_init__(self) -> None:
        if not self.targets:
            raise InputError("name the columns to predict", "target_columns")
        if len(set(self.targets)) < len(self.targets):
            raise InputError(f"a target column is named twice: {', '.join(self.targets)}")
        if self.called and (self.classes or len(self.called) != len(self.targets) or not all(self.called)):
            raise InputError("--name is for columns of numbers or of two classes: give one name for each of them")
        if twice := [name for name in self.names if self.names.count(name) > 1]:
            raise InputError(f"two target columns would be modelled as {twice[0]}: rename one of them, or leave it out")
        for name in (*self.targets, *self.names, *self.feature_columns):
            refuse_other_bytes(name, repr(name))
        self.check_split()
        self.check_task()
        self.check_scales()
        if self.standardize is not None and one_of("standardize", self.standardize, STANDARDIZED) == "chembl":
            chembl_pipeline()
        if len(set(self.feature_columns) - set(self.targets)) < len(self.feature_columns):
            raise InputError("--feature-columns names a column twice, or a target column")

    def check_split(self) -> None:
        one_of("split", self.split, [*SPLITTERS, "column", "time"])
        if self.split in ("column", "time") and self.split_column is None:
            raise InputError(f"--split {self.split} needs --split-column NAME")
        if self.split not in ("column", "time") and self.split_column is not None:
            raise InputError(f"--split-column {self.split_column} needs --split column or --split time")
        if self.split == "column" and self.sizes != Sizes():
            raise InputError("--split-sizes cannot be combined with --split column: the column defines the splits")
        if self.folds and self.folds < 2:
            raise InputError(f"--folds {self.folds}: choose at least 2")
        if self.folds and self.split not in SPLITTERS:
            raise InputError(f"--folds requires --split {', '.join(SPLITTERS)}; {self.split} makes only one split")
        if self.folds and self.sizes != Sizes():
            raise InputError("--split-sizes cannot be combined with --folds: each fold is tested once")
        if self.final and (self.folds or self.split == "column" or self.test_csv or self.sizes != Sizes()):
            raise InputError("--final keeps no test rows: leave out --folds, --split column, --test-csv, --split-sizes")
        if self.test_csv is not None and (self.folds or self.split_column is not None or self.sizes != Sizes()):
            raise InputError("--test-csv cannot be combined with --folds, --split column or time, or --split-sizes")

    def check_scales(self) -> None:
        if (self.log10 or self.negative_log_molar) and "scales" not in OPTIONS[self.kind]:
            raise InputError("logarithms are for regressions", "log10", "negative_log_molar", "task")
        named = [*self.log10, *(name for name in self.molar_scales if name)]
        if strange := [name for name in named if name not in self.targets]:
            raise InputError(f"--log10 or --negative-log-molar names {strange[0]!r}, which is not a target column")
        if len(set(named)) < len(named):
            raise InputError("a target column is named twice by --log10 and --negative-log-molar")

    @property
    def threshold(self) -> str:
        """The active side of the threshold, "<" or ">", and the threshold; "" without one."""
        return f"<{self.active_below}" if self.active_below else f">{self.active_above}" if self.active_above else ""

    def check_task(self) -> None:
        if self.active_below and self.active_above:
            raise InputError("--active-below and --active-above: give one of them")
        if self.threshold:
            read_threshold(self.threshold[1:])
        if self.threshold and self.kind != "classification":
            raise InputError("--active-below and --active-above are for --task classification")
        if self.balance and "balance" not in OPTIONS[self.kind]:
            raise InputError("--balance is for --task classification of columns of 0 and 1")
        if self.loss is not None and "loss" not in OPTIONS[self.kind]:
            raise InputError("--loss is only for --task regression")
        if self.weights and "weights" not in OPTIONS[self.kind]:
            raise InputError("--target-weights is for several columns: the classes of one column have no weights")
        if self.weights and len(self.weights) != len(self.targets):
            raise InputError(f"--target-weights has {len(self.weights)} for {len(self.targets)} target columns")
        if not all(0 < weight <= MAX_WEIGHT for weight in self.weights):
            raise InputError(f"--target-weights must be above 0 and at most {MAX_WEIGHT:g}")
        TASKS[self.kind].find_metric(self.metric)

    @property
    def molar_scales(self) -> dict[str, Scale]:
        """The scales in ``negative_log_molar`` by target, "" for all other targets; raises InputError."""
        by_target: dict[str, Scale] = {}
        for text in self.negative_log_molar:
            name, _, unit = text.rpartition("=")
            if name in by_target:
                raise InputError(f"--negative-log-molar has two units for {name or 'all columns'}: write COLUMN=UNIT")
            by_target[name] = scale = molar_scale(unit)
            for target in [name] if name else self.targets:
                if (own := named_unit(target)) not in ("", unit_of(scale)):
                    raise InputError(f"{target} names {own} as its unit, not {unit_of(scale)}: correct one")
        return by_target

    def scale_of(self, target: str) -> Scale:
        if target in self.log10:
            return "log10"
        return self.molar_scales.get(target, self.molar_scales.get("", ""))

    @property
    def scales(self) -> tuple[Scale, ...]:
        by_target = tuple(self.scale_of(target) for target in self.targets)
        return by_target if any(by_target) else ()

    @property
    def splits(self) -> tuple[str, ...]:
        return SPLITS[:-1] if self.final else SPLITS

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the predictions: the target columns on their scale, or COLUMN_CLASS for each of several classes."""
        if self.classes:
            return tuple(f"{self.targets[0]}_{name}" for name in self.classes)
        return self.called or tuple(modelled_name(target, self.scale_of(target)) for target in self.targets)

    @property
    def featurizer(self) -> str:
        if self.standardize is not None:
            return prepared_name(FOR_TABLES, STANDARDIZED[self.standardize])
        return without_salts(FOR_TABLES) if self.strip_salts else FOR_TABLES
