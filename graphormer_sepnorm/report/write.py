"""The end of training on a table: scores, predictions, pictures and the report, also of folds and of all rows.

``lines`` are those of ``predictions.csv``: a header, and for each molecule row, SMILES, fold, labels and predictions.
"""

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.predictors import Nearness
from graphormer_sepnorm.predict.trust import Trust, calibrated
from graphormer_sepnorm.report.headline import cards, notes, summary, verdicts
from graphormer_sepnorm.report.page import ReportPage, glossary, render
from graphormer_sepnorm.report.predictions import hero, structures
from graphormer_sepnorm.report.reported import Reported, Trained
from graphormer_sepnorm.report.scores import learning_curve
from graphormer_sepnorm.report.sections import LATE, SECTIONS
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system import distributed
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.table_model import evaluate, reliability
from graphormer_sepnorm.table_model import scores as measures
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import FittedTable, fit_trust
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.model import Stacked, TableModel
from graphormer_sepnorm.table_model.stacking import each_by_itself
from graphormer_sepnorm.tables.labels import LabelledTable
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import TABLE, label_texts
from graphormer_sepnorm.tables.splits import KNOWN, Structures
from graphormer_sepnorm.tables.writers.base import as_csv
from graphormer_sepnorm.tasks import make_task
from graphormer_sepnorm.training.experiment import prediction_lines


def report(trained: Trained) -> dict:
    """Scores a model on its test rows, or without such out of fold; writes all files of the run with its predictions.

    The result is that of ``evaluate_table``, with ``facts_out_of_fold`` and perhaps a ``learning_curve``.
    """
    if trained.options.final:
        return report_final(trained)
    run, fitted, labels, folds = trained.run, trained.fitted, trained.labels, trained.folds
    model, rows = fitted.model, evaluate.rows_for_test(run, fitted.model)
    assert model.trust is not None
    scored = evaluate.score_rows(model, rows, evaluate.means_of(run, model))
    looked = reliability.compare_rows(model, rows.smiles, scored, [sample.conditions for sample in rows.samples])
    trust = {
        "calibrated_on": int((~np.isnan(labels.y) | labels.bounded)[folds.predicted].any(axis=1).sum()),
        "calibrated_by": "molecules with out-of-fold predictions" if folds.predict_all else "validation molecules",
        **reliability.measure_trust(model.trust, scored, scored.plain),
        **looked.by_similarity(),
    }
    result = scored.result | trained.labelled.known | facts_out_of_fold(trained, trust)
    if curve := learning_curve(trained):
        result["learning_curve"] = curve
    final = replace(scored, result=result)
    write_atomically(run.out_of_fold, as_csv(lines_out_of_fold(trained)))
    final.write(run)
    for page in pages_of(Reported(**vars(trained), test=final, looked=looked)):
        write_atomically(run.report, render(page))
    return result


def facts_out_of_fold(trained: Trained, trust: dict) -> dict:
    """The parts of a result that do not come from test rows: scores of the members and the whole, and the trust."""
    labels, rows, out_of_fold = trained.labels, trained.folds.predicted, trained.fitted.out_of_fold
    names = [*trained.fitted.model.members, measures.STACK]
    values = [*each_by_itself(labels.task, out_of_fold.by_member), out_of_fold.values]
    by_name = {name: each[rows] for name, each in zip(names, values, strict=True)}
    part = labels.take(rows)
    predicted = measures.Predicted(labels.task, part.y, by_name, np.nanmean(labels.y, axis=0), part.bounds)
    judged = predicted.judged
    scores: dict[str, dict] = {name: measures.scores_of(labels.task, judged, each) for name, each in by_name.items()}
    for target, columns in measures.columns_of(labels.task).items():
        for name, bounds in predicted.with_bounds(columns).items():
            if name in scores:
                scores[name].setdefault("bounds", {})[target] = bounds
    facts = {"seed": trained.options.seed, "folds": len(trained.folds), "out_of_fold": scores, "trust": trust}
    return facts | trained.fitted.notes


def pages_of(page: Reported) -> Iterator[ReportPage]:
    """The page that describes a run: first without the sections that take long, then whole."""
    title, top = page.options.title or f"{page.run.path.name}: {', '.join(page.titles)}", cards(page)
    last = verdicts(page), tuple(hero(page)), structures(page.looked.smiles, page.looked.errors)
    first = title, summary(page), top, notes(page)
    written: dict = {}
    for are_late in (False, True):
        written |= {write: write(page) for write in SECTIONS if (write in LATE) == are_late}
        sections = tuple(section for write in SECTIONS if (section := written.get(write)))
        yield ReportPage(*first, (*sections, glossary(top, sections)), *last)


def report_final(trained: Trained) -> dict:
    """As ``report``, on predictions out of fold; intervals and probabilities of a fold are calibrated on the others."""
    whole, results = np.arange(len(trained.labels)), {}
    final = scores_of_rows(trained, whole, whole)
    for number, (outside, inside) in enumerate(trained.folds.parts()):
        with contextlib.suppress(InputError):  # labels of one class
            scores, trust = scores_of_rows(trained, inside, outside), trust_by(trained, outside)
            if trust.calibration is not None:
                scores = replace(scores, prediction=calibrated(scores.plain, trust))
            measured = reliability.measure_trust(trust, scores, scores.plain)
            results[f"fold-{number}"] = {**scores.result, "trust": measured}
    lines = lines_out_of_fold(trained)
    together = predicted_together(trained.labels.task, lines)
    pool = pooled(list(results.values()), together)["trust"] if results else {}
    result = final.result | facts_out_of_fold(trained, pool)
    if distributed.rank() == 0:
        report_together(trained, result, together, results or {"fold-0": result})
        replace(final, result=result).write(trained.run, lines)
    return result


def scores_of_rows(trained: Trained, rows: np.ndarray, others: np.ndarray) -> evaluate.StackScores:
    """The scores of predictions out of fold for some rows, compared with the mean labels of others."""
    part, out = trained.labels.take(rows), trained.fitted.out_of_fold
    source = {"dataset": TABLE, "split": measures.OUT_OF_FOLD}
    scored = evaluate.ScoredRows([""] * len(rows), part.y, part.bounds, source)
    stacked = Stacked(out.by_member[:, rows], out.values[rows], out.spread[rows])
    means = np.nanmean(trained.labels.y[others], axis=0)
    return evaluate.score_predictions(trained.fitted.model, scored, means, stacked)


def trust_by(trained: Trained, others: np.ndarray) -> Trust:
    """The trust in predictions out of fold, from others."""
    trust, out = trained.fitted.model.trust, trained.fitted.out_of_fold
    assert trust is not None
    return fit_trust(trust.domain, trained.labels.take(others), out.values[others], out.spread[others])


def lines_out_of_fold(trained: Trained) -> list[list]:
    """As ``Scores.lines``, with usual intervals, each of a fold calibrated on the others; the split is the fold."""
    labels, folds, out, table = trained.labels, trained.folds, trained.fitted.out_of_fold, trained.labelled
    level, ends = float(reliability.USUAL_CONFIDENCE), np.full((*out.values.shape, 2), np.nan)
    for outside, inside in folds.parts() if folds.predict_all else ():
        with contextlib.suppress(InputError):  # too few labels
            if (intervals := trust_by(trained, outside).intervals) is not None:
                both = intervals.ends(level, out.values[inside], out.spread[inside], labels.task.limits)
                ends[inside] = np.stack(both, axis=-1)
    learnt = zip([row for row in table.rows if row.split != "test"], folds.numbers.tolist(), strict=True)
    rows: list[list] = [[row.number, row.smiles, f"fold-{at}", *label_texts(row)] for row, at in learnt if at >= 0]
    names = [table.names.get(number, "") for number, *_ in rows] if table.names else []
    values = trained.fitted.model.final(out.values)
    values = values if np.isnan(ends).all() else np.hstack([values, ends.reshape(len(values), -1)])
    return prediction_lines(labels.task, values[folds.predicted], rows, names)


def report_folds(
    whole: RunFolder,
    options: TableOptions,
    results: Sequence[dict],
    table: LabelledTable,
    result: dict,
    together: measures.Predicted,
) -> None:
    """Writes the report on the results of the folds; ``table`` as ``rows_of_folds``, ``result`` as ``pooled``."""
    task, values = make_task(together.task).fitted(together.y), together.by_name[measures.STACK]
    model = TableModel(task, options.featurizer, {}, np.ones((0, len(task.targets))))
    fitted = FittedTable(model, Stacked(values[None], values, np.zeros_like(values)), {})
    labels, folds = Labels(task, together.y, together.bounds), Folds(np.zeros(len(values), np.int64))
    trained = Trained(whole, fitted, MoleculeFeatures([]), labels, folds, table, options)
    named = {f"fold-{number}": each for number, each in enumerate(results)}
    report_together(trained, result | {"split": measures.OUT_OF_FOLD}, together, named)


def rows_of_folds(tables: Sequence[LabelledTable]) -> LabelledTable:
    """The test rows of all folds, in the order of the table; their split is the fold."""
    parts = []
    for fold, table in enumerate(tables):
        part = table.take([place for place, row in enumerate(table.rows) if row.split == "test"])
        parts.append(part.with_splits([f"fold-{fold}"] * len(part.rows)))
    rows = [row for part in parts for row in part.rows]
    structures = Structures(each for part in parts for each in part.structures)
    order = sorted(range(len(rows)), key=lambda place: rows[place].number)
    return replace(tables[0], rows=rows, structures=structures).take(order)


def report_together(trained: Trained, result: dict, together: measures.Predicted, results: Mapping[str, dict]) -> None:
    """Writes the report on predictions of all rows, with the results of the folds by name."""
    task, values = trained.labels.task, together.by_name[measures.STACK]
    smiles = [row.smiles for row in trained.labelled.rows]
    unknown, none = np.full(len(smiles), np.nan), [""] * len(smiles)
    errors = reliability.molecule_errors(task, together.y, values)
    looked = reliability.ComparedMolecules(smiles, Nearness(unknown, none, unknown), none, errors)
    known = result, task, together.y, values, values[None], None, together.bounds
    scores = evaluate.StackScores(*known, plain=values, expected=np.zeros_like(values))
    *_, whole = pages_of(Reported(**vars(trained), test=scores, looked=looked, results=results))
    write_atomically(trained.run.report, render(whole))


def predicted_together(task: TaskConfig, lines: Sequence[list[str]]) -> measures.Predicted:
    """The labels and their bounds, the predictions, and the means of the labels."""
    found = measures.Predicted.of_lines(task, lines[1:])
    bounds = found.bounds if np.isfinite(found.labels[..., 1:]).any() else None
    return replace(found, means=np.nanmean(found.y, axis=0), bounds=bounds)


def pooled(results: Sequence[dict], together: measures.Predicted) -> dict:
    """The scores and the numbers of all folds together, those that every fold has, in the form of a result."""
    names = [name for name in ("n", *KNOWN) if all(name in result for result in results)]
    facts: dict = {name: sum(result[name] for result in results) for name in names}
    if censored := sum((Counter(result.get("censored", {})) for result in results), Counter()):
        facts["censored"] = dict(censored)
    facts["targets"] = together.by_target()
    if together.left_out:
        facts["left_out"] = together.left_out
    return facts | {"trust": pooled_trust(results, together)}


def pooled_trust(results: Sequence[dict], together: measures.Predicted) -> dict:
    """As ``measure_trust`` and ``by_similarity``, the means over the labels of all folds."""
    parts: list[dict] = [result["trust"] for result in results]
    trust: dict = {}
    counts = {name: [result["targets"][name]["n"] for result in results] for name in results[0]["targets"]}
    for name in ("coverage", "mean_width", "set_coverage", "one_class"):
        levels: list[dict] = [part.get(name, {}) for part in parts]
        if all(levels):
            trust[name] = {level: mean_of_folds([each[level] for each in levels], counts) for level in levels[0]}
    if together.task.kind == "classification":
        stages = {"after": together.by_name[measures.STACK]}
        trust |= reliability.measure_calibration(together.task.targets, together.y, stages)
    if all("compared" in part for part in parts):
        trust |= {name: sum(part[name] for part in parts) for name in ("unfamiliar", "compared")}
        bins = zip(*(part["error_by_similarity"] for part in parts), strict=True)
        both = ((same, [each["n"] for each in same]) for same in bins)
        trust["error_by_similarity"] = [same[0] | {"n": sum(n)} | mean_of_folds(same, {"error": n}) for same, n in both]
    return trust


def mean_of_folds(shares: Sequence[dict], counts: Mapping[str, list[int]]) -> dict[str, float | None]:
    """The means over the labels of all folds by target; None without labels, and if a fold with labels has none."""
    values = np.array([[share.get(name) for share in shares] for name in counts], float)
    labels = np.array(list(counts.values()))
    with np.errstate(invalid="ignore"):
        means = np.where(labels > 0, labels * values, 0).sum(axis=1) / labels.sum(axis=1)
    return reliability.values_by_target(tuple(counts), means)
