"""What a report on a run on a table says: gathered here, laid out by ``runs.report``."""

import csv
import json
import shlex
from pathlib import Path

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.dataset import SPLITS
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.inference.explain import Explanation, integrated_gradients
from graphormer_sepnorm.inference.pictures import draw, draw_plain
from graphormer_sepnorm.inference.pretrained import Graphormer
from graphormer_sepnorm.runs.folder import RunFolder, member_paths
from graphormer_sepnorm.runs.plots import MAX_PANELS, as_png, draw_precision_recall, panels_of_targets
from graphormer_sepnorm.runs.report import Grid, Molecule, Picture, ReportPage, Section, render
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.tables.prepared_table import DUPLICATES, SKIPPED, TABLE, read_rows
from graphormer_sepnorm.tasks import METRICS, TASKS
from graphormer_sepnorm.training.experiment import Scores
from graphormer_sepnorm.training.trusting import ComparedMolecules, error_words
from graphormer_sepnorm.version import __version__

WORST = 8
EXPLAINED = 4
UNDEFINED = "not defined"


def write_report(run: RunFolder, result: dict, final: Scores, looked: ComparedMolecules) -> None:
    """Writes ``report.html``.

    Args:
        run: of one model on a table, or of an ensemble; its pictures are there.
        result: what ``finish_table`` returns.
        final: the test scores of what ``predict`` predicts.
        looked: at the test molecules.

    Raises:
        InputError: the folder cannot be written.
    """
    sections = (
        scores_section(run, result, final),
        data_section(run, final),
        trust_section(run, result, final),
        distance_section(run, result, final),
        worst_section(final, looked),
        *(contributions_section(run, final, looked) if has_networks(run) else ()),
        *(training_section(run) if has_networks(run) else ()),
        use_section(run, result),
    )
    targets = ", ".join(final.task.targets)
    summary = (
        f"A {final.task.kind} of {targets}. On {result['n']} test molecules the prediction has a "
        f"{result['metric']} of {shown(result['value'])}{forest_words(result)}."
    )
    content = render(ReportPage(f"{run.path.name}: {targets}", summary, sections, __version__))
    write_atomically(run.report, content)


def has_networks(run: RunFolder) -> bool:
    return RunFolder(member_paths(run.path)[0]).weights.exists()


def shown(value: float | None) -> str:
    return UNDEFINED if value is None or not np.isfinite(value) else f"{value:.4g}"


def forest_score(result: dict) -> float | None:
    """The forest's score in the metric of the run."""
    return result.get("baseline", {}).get("random_forest", {}).get(result["metric"])


def forest_words(result: dict) -> str:
    """How the forest does beside the prediction; "" if that is not known."""
    score = forest_score(result)
    if score is None:
        return ""
    better = METRICS[result["metric"]].improves(score, result["value"])
    return f"; a random forest alone has {shown(score)}" + (", which is better" if better else "")


def scores_section(run: RunFolder, result: dict, final: Scores) -> Section:
    metrics = TASKS[final.task.kind].reported
    found = {"prediction": result["scores"]}
    if "members" in result:
        found |= {f"{name} alone": scores for name, scores in result["members"].items()}
    else:
        found["networks alone"] = result.get("network")
        found["random forest alone"] = result.get("baseline", {}).get("random_forest")
    rows = tuple((name, *(shown(scores.get(metric)) for metric in metrics)) for name, scores in found.items() if scores)
    networks = f"{len(final.by_network)} networks" if len(final.by_network) > 1 else "the network"
    words = ["Scores on the test molecules, means over the targets."]
    if "weights" in result:
        words.append(
            "The prediction is a mean of its members. Their weights were learnt from predictions for molecules that "
            f"they did not see: {weight_words(result['weights'])}."
        )
    if result.get("forest_weight"):
        words.append(
            f"The prediction is the mean of {networks} and a random forest, which has a weight of "
            f"{result['forest_weight']:g}, chosen by validation."
        )
    pictures = [png(run.predictions_picture(final.task.kind), prediction_words(final.task))]
    if TASKS[final.task.kind].calibrated_by == "probabilities":
        figure = panels_of_targets(final.task.targets, final.y, final.prediction, draw_precision_recall)
        pictures.append(Picture("png", as_png(figure), "Precision and recall; grey: the share of class 1."))
    return Section("Scores", tuple(words), (Grid(("", *metrics), rows),), tuple(pictures))


def weight_words(weights: dict[str, dict[str, float]]) -> str:
    """The weight of each member, of several targets as a range."""
    words = []
    for name, by_target in weights.items():
        lowest, highest = (f"{choose(by_target.values()):.2f}" for choose in (min, max))
        words.append(f"{name} {lowest}" + (f" to {highest}" if highest != lowest else ""))
    return ", ".join(words)


def prediction_words(task: TaskConfig) -> str:
    curves = TASKS[task.kind].predicts_probabilities
    return "ROC curves, test molecules." if curves else "Predicted against measured, test molecules."


def png(path: Path, words: str) -> Picture:
    return Picture("png", path.read_bytes(), words)


def data_section(run: RunFolder, final: Scores) -> Section:
    folder = run.path if (run.path / TABLE).exists() else member_paths(run.path)[0]
    options = json.loads((folder / TABLE).with_suffix(".json").read_bytes())["options"]
    targets = final.task.targets[:MAX_PANELS]
    rows = []
    for split in SPLITS:
        _, y = read_rows(folder / TABLE, final.task, split)
        rows.append((split, str(len(y)), *(str((~np.isnan(column)).sum()) for column in y.T[: len(targets)])))
    counts = Grid(("split", "molecules", *(f"labels of {name}" for name in targets)), tuple(rows))
    words = [
        f"{options['path']} was split by {split_words(options)}.",
        f"{rows_of(folder / SKIPPED)} rows were skipped ({SKIPPED} says why); "
        f"{rows_of(folder / DUPLICATES)} rows are of molecules that stand in several ({DUPLICATES} names them).",
    ]
    return Section("Data and split", tuple(words), (counts,))


def split_words(options: dict) -> str:
    if options["split"] == "column":
        return f"the column {options['split_column']}"
    if options.get("folds"):
        return f"{options['split']} into {options['folds']} folds, one of which is tested here, seed {options['seed']}"
    sizes = ":".join(f"{100 * options['sizes'][name]:g}" for name in SPLITS)
    if options["split"] == "time":
        return f"the times in the column {options['split_column']}, {sizes}"
    return f"{options['split']}, {sizes}, seed {options['seed']}"


def rows_of(path: Path) -> int:
    """The rows of a table of ours, without its header."""
    with open(path, newline="", encoding="utf-8", errors="surrogateescape") as file:
        return sum(1 for _ in csv.reader(file)) - 1


def trust_section(run: RunFolder, result: dict, final: Scores) -> Section:
    trust, targets = result["trust"], final.task.targets
    calibrated_on = f"{trust['calibrated_on']} {trust.get('calibrated_by', 'validation molecules')}"
    if "coverage" in trust:
        header = ("confidence", *(f"{name}: {what}" for name in targets for what in ("held", "mean width")))
        rows = tuple(
            (
                confidence,
                *(shown(trust[what][confidence][name]) for name in targets for what in ("coverage", "mean_width")),
            )
            for confidence in trust["coverage"]
        )
        return Section(
            "Intervals",
            (
                f"Intervals are learnt from the errors on {calibrated_on}. Beside each confidence stands the share of "
                f"the test labels that lie in their interval. {UNDEFINED.capitalize()}: it needs more of "
                "these.",
            ),
            (Grid(header, rows),),
            (png(run.calibration_picture, "The share of test labels in their interval, by confidence."),),
        )
    if "brier" in trust:
        names = {"calibration_error": "calibration error", "brier": "Brier score"}
        header = ("", *(f"{name}, {stage}" for name in names.values() for stage in ("before", "after")))
        rows = tuple(
            (target, *(shown(trust[name][stage][target]) for name in names for stage in ("before", "after")))
            for target in targets
        )
        return Section(
            "Calibration",
            (
                f"Probabilities are calibrated on {calibrated_on}, by Platt's scaling. The calibration error is by how "
                "much they miss the share of class 1 on the test molecules, before and after.",
            ),
            (Grid(header, rows),),
            (png(run.calibration_picture, "How often class 1 occurs where it is said to have a probability."),),
        )
    if TASKS[final.task.kind].calibrated_by is None:
        return Section("Probabilities", ("Those of several classes are not calibrated, and have no intervals.",))
    return Section("Intervals", ("There are none: a target has no labels among the validation molecules.",))


def distance_section(run: RunFolder, result: dict, final: Scores) -> Section:
    trust = result["trust"]
    rows = tuple(
        (f"{part['from']:g} to {part['to']:g}", str(part["n"]), shown(part["error"]))
        for part in trust["error_by_similarity"]
    )
    return Section(
        "Distance to the training molecules",
        (
            "How wrong predictions are for test molecules that are like a training molecule, and for others. "
            f"{trust['unfamiliar']} test molecules have an element, a charge or a size that no training molecule has.",
        ),
        (Grid(("similarity", "test molecules", f"mean {error_words(final.task)}"), rows),),
        (png(run.distance_picture, f"The {error_words(final.task)} against two distances, with its mean."),),
    )


def worst_section(final: Scores, looked: ComparedMolecules) -> Section:
    order = np.argsort(-np.nan_to_num(looked.errors, nan=-1.0), kind="stable")[:WORST]
    molecules = tuple(worst_molecule(final, looked, row) for row in order.tolist() if looked.errors[row] > 0)
    return Section("Worst predictions", ("The test molecules with the largest errors.",), molecules=molecules)


def worst_molecule(final: Scores, looked: ComparedMolecules, row: int) -> Molecule:
    facts = [
        (name, f"{measured:.4g} measured, {predicted:.4g} predicted")
        for name, measured, predicted in zip(final.task.targets, final.y[row], final.prediction[row], strict=True)
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


def contributions_section(run: RunFolder, final: Scores, looked: ComparedMolecules) -> tuple[Section]:
    """Of the molecules with the lowest and the highest predictions of the first target."""
    model = Graphormer.from_pretrained(member_paths(run.path)[0])
    order = np.argsort(final.prediction[:, 0], kind="stable")
    rows = dict.fromkeys([*order[: EXPLAINED // 2].tolist(), *order[-EXPLAINED // 2 :].tolist()])
    explanations: list[Explanation] = []
    for row in rows:
        try:
            explanations.append(integrated_gradients(model, looked.smiles[row]))
        except InputError:
            continue
    pictures = tuple(Picture("svg", draw([explanation], ".svg"), explanation.caption) for explanation in explanations)
    words = (
        "What each atom adds to the prediction of the first network, by integrated gradients: for the test molecules "
        f"with the lowest and the highest predictions of {final.task.targets[0]}.",
    )
    return (Section("Contributions of atoms", words, pictures=pictures),)


def training_section(run: RunFolder) -> tuple[Section]:
    members = [RunFolder(path) for path in member_paths(run.path)]
    pictures = tuple(
        png(member.curves, f"{member.path.name}: loss and validation score")
        for member in members[:MAX_PANELS]
        if member.curves.exists()
    )
    return (Section("Training", pictures=pictures),)


def use_section(run: RunFolder, result: dict) -> Section:
    folder = shlex.quote(str(run.path))
    held = result["trust"].get("coverage", {})
    possible = [confidence for confidence, shares in held.items() if None not in shares.values()]
    confidence = "0.9" if "0.9" in possible else possible[-1] if possible else None
    interval = f" --interval {confidence}" if confidence else ""
    return Section(
        "How to use the model",
        ("From the command line, from the folder that the training was started in:",),
        commands=(
            f"graphormer-sepnorm predict {folder} molecules.csv -o predictions.csv{interval} --domain",
            f"graphormer-sepnorm evaluate {folder}",
            "from graphormer_sepnorm.inference.predict import load_predictor\n\n"
            f'predictions = load_predictor([{str(run.path)!r}]).predict(["CCO", "c1ccccc1O"])\n'
            "print(predictions.values, predictions.warnings)",
        ),
    )
