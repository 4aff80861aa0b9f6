"""The content of a table model's report: one function per section; ``page`` does the layout."""

import csv
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.smiles import read_smiles
from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.dataset import SPLITS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.domain import evenly
from graphormer_sepnorm.inference.pictures import draw, draw_plain
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.plots import MAX_PANELS, as_png, draw_precision_recall, panels_of_targets
from graphormer_sepnorm.table_model.evaluate import StackScores
from graphormer_sepnorm.table_model.explain import explain_rows
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.pairs import Change, Cliff, activity_cliffs, matched_changes, parts_of
from graphormer_sepnorm.table_model.reliability import ComparedMolecules, error_words
from graphormer_sepnorm.table_model.report.page import Grid, Molecule, Picture, Section
from graphormer_sepnorm.table_model.scores import MEAN, RESAMPLES, STACK
from graphormer_sepnorm.tables.labels import TableOptions
from graphormer_sepnorm.tables.prepared_table import DUPLICATES, SKIPPED, TABLE, read_rows
from graphormer_sepnorm.tasks import METRICS, TASKS

WORST = 8
EXPLAINED = 4
CHANGES = 10
CLIFFS = 4
MOST_PAIRED = 2_000  # molecules that are compared pairwise
UNDEFINED = "not defined"
NAMES = {STACK: "prediction", MEAN: "mean of the training labels"}


@dataclass(frozen=True)
class Reported:
    """The run that a report describes.

    Attributes:
        run: the run folder, with its pictures.
        model: the table model.
        options: how its table was read.
        test: the scores of what ``predict`` predicts; their ``result`` is that of ``report_table``.
        looked: the test molecules, compared with the training molecules.
    """

    run: RunFolder
    model: TableModel
    options: TableOptions
    test: StackScores
    looked: ComparedMolecules

    @property
    def result(self) -> dict:
        return self.test.result

    @property
    def task(self) -> TaskConfig:
        return self.test.task

    @property
    def networks(self) -> list[RunFolder]:
        """The run folders of the networks in the table model."""
        return self.run.members() if "networks" in self.result["members"] else []


def summary(page: Reported) -> str:
    """The first paragraph."""
    result = page.result
    forest = result.get("baseline", {}).get("random_forest", {}).get(result["metric"])
    words = ""
    if forest is not None:
        better = METRICS[result["metric"]].improves(forest, result["value"])
        words = (
            f" A random forest trained on the same data scores {shown(forest)}{', which is better' if better else ''}."
        )
    return (
        f"A {page.task.kind} model of {', '.join(page.task.targets)}. On {result['n']} test molecules, the "
        f"{METRICS[result['metric']].title} of its predictions is {shown(result['value'])}.{words}"
    )


def shown(value: float | None) -> str:
    return UNDEFINED if value is None or not np.isfinite(value) else f"{value:.4g}"


def shown_interval(ends: list[float] | None) -> str:
    return UNDEFINED if ends is None else f"{ends[0]:.4g} to {ends[1]:.4g}"


def scores_section(page: Reported) -> Section:
    """Scores of each target by each member, with intervals."""
    metric, reported = page.result["metric"], TASKS[page.task.kind].reported
    words = [
        "Scores on the test molecules. The 95 % interval of the "
        f"{METRICS[metric].title} comes from {RESAMPLES:,} bootstrap resamples of the test molecules.",
        "The prediction is a weighted mean of its members. The weights were fitted on out-of-fold predictions: "
        f"{weight_words(page.result['weights'])}.",
    ]
    for name, reason in page.result.get("left_out_members", {}).items():
        words.append(f"The member {name} was left out: {reason}.")
    words += [f"{remark[:1].upper()}{remark[1:]}." for remark in page.result.get("remarks", {}).values()]
    for target, facts in page.result["targets"].items():
        words += comparison_words(target, metric, facts)
    grids = tuple(scores_grid(name, facts, metric, reported) for name, facts in page.result["targets"].items())
    pictures = [png(page.run.predictions_picture(page.task.kind), prediction_words(page.task))]
    if TASKS[page.task.kind].calibrated_by == "probabilities":
        figure = panels_of_targets(page.task.targets, page.test.y, page.test.prediction, draw_precision_recall)
        pictures.append(Picture("png", as_png(figure), "Precision-recall curves; grey: the share of class 1."))
    return Section("Scores", tuple(words), grids, tuple(pictures))


def comparison_words(target: str, metric: str, facts: dict) -> list[str]:
    """Sentences on a target: a warning, and the difference between the prediction's score and the forest's."""
    words = [f"{target}: {facts['warning']}."] if "warning" in facts else []
    against = facts.get("against_forest")
    if against and against["interval"] is not None:
        words.append(
            f"{target}: the {METRICS[metric].title} of the prediction minus that of the forest is "
            f"{shown(against['difference'])} (95 % interval {shown_interval(against['interval'])})."
        )
    return words


def scores_grid(target: str, facts: dict, metric: str, reported: tuple[str, ...]) -> Grid:
    """The scores of one target, one row per prediction."""
    rows = tuple(
        (
            NAMES.get(name, f"{name} on its own"),
            *(shown(scores[each]) for each in reported),
            *([shown_interval(facts["interval"][name])] if "interval" in facts else []),
        )
        for name, scores in facts["scores"].items()
    )
    titles = (METRICS[each].title for each in reported)
    header = ("", *titles, *([f"95 % interval of the {METRICS[metric].title}"] if "interval" in facts else []))
    return Grid(header, rows, f"{target}, {facts['n']} labels")


def weight_words(weights: dict[str, dict[str, float]]) -> str:
    """The weight of each member, as a range if there are several targets."""
    words = []
    for name, by_target in weights.items():
        lowest, highest = (f"{choose(by_target.values()):.2f}" for choose in (min, max))
        words.append(f"{name} {lowest}" + (f" to {highest}" if highest != lowest else ""))
    return ", ".join(words)


def prediction_words(task: TaskConfig) -> str:
    curves = TASKS[task.kind].predicts_probabilities
    return "ROC curves on the test molecules." if curves else "Predicted vs. measured values of the test molecules."


def png(path: Path, words: str) -> Picture:
    return Picture("png", path.read_bytes(), words)


def data_section(page: Reported) -> Section:
    """The table and how it was split."""
    folder, targets = page.run.path, page.task.targets[:MAX_PANELS]
    rows = []
    for split in SPLITS:
        _, y = read_rows(folder / TABLE, page.task, split)
        rows.append((split, str(len(y)), *(str((~np.isnan(column)).sum()) for column in y.T[: len(targets)])))
    counts = Grid(("split", "molecules", *(f"labels of {name}" for name in targets)), tuple(rows))
    words = (
        f"{page.options.path} was split by {split_words(page.options)}. The model is fitted to both the training and "
        "the validation molecules.",
        f"{rows_of(folder / SKIPPED)} rows were skipped ({SKIPPED} gives the reasons). "
        f"{rows_of(folder / DUPLICATES)} rows are of molecules that appear more than once ({DUPLICATES} lists them).",
    )
    return Section("Data and split", words, (counts,))


def split_words(options: TableOptions) -> str:
    if options.split == "column":
        return f"the column {options.split_column}"
    if options.folds:
        return f"{options.split} into {options.folds} folds, one of which is the test set here, seed {options.seed}"
    sizes = ":".join(f"{100 * getattr(options.sizes, name):g}" for name in SPLITS)
    if options.split == "time":
        return f"the times in the column {options.split_column}, {sizes}"
    return f"{options.split}, {sizes}, seed {options.seed}"


def rows_of(path: Path) -> int:
    """The number of rows of a table that this package wrote, without the header."""
    with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
        return sum(1 for _ in csv.reader(file)) - 1


def trust_section(page: Reported) -> Section:
    """The coverage of the intervals, or the calibration of the probabilities."""
    trust = page.result["trust"]
    if "coverage" in trust:
        return intervals_section(page)
    if "brier" in trust:
        return calibration_section(page)
    if TASKS[page.task.kind].calibrated_by is None:
        return Section("Probabilities", ("Multiclass probabilities are not calibrated and have no intervals.",))
    return Section("Intervals", (f"No intervals: a target has no labels among the {trust['calibrated_by']}.",))


def intervals_section(page: Reported) -> Section:
    trust, targets = page.result["trust"], page.task.targets
    header = ("confidence", *(f"{name}: {what}" for name in targets for what in ("coverage", "mean width")))
    rows = tuple(
        (
            confidence,
            *(shown(trust[what][confidence][name]) for name in targets for what in ("coverage", "mean_width")),
        )
        for confidence in trust["coverage"]
    )
    words = (
        f"Intervals are calibrated on the errors for {trust['calibrated_on']} {trust['calibrated_by']}. For each "
        f"confidence level: the share of test values inside their interval (coverage). {UNDEFINED.capitalize()}: this "
        "level needs more calibration molecules.",
    )
    picture = png(page.run.calibration_picture, "Coverage of the test values by confidence level.")
    return Section("Intervals", words, (Grid(header, rows),), (picture,))


def calibration_section(page: Reported) -> Section:
    trust = page.result["trust"]
    names = {"calibration_error": "calibration error", "brier": "Brier score"}
    header = ("", *(f"{name}, {stage}" for name in names.values() for stage in ("before", "after")))
    rows = tuple(
        (target, *(shown(trust[name][stage][target]) for name in names for stage in ("before", "after")))
        for target in page.task.targets
    )
    words = (
        f"Probabilities are calibrated on {trust['calibrated_on']} {trust['calibrated_by']} by Platt scaling. The "
        "calibration error is the mean difference between the predicted probabilities and the observed share of class "
        "1 on the test molecules, before and after calibration.",
    )
    picture = png(page.run.calibration_picture, "Observed share of class 1 by predicted probability.")
    return Section("Calibration", words, (Grid(header, rows),), (picture,))


def distance_section(page: Reported) -> Section:
    """Errors by the distance to the training molecules."""
    trust = page.result["trust"]
    rows = tuple(
        (f"{part['from']:g} to {part['to']:g}", str(part["n"]), shown(part["error"]))
        for part in trust["error_by_similarity"]
    )
    words = (
        "Errors on the test molecules by their similarity to the nearest training molecule. "
        f"{trust['unfamiliar']} test molecules have an element, a charge or a size that no training molecule has.",
    )
    grid = Grid(("similarity", "test molecules", f"mean {error_words(page.task)}"), rows)
    picture = png(page.run.distance_picture, f"The {error_words(page.task)} vs. two distances, with its mean.")
    return Section("Distance to the training molecules", words, (grid,), (picture,))


def worst_section(page: Reported) -> Section:
    """The test molecules with the largest errors."""
    errors = page.looked.errors
    order = np.argsort(-np.nan_to_num(errors, nan=-1.0), kind="stable")[:WORST]
    molecules = tuple(worst_molecule(page, row) for row in order.tolist() if errors[row] > 0)
    return Section("Worst predictions", ("The test molecules with the largest errors.",), molecules=molecules)


def worst_molecule(page: Reported, row: int) -> Molecule:
    test, looked = page.test, page.looked
    facts = [
        (name, f"{measured:.4g} measured, {predicted:.4g} predicted")
        for name, measured, predicted in zip(page.task.targets, test.y[row], test.prediction[row], strict=True)
        if not np.isnan(measured)
    ]
    similarity = looked.nearness.similarity[row]
    if np.isfinite(similarity):
        facts.append(("similarity", f"{similarity:.2f} to {looked.nearness.molecule[row]}"))
    if looked.warnings[row]:
        facts.append(("warning", looked.warnings[row]))
    return Molecule(looked.smiles[row], plain_picture(looked.smiles[row]), tuple(facts[:MAX_PANELS]))


def plain_picture(smiles: str) -> Picture | None:
    try:
        return Picture("svg", draw_plain(smiles), f"structure of {smiles}")
    except InputError:
        return None


def contributions_section(page: Reported) -> Section | None:
    """Atom contributions for the molecules with the lowest and the highest predictions of the first target."""
    if page.model.conditions.columns:
        return None
    order = np.argsort(page.test.prediction[:, 0], kind="stable")
    rows = dict.fromkeys([*order[: EXPLAINED // 2].tolist(), *order[-EXPLAINED // 2 :].tolist()])
    found = explain_rows(page.model, [page.looked.smiles[row] for row in rows]).values()
    pictures = tuple(
        Picture("svg", draw([each], ".svg"), each.caption) for each in found if not isinstance(each, InputError)
    )
    words = (
        "The contribution of each atom to the prediction, for the test molecules with the lowest and the highest "
        f"predicted values of {page.task.targets[0]}.",
    )
    return Section("Atom contributions", words, pictures=pictures)


def pairs_section(page: Reported) -> Section | None:
    """The replacements with the largest effect, and the steepest activity cliffs of the first target."""
    if TASKS[page.task.kind].predicts_probabilities:
        return None
    smiles, y = learnt_rows(page)
    mols = [read_smiles(text) for text in smiles]
    parts = [parts_of(mol) for mol in mols]
    grids = []
    for target, labels in list(zip(page.task.targets, y.T, strict=True))[:MAX_PANELS]:
        if changes := matched_changes(parts, labels)[:CHANGES]:
            grids.append(changes_grid(target, changes))
    cliffs = activity_cliffs(mols, y[:, 0])[:CLIFFS]
    words = (
        "The tables list the replacements of one part of a molecule that change the value most. Each mean is over all "
        "pairs of training molecules that differ only in this part. Activity cliffs are pairs of similar molecules "
        f"with very different values, which are hard to predict. Shown: the steepest of {page.task.targets[0]}.",
    )
    molecules = [
        cliff_molecule(page.task.targets[0], smiles[place], y[place, 0], cliff)
        for cliff in cliffs
        for place in (cliff.lower, cliff.higher)
    ]
    return (
        Section("Matched pairs and activity cliffs", words, tuple(grids), molecules=tuple(molecules))
        if grids or cliffs
        else None
    )


def learnt_rows(page: Reported) -> tuple[list[str], np.ndarray]:
    """The training molecules and their labels [M, T]; of many, an evenly spaced subset."""
    parts = [read_rows(page.run.path / TABLE, page.task, split) for split in ("train", "val")]
    smiles, y = [text for texts, _ in parts for text in texts], np.concatenate([labels for _, labels in parts])
    kept = evenly(len(smiles), MOST_PAIRED)
    return [smiles[place] for place in kept], y[kept]


def changes_grid(target: str, changes: list[Change]) -> Grid:
    rows = tuple(
        (change.before, change.after, f"{change.mean:+.3g}", f"{change.deviation:.2g}", str(len(change.pairs)))
        for change in changes
    )
    return Grid(("from", "to", "mean change", "standard deviation", "pairs"), rows, target)


def cliff_molecule(target: str, smiles: str, label: float, cliff: Cliff) -> Molecule:
    facts = ((target, f"{label:.4g}"), ("similarity of the pair", f"{cliff.similarity:.2f}"))
    return Molecule(smiles, plain_picture(smiles), facts)


def training_section(page: Reported) -> Section | None:
    """The curves of the networks."""
    pictures = tuple(
        png(network.curves, f"{network.path.name}: loss and score on the held-out rows")
        for network in page.networks[:MAX_PANELS]
        if network.curves.exists()
    )
    return Section("Training", pictures=pictures) if pictures else None


def use_section(page: Reported) -> Section:
    """Commands to copy."""
    folder = shlex.quote(str(page.run.path))
    held = page.result["trust"].get("coverage", {})
    possible = [confidence for confidence, shares in held.items() if None not in shares.values()]
    confidence = "0.9" if "0.9" in possible else possible[-1] if possible else None
    option = f" --interval {confidence}" if confidence else ""
    argument = f", interval={confidence}" if confidence else ""
    return Section(
        "How to use the model",
        ("Run these in the folder in which training was started, on the command line or in Python:",),
        commands=(
            f"graphormer-sepnorm predict {folder} molecules.csv -o predictions.csv{option} --domain",
            f"graphormer-sepnorm evaluate {folder}",
            "from graphormer_sepnorm import load_model\n\n"
            f'print(load_model({str(page.run.path)!r}).predict(["CCO", "c1ccccc1O"]{argument}, domain=True))',
        ),
    )


SECTIONS: tuple[Callable[[Reported], Section | None], ...] = (
    scores_section,
    data_section,
    trust_section,
    distance_section,
    worst_section,
    contributions_section,
    pairs_section,
    training_section,
    use_section,
)
