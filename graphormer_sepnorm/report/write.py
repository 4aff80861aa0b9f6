"""Scores, predictions, pictures and the report at the end of training on a table."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from graphormer_sepnorm.report.glossary import glossary
from graphormer_sepnorm.report.headline import cards, notes, summary, verdicts
from graphormer_sepnorm.report.learning import learning_curve
from graphormer_sepnorm.report.page import ReportPage, Section, render
from graphormer_sepnorm.report.predictions import hero, structures
from graphormer_sepnorm.report.reported import Reported
from graphormer_sepnorm.report.sections import LATE, SECTIONS
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.table_model.evaluate import means_of, rows_for_test, score_rows
from graphormer_sepnorm.table_model.features import MoleculeFeatures
from graphormer_sepnorm.table_model.fit import FittedTable
from graphormer_sepnorm.table_model.labels import Folds, Labels
from graphormer_sepnorm.table_model.reliability import compare, measure_trust
from graphormer_sepnorm.table_model.scores import STACK, Predicted, columns_of, scores_of
from graphormer_sepnorm.table_model.stacking import each_by_itself
from graphormer_sepnorm.tables.labels import LabelledTable, TableOptions
from graphormer_sepnorm.version import __version__


def report_table(
    run: RunFolder,
    fitted: FittedTable,
    molecules: MoleculeFeatures,
    labels: Labels,
    folds: Folds,
    labelled: LabelledTable,
    options: TableOptions,
) -> dict:
    """Scores a fitted table model on the test rows of its run folder and writes the report.

    Writes ``test.json``, ``predictions.csv``, pictures and ``report.html``.

    Args:
        run: the run folder, which holds the table.
        fitted, molecules, labels, folds: the model, and what it was fitted to.
        labelled, options: the table, and how it was read; the seed of the options is that of the training.

    Returns:
        as ``evaluate_table``, with scores ``out_of_fold`` of the members and of the whole on the training rows, and
        the measurements of intervals, probabilities and distances, ``trust``; ``FittedTable.notes``, and
        ``learning_curve``, if there is one.

    Raises:
        InputError: the table cannot be read, or the folder cannot be written.
    """
    model, rows = fitted.model, rows_for_test(run, fitted.model)
    assert model.trust is not None
    scored = score_rows(model, rows, means_of(run, model))
    looked = compare(model, rows.smiles, scored.final, [sample.conditions for sample in rows.samples])
    by_whom = "molecules with out-of-fold predictions" if folds.predict_all else "validation molecules"
    trust = {
        "calibrated_on": int((~np.isnan(labels.y) | labels.bounded)[folds.predicted].any(axis=1).sum()),
        "calibrated_by": by_whom,
        **measure_trust(model.trust, scored.plain, scored.final),
        **looked.by_similarity(),
    }
    result = {
        **scored.final.result,
        **labelled.known,
        "seed": options.seed,
        "folds": len(folds),
        "out_of_fold": scores_out_of_fold(fitted, labels, folds),
        "trust": trust,
    }
    curve = learning_curve(fitted, molecules, labels, folds, options.seed)
    result |= fitted.notes | ({"learning_curve": curve} if curve else {})
    final = replace(scored.final, result=result)
    final.write(run)
    page = Reported(run, fitted, labels, folds, labelled, options, final, scored.plain.prediction, looked)
    for report in pages_of(page):
        write_atomically(run.report, render(report))
    return result


def pages_of(page: Reported) -> Iterator[ReportPage]:
    """The page that describes a run: first without the sections that take long, then whole."""
    titles = ", ".join(map(page.title_of, page.result["targets"]))
    top, drawn = cards(page), {} if page.looked is None else structures(page.looked.smiles, page.looked.errors)
    last = __version__, verdicts(page), tuple(hero(page)), drawn
    first = page.options.title or f"{page.run.path.name}: {titles}", summary(page), top, notes(page)
    found: dict[Callable, Section | None] = {}
    for writers in (set(SECTIONS) - LATE, LATE):
        found |= {write: write(page) for write in SECTIONS if write in writers}
        sections = tuple(section for write in SECTIONS if (section := found.get(write)))
        yield ReportPage(*first, (*sections, glossary(top, sections)), *last)


def scores_out_of_fold(fitted: FittedTable, labels: Labels, folds: Folds) -> dict[str, dict]:
    """The scores of the members and of the whole, by name, on the rows that a fold predicted; with ``bounds``, if any.

    ``bounds`` has the ``BoundScores`` of each target, as those of the test rows."""
    rows, found = folds.predicted, fitted.out_of_fold
    names, values = [*fitted.model.members, STACK], [*each_by_itself(labels.task, found.by_member), found.values]
    by_name = {name: each[rows] for name, each in zip(names, values, strict=True)}
    part = labels.take(rows)
    scores: dict[str, dict] = {name: scores_of(labels.task, part.y, each) for name, each in by_name.items()}
    predicted = Predicted(labels.task, part.y, by_name, np.nanmean(labels.y, axis=0), part.bounds)
    for target, columns in columns_of(labels.task).items():
        for name, bounds in predicted.with_bounds(columns).items():
            if name in scores:
                scores[name].setdefault("bounds", {})[target] = bounds
    return scores
