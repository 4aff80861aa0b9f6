"""A report of which only the parts are there that a test gives."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.predict.training_rows import TrainingRows
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.model import Stacked
from graphormer_sepnorm.tables.labels import LabelledRow, LabelledTable, TableOptions
from graphormer_sepnorm.tables.splits import MoleculeStructure, Structures
from graphormer_sepnorm.tasks import TASKS


def reported(
    result: dict | None = None,
    kind: str = "regression",
    targets: tuple[str, ...] = ("a", "b"),
    metric: str | None = None,
    test: dict | None = None,
    options: dict | None = None,
    y: np.ndarray | None = None,
    class_names: tuple[tuple[str, str], ...] = (),
    **parts,
) -> Reported:
    """A report with a result and some of its other parts; ``test`` and ``options`` add to the usual ones."""
    classes = {"classes": targets} if kind == "multiclass" else {}
    known = TableOptions("a.csv", ("y",) if kind == "multiclass" else targets, kind, **classes, **(options or {}))
    scaling = {"mean": (0.0,) * 2, "std": (2.0,) * len(targets)}
    task = TaskConfig(kind, TASKS[kind].find_metric(metric), known.names, **scaling, class_names=class_names)
    no_rows = dict.fromkeys(("y", "prediction"), np.empty((0, len(known.names)))) | {"bounds": None}
    scores = SimpleNamespace(task=task, result=result or {}, **no_rows | (test or {}))
    y = np.empty((0, len(known.names))) if y is None else y
    model = SimpleNamespace(final=lambda values: values, members={}, trust=None)
    known_of = SimpleNamespace(model=model, out_of_fold=Stacked(y[None] * 0, y * 0, y * 0))
    empty = dict.fromkeys(("molecules", "looked")) | {"folds": Folds(np.arange(min(2, len(y))))}
    table = {"fitted": known_of, "labels": Labels(task, y), "labelled": LabelledTable(), "options": known}
    return Reported(**empty | table | {"run": RunFolder(Path("run")), "test": scores} | parts)


def fitted(labels: list[list[float]], names: tuple[str, ...] = (), **parts) -> SimpleNamespace:
    """A model that knows the labels and the names of its training molecules."""
    rows = TrainingRows.of(np.array(labels)).named(names or [str(number) for number in range(1, len(labels) + 1)])
    trust = SimpleNamespace(rows=rows, **parts.pop("trust", {}))
    return SimpleNamespace(model=SimpleNamespace(trust=trust, **parts.pop("model", {})), **parts)


def table(*rows: tuple[str, str, list[float]], **parts) -> LabelledTable:
    """A table of rows with their splits, SMILES and labels."""
    labelled = [LabelledRow(number, smiles, y, split) for number, (split, smiles, y) in enumerate(rows, 1)]
    smiles = [row.smiles for row in labelled]
    parts.setdefault("structures", Structures(MoleculeStructure(text, "", text) for text in smiles))
    return LabelledTable(labelled, **parts)
