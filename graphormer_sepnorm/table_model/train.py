"""A table model from a user's table into a run folder, scored on the test rows.

Axis letters: K members, M molecules of a split, T targets.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.signals import advising
from graphormer_sepnorm.table_model.evaluate import evaluate_table, report_table
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import FittedTable, fit_members, put_together
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.members.base import Fitted, Setting
from graphormer_sepnorm.table_model.stacking import make_folds
from graphormer_sepnorm.tables.label_text import bounds_of
from graphormer_sepnorm.tables.labels import LabelledRow, LabelledTable, TableOptions
from graphormer_sepnorm.tables.prepared_table import write_labelled
from graphormer_sepnorm.tables.splits import Structures
from graphormer_sepnorm.tasks import make_task
from graphormer_sepnorm.training.own_table import Plan


def train_stack(
    labelled: LabelledTable, options: TableOptions, config: Config, whole: RunFolder, plan: Plan, quick: bool = False
) -> dict:
    """Fits a table model to the rows that are not for test, writes it, and scores it on those that are.

    The kernel is written first, so that ``predict`` works while the networks are trained.

    Args:
        labelled: the table, read and divided; its training and validation rows are learnt from alike.
        options: how it was read.
        config: of the networks.
        whole: the run folder.
        plan: how many networks there are, which members take part, and whether to go on.
        quick: stop after the kernel.

    Returns:
        as ``report_table``.

    Raises:
        InputError: the folder holds a model already, the table cannot be learnt from, or the folder cannot be written.
    """
    if whole.stack.exists() and not plan.resume:
        raise InputError(f"{whole} already holds a model: continue it with --resume, or choose another --out")
    rows, structures = rows_to_learn(labelled)
    labels = labels_of(rows, config.task)
    config = replace(config, task=labels.task)
    if distributed.rank() == 0:
        whole.path.mkdir(parents=True, exist_ok=True)
        write_labelled(whole.path, labelled, config, options)
    distributed.wait_for_all()
    molecules = MoleculeFeatures([row.smiles for row in rows])
    folds = make_folds(structures, labels, options.split, config.train.seed, plan.members)
    setting = Setting(config, whole.path, plan.resume, verbose=True)
    with advising(f"{whole} keeps what is done: the same command and --resume does the rest"):
        fitted: dict[str, Fitted] = {}
        left_out: dict[str, str] = {}
        for step in steps(plan, quick):
            found, refused = fit_members(molecules, labels, folds, setting, step)
            fitted, left_out = fitted | found, left_out | refused
            if fitted.keys() & {"kernel", "networks"}:
                model, out_of_fold = put_together(fitted, molecules, labels, folds, setting)
                if distributed.rank() == 0:
                    model.save(whole.path)
        if not fitted.keys() & {"kernel", "networks"}:
            raise InputError("; ".join(f"{name}: {reason}" for name, reason in left_out.items()))
        if distributed.rank() > 0:
            return evaluate_table(whole)
        return report_table(whole, FittedTable(model, out_of_fold, left_out), labels, config.train.seed)


def steps(plan: Plan, quick: bool) -> list[list[str]]:
    """The names of the members that are fitted together, one step after another."""
    if quick:
        return [["kernel"]]
    if not plan.blend:
        return [["networks"]]
    return [["kernel"], [name for name in MEMBERS if name != "kernel" and (plan.baseline or name != "forest")]]


def rows_to_learn(labelled: LabelledTable) -> tuple[list[LabelledRow], Structures]:
    """All rows that are not for test, and their structures."""
    places = [place for place, row in enumerate(labelled.rows) if row.split != "test"]
    known = labelled.structures
    parts = ([whole[place] for place in places] for whole in (known.smiles, known.scaffolds, known.keys))
    return [labelled.rows[place] for place in places], Structures(*parts)


def labels_of(rows: Sequence[LabelledRow], task: TaskConfig) -> Labels:
    """The labels of rows and what bounds them, with the scale of the task."""
    y = np.array([row.labels for row in rows], np.float64)
    bounds = None
    if any(row.bounds for row in rows):
        bounds = np.array([[bounds_of(row.bounds.get(place, "")) for place in range(y.shape[1])] for row in rows])
    return Labels(make_task(task).fitted(y), y, bounds, names=np.array([str(row.number) for row in rows]))
