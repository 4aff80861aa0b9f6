"""How well a table model and each of its members do on the test rows, which they did not learn from.

Axis letters: K members, M test molecules, T targets.
"""

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from graphormer_sepnorm.chem.features import read_molecules
from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.predict import Nearness, calibrated, computed
from graphormer_sepnorm.inference.trust import evenly
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.device import Compute, computing, current
from graphormer_sepnorm.system.workers import Smiles, in_chunks, map_chunks
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import FittedTable
from graphormer_sepnorm.table_model.labels import Labels
from graphormer_sepnorm.table_model.model import Stacked, TableModel
from graphormer_sepnorm.table_model.reference import Body
from graphormer_sepnorm.tables.prepared_table import TABLE, read_labels
from graphormer_sepnorm.tasks import METRICS, TASKS, make_task
from graphormer_sepnorm.training.experiment import Scores
from graphormer_sepnorm.training.table_report import write_report
from graphormer_sepnorm.training.trusting import (
    MOST_COMPARED,
    ComparedMolecules,
    measure,
    measure_distances,
    molecule_errors,
)


@dataclass(frozen=True)
class StackScores(Scores):
    """Scores of a table model; in place of what networks predict it has what members do.

    Attributes:
        expected: [M, T], the spread of the predictions.
    """

    expected: np.ndarray | None = None

    @property
    def spread(self) -> np.ndarray:
        assert self.expected is not None
        return self.expected


def evaluate_table(run: RunFolder, split: str = "test") -> dict:
    """Scores the table model of a run folder on the test rows, as ``train`` does.

    Raises:
        InputError: another split, which the model learnt from, or a folder that cannot be read.
    """
    if split != "test":
        raise InputError(f"the table model in {run} learnt from all rows but those for test: score it on test")
    model = TableModel.load(run.path)
    plain = score_test(run, model)
    return plain.of(calibrated(plain.prediction, model.trust)).result


def report_table(run: RunFolder, fitted: FittedTable, labels: Labels, seed: int) -> dict:
    """Scores a fitted table model on the test rows of its run folder, and reports.

    Writes ``test.json``, ``predictions.csv``, pictures and ``report.html``.

    Returns:
        as ``evaluate_table``, and ``out_of_fold``, the scores of the members and of the whole on the rows that were
        learnt from; ``left_out_members``, why a member does not take part, if there is one; and ``trust``, what was
        measured of intervals, probabilities and distances.
    """
    plain, model, found = score_test(run, fitted.model), fitted.model, fitted.out_of_fold
    assert model.trust is not None
    test = plain.of(calibrated(plain.prediction, model.trust))
    looked = look_at_rows(run, model, test)
    names, predictions = [*model.members, "stack"], [*found.by_member, found.values]
    by_name = {
        name: TASKS[labels.task.kind].scores(labels.y, each) for name, each in zip(names, predictions, strict=True)
    }
    trust = {
        "calibrated_on": len(labels),
        "calibrated_by": "molecules, predicted out of fold",
        **measure(run, model.trust, plain, test),
        **measure_distances(run, labels.task, looked),
    }
    result = {**test.result, "seed": seed, "out_of_fold": by_name, "trust": trust}
    if fitted.left_out:
        result["left_out_members"] = fitted.left_out
    replace(test, result=result).write(run)
    write_report(run, result, test, looked)
    return result


def score_test(run: RunFolder, model: TableModel) -> StackScores:
    """The scores of a model and of its members on the test rows of a run folder, before calibration."""
    task = model.task
    smiles, y, bounds = read_labels(run.path / TABLE, task, "test")
    make_task(task).check_scorable(y, "test")
    found = predict_all(model, smiles)
    scores = TASKS[task.kind].scores
    members = {name: scores(y, each) for name, each in zip(model.members, found.by_member, strict=True)}
    result: dict = {
        "dataset": TABLE,
        "split": "test",
        "metric": task.metric,
        "value": METRICS[task.metric](y, found.values),
        "scores": scores(y, found.values),
        "n": len(y),
        "parameters": sum(p.numel() for network, _ in model.models for p in network.parameters()),
        "members": members,
        "weights": {
            name: dict(zip(task.targets, row.round(4).tolist(), strict=True))
            for name, row in zip(model.members, model.weights, strict=True)
        },
    }
    if "forest" in members:
        result["baseline"] = {"random_forest": members["forest"]}
    if missing := make_task(task).left_out(y):
        result["left_out"] = missing
    if np.isfinite(bounds).any():
        censored = np.isfinite(bounds).any(axis=2).sum(axis=0).tolist()
        result["censored"] = dict(zip(task.targets, censored, strict=True))
    return StackScores(result, task, y, found.values, found.by_member, run.path / TABLE, found.spread)


def predict_all(model: TableModel, smiles: Smiles) -> Stacked:
    """What a model and its members predict for readable molecules, of many in several processes."""
    parts = [part for _, part in map_chunks(partial(predict_chunk, model, current()), in_chunks(smiles), list)]
    return Stacked(
        np.concatenate([part.by_member for part in parts], axis=1),
        np.concatenate([part.values for part in parts]),
        np.concatenate([part.spread for part in parts]),
    )


def predict_chunk(model: TableModel, compute: Compute, smiles: Smiles) -> Stacked:
    with computing(compute):
        read = read_molecules(model.featurizer, smiles)
        return model.stacked(model.features(read, computed(read, model.outputs)))


def look_at_rows(run: RunFolder, model: TableModel, test: Scores) -> ComparedMolecules:
    """How the test molecules look to one who knows the training molecules only."""
    assert model.trust is not None
    smiles, domain = read_labels(run.path / TABLE, model.task, "test")[0], model.trust.domain
    mols, compared = [read_smiles(text) for text in smiles], evenly(len(smiles), MOST_COMPARED)
    similarity, distance = np.full(len(smiles), np.nan), np.full(len(smiles), np.nan)
    similarity[compared], molecules = domain.nearest(mols[row] for row in compared)
    nearest = dict(zip(compared.tolist(), molecules, strict=True))
    distance[compared] = domain.distance(Body(model.embedder)(MoleculeFeatures([smiles[row] for row in compared])))
    nearness = Nearness(similarity, [nearest.get(row, "") for row in range(len(smiles))], distance)
    return ComparedMolecules(
        smiles, nearness, domain.warnings(mols), molecule_errors(test.task, test.y, test.prediction)
    )
