"""How a table of one's own is read, divided and learnt from: each option declared once, for commands and for Python."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from graphormer_sepnorm.chem.features import FOR_TABLES, prepared, without_salts
from graphormer_sepnorm.config import OPTIONS, Kind, Scale
from graphormer_sepnorm.dataset import SplitName
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.options import Option
from graphormer_sepnorm.tables.label_text import as_float
from graphormer_sepnorm.tables.splits import SPLITTERS, Sizes, read_sizes
from graphormer_sepnorm.tasks import TASKS
from graphormer_sepnorm.tasks.scales import modelled_name, molar_scale

MAX_WEIGHT = 1e3


def read_weights(text: str) -> tuple[float, ...]:
    """Weights of targets such as "1,2,0.5"; raises InputError for what are no numbers."""
    try:
        return tuple(as_float(part) for part in text.split(",") if text)
    except ValueError:
        raise InputError(f"the target weights are {text!r}: give a number for each column, such as 1,2,0.5") from None


@dataclass(frozen=True)
class TableOptions:
    """How a table is read, divided and learnt from.

    Attributes:
        path: of the table, as ``open_table``.
        targets: columns to predict.
        kind: of the task.
        smiles_column, delimiter: as ``open_table``.
        split: a name in ``SPLITTERS``, "column" or "time".
        split_column: for "column", the one that says train, val or test; for "time", the one of numbers or dates.
        sizes: of the splits, unless a column says them.
        balance: whether the positives of a classification count as much as its negatives.
        seed: of the split.
        classes: of "multiclass", the labels that the one target column has.
        metric: the score; None: the kind's usual one.
        loss: of a regression; None: the one that suits the metric.
        weights: per target, what its labels count in the loss; none: all the same.
        folds: how often the table is divided, so that every row is tested once; 0: it is divided once, by ``sizes``.
        strip_salts: whether only the largest organic part of each molecule is read.
        standardize: what is read in place of each molecule, its neutral parent or the canonical tautomer of that.
        log10: targets that are learnt by their logarithm.
        negative_log_molar: a unit of concentrations that are learnt as -log10 of M, or COLUMN=UNIT for some targets.
        test_csv: a table whose rows are the test split; the rows at ``path`` are divided into the other two.
        weight_column: of numbers above 0, how much each row counts.
        feature_columns: of conditions of the measurements, numbers or words, which models learn from and ask for.
        id_column: of names of rows; None: as ``find_id_column``.

    Raises:
        InputError: options that do not fit together.
    """

    path: str
    targets: Annotated[tuple[str, ...], Option("Columns of --csv to predict.", "target-columns")] = ()
    kind: Kind = "regression"
    smiles_column: Annotated[str | None, Option("Column of --csv; by default smiles.")] = None
    delimiter: Annotated[str | None, Option("Of --csv; by default found in its header.")] = None
    split: Annotated[SplitName, Option("How --csv is split.")] = "scaffold"
    split_column: Annotated[str | None, Option("Column of --csv: train, val or test for --split column, or times.")] = (
        None
    )
    sizes: Annotated[
        Sizes, Option("Of training, validation and test; by default 80:10:10.", "split-sizes", read_sizes)
    ] = field(default_factory=Sizes)
    balance: Annotated[bool, Option("Make the positives of --csv count as much.")] = False
    seed: int = 0
    classes: tuple[str, ...] = ()
    metric: Annotated[
        str | None,
        Option(
            "The score of --csv: mae, rmse or r2; rocauc, prauc, accuracy or logloss; of several classes also "
            "multiclass-accuracy or multiclass-logloss."
        ),
    ] = None
    loss: Annotated[
        Literal["l1", "mse"] | None,
        Option("Of a regression on --csv; by default mse for the metrics rmse and r2, otherwise l1."),
    ] = None
    weights: Annotated[
        tuple[float, ...],
        Option("What each of --target-columns counts in the loss, such as 1,2,0.5.", "target-weights", read_weights),
    ] = ()
    folds: Annotated[int, Option("Train on --csv once per fold: every molecule is tested once.", default="")] = 0
    strip_salts: Annotated[bool, Option("Read only the largest organic part of each molecule of --csv.")] = False
    standardize: Annotated[
        Literal["parent", "tautomer"] | None,
        Option("Read the neutral parent of each molecule of --csv, or the canonical tautomer of that."),
    ] = None
    log10: Annotated[tuple[str, ...], Option("Target columns to learn by their logarithm.")] = ()
    negative_log_molar: Annotated[
        tuple[str, ...],
        Option("Unit of concentrations to learn as -log10 of M, such as nM, or COLUMN=UNIT for some columns."),
    ] = ()
    test_csv: Annotated[str | None, Option("Table to test on, with the columns of --csv.")] = None
    weight_column: Annotated[str | None, Option("Column of --csv that says how much a row counts.")] = None
    feature_columns: Annotated[
        tuple[str, ...], Option("Columns of --csv with conditions of measurements, such as temperature or assay.")
    ] = ()
    id_column: Annotated[
        str | None, Option("Column of --csv with names of its rows; by default one such as id, name or compound_id.")
    ] = None

    def __post_init__(self) -> None:
        if not self.targets:
            raise InputError("name the columns to predict with --target-columns")
        if len(set(self.targets)) < len(self.targets):
            raise InputError(f"a target column is named twice: {', '.join(self.targets)}")
        for name in (*self.targets, *self.names):
            if any("\udc80" <= character <= "\udcff" for character in name):
                raise InputError(f"{name!r} has bytes that are not UTF-8: save the table as UTF-8")
        self.check_split()
        self.check_task()
        self.check_scales()
        if len(set(self.feature_columns) - set(self.targets)) < len(self.feature_columns):
            raise InputError("--feature-columns names a column twice, or a target column")

    def check_split(self) -> None:
        """Raises InputError unless what is said of the splits fits together."""
        if (self.split in ("column", "time")) != (self.split_column is not None):
            raise InputError("--split column or time and --split-column NAME go together")
        if self.split == "column" and self.sizes != Sizes():
            raise InputError("--split-sizes does not go with --split column: the column says them")
        if self.folds and self.folds < 2:
            raise InputError(f"--folds {self.folds}: there are at least 2")
        if self.folds and self.split not in SPLITTERS:
            raise InputError(f"--folds goes with --split {', '.join(SPLITTERS)}; {self.split} makes one division alone")
        if self.folds and self.sizes != Sizes():
            raise InputError(
                "--split-sizes does not go with --folds: each fold is tested once, a tenth of the rows is validation"
            )

        if self.test_csv is not None and (self.folds or self.split_column is not None or self.sizes != Sizes()):
            raise InputError("--test-csv does not go with --folds, --split column, --split time and --split-sizes")

    def check_scales(self) -> None:
        """Raises InputError unless the scales are known and of target columns of numbers."""
        if (self.log10 or self.negative_log_molar) and "scales" not in OPTIONS[self.kind]:
            raise InputError("--log10 and --negative-log-molar are for --task regression")
        named = [*self.log10, *(name for name in self.molar_scales if name)]
        for name in named:
            if name not in self.targets:
                raise InputError(f"--log10 or --negative-log-molar names {name!r}, which is no target column")
        if len(set(named)) < len(named):
            raise InputError("a target column is named twice by --log10 and --negative-log-molar")

    def check_task(self) -> None:
        """Raises InputError unless what is said of the task suits its kind."""
        if self.balance and "balance" not in OPTIONS[self.kind]:
            raise InputError("--balance is for --task classification of columns of 0 and 1")
        if self.loss is not None and "loss" not in OPTIONS[self.kind]:
            raise InputError("--loss is for --task regression: a classification has its own")
        if self.weights and "weights" not in OPTIONS[self.kind]:
            raise InputError("--target-weights is for several columns: the classes of one column have no weights")
        if self.weights and len(self.weights) != len(self.targets):
            raise InputError(f"--target-weights has {len(self.weights)} numbers for {len(self.targets)} columns")
        if not all(0 < weight <= MAX_WEIGHT for weight in self.weights):
            raise InputError(f"--target-weights are above 0 and at most {MAX_WEIGHT:g}")
        TASKS[self.kind].find_metric(self.metric)

    @property
    def molar_scales(self) -> dict[str, Scale]:
        """The scales that ``negative_log_molar`` names, by target, "" standing for all others; raises InputError."""
        found = {}
        for text in self.negative_log_molar:
            name, equals, unit = text.rpartition("=")
            found[name if equals else ""] = molar_scale(unit)
        return found

    def scale_of(self, target: str) -> Scale:
        """The scale on which a target is learnt."""
        if target in self.log10:
            return "log10"
        return self.molar_scales.get(target, self.molar_scales.get("", ""))

    @property
    def scales(self) -> tuple[Scale, ...]:
        """Of all targets; none where all are learnt as they were measured."""
        found = tuple(self.scale_of(target) for target in self.targets)
        return found if any(found) else ()

    @property
    def names(self) -> tuple[str, ...]:
        """Of what is predicted: the target columns, by their scale; of several classes COLUMN_CLASS each."""
        if self.classes:
            return tuple(f"{self.targets[0]}_{name}" for name in self.classes)
        return tuple(modelled_name(target, self.scale_of(target)) for target in self.targets)

    @property
    def featurizer(self) -> str:
        """The name of what reads the molecules."""
        if self.standardize is not None:
            return prepared(FOR_TABLES, {"parent": "standardized", "tautomer": "tautomer"}[self.standardize])
        return without_salts(FOR_TABLES) if self.strip_salts else FOR_TABLES
