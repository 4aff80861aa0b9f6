"""New measurements of a model: its predictions are scored as prospective ones, then all rows are fitted again."""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import compress
from operator import not_
from pathlib import Path

import numpy as np

from graphormer_sepnorm.chem.features import Sample
from graphormer_sepnorm.config import Config, config_from_json
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.predict.predictors import Predictions, compute_all
from graphormer_sepnorm.project import log as logs
from graphormer_sepnorm.project.export import PROSPECTIVE
from graphormer_sepnorm.report.over_time import Checked, alarms, calibrated_labels, over_time, section
from graphormer_sepnorm.report.page import ReportPage, render
from graphormer_sepnorm.report.words import line
from graphormer_sepnorm.report.write import predicted_together
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.numbers import counted
from graphormer_sepnorm.runs.zoo import SHARED, model_digest, resolve_model
from graphormer_sepnorm.system import progress
from graphormer_sepnorm.system.files import write_atomically
from graphormer_sepnorm.table_model.evaluate import other_scale, unfinished_words
from graphormer_sepnorm.table_model.labels import label_arrays
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.reliability import error_words
from graphormer_sepnorm.table_model.scores import STACK
from graphormer_sepnorm.table_run import READING, Plan, costs, train_labelled
from graphormer_sepnorm.tables import labels
from graphormer_sepnorm.tables.label_text import in_order, is_number, periods, read_times
from graphormer_sepnorm.tables.options import TableOptions
from graphormer_sepnorm.tables.prepared_table import TABLE, kept_options, label_texts, read_measurements
from graphormer_sepnorm.tables.rows import LabelledRow
from graphormer_sepnorm.tables.splits import Structures, structures_of
from graphormer_sepnorm.tables.writers.base import as_csv
from graphormer_sepnorm.training.experiment import Scores

PAGE = "over-time.html"  # written last
COLUMNS = (
    *("date", "time", "molecule", "smiles", "conditions", "target", "measured", "predicted", "low", "high"),
    *("similarity", "model", "predicted_on", "digest"),
)
FROM_LOG = (*logs.OF_PREDICTION, "model", "digest")
WHEN = {"date", "predicted_on"}  # what differs if an interrupted update is continued on another day
LEAST_EQUAL = 3  # labels at a bound of the training table
MOST_NAMED = 5  # rows that are skipped
DIGITS = 9  # to which labels are equal
EXPECTED = "those on the molecules that {} was tested on"


@dataclass(frozen=True)
class Model:
    name: str
    run: RunFolder
    model: TableModel
    options: TableOptions
    config: Config
    table: labels.LabelledTable

    @classmethod
    def read(cls, name: str) -> "Model":
        run = RunFolder(resolve_model(name))
        if not run.stack.exists() or run.is_from_python:
            raise InputError(f"{name} is no run folder that train FILE wrote, which could be updated")
        if words := unfinished_words(run):
            raise InputError(words)
        options = kept_options(run.path)
        rows, names = read_measurements(run.path, options)
        model, facts = TableModel.load(run.path), (run.path / TABLE).with_suffix(".json")
        config = config_from_json(json.dumps(json.loads(facts.read_bytes())["config"]), str(facts))
        structures = structures_of(model.featurizer, [row.smiles for row in rows])
        if len(structures) < len(rows):
            raise InputError(f"{run}: some molecules of its table cannot be read by this release: train it again")
        units, class_names = options.units or ("",) * len(options.targets), model.task.class_names
        table = labels.LabelledTable(rows, structures=structures, names=names, class_names=class_names, units=units)
        return cls(Path(name).name, run, model, options, replace(config, task=labels.table_task(options)), table)

    @property
    def last_row(self) -> int:
        """The largest number of its rows, after which those of an update are numbered."""
        return max(row.number for row in self.table.rows)

    @property
    def plan(self) -> Plan:
        """The members that were fitted, as a continued training."""
        result = self.run.saved_test()
        left_out = result.get("left_out_members", {})
        names = {*self.model.members, *left_out}
        quick, look = names == {"kernel"}, "networks" in left_out
        return Plan(result["folds"], "forest" in names, "kernel" in names, quick, resume=True, look=look)


def update_run(
    name: str,
    table: str,
    out: str | Path | None = None,
    log: str | Path | None = None,
    smiles_column: str | None = None,
    delimiter: str | None = None,
    same_unit: bool = False,
    sheet: str | None = None,
) -> dict:
    """Scores a model on new measurements, and fits another one with the same settings to all rows.

    The new run folder gets ``prospective.csv``, the predictions that were made before the model knew the measurements,
    with those of earlier updates, and ``over-time.html``. After an interruption, the same call continues.

    Args:
        name: run folder, which is only read, or a file that ``export_model`` wrote.
        table: new measurements, with the columns of the table that was trained on; they are found as before, or by
            ``smiles_column``, ``delimiter`` and the ``sheet`` of a workbook.
        out: new run folder; None: RUN-update-1, or the next number.
        log: of predictions, as ``log_into``; the earliest one of each molecule is compared with the measurement.
        same_unit: accept labels that look as if they were in another unit.
    """
    model = Model.read(name)
    whole = RunFolder(Path(out) if out else next_folder(Path(name)))
    if whole.path.resolve() == model.run.path.resolve():
        raise InputError(f"{name} stays as it is: choose another --out")
    if log is not None and not Path(log).is_file():
        raise InputError(f"there is no file {log}: name the log of predict --log")
    new, unseen, counts = read_new(model, table, smiles_column, delimiter, sheet)
    lines = keep_log(whole, model.run, prospective_lines(model, unseen, Path(log) if log else None, same_unit))
    if (whole.path / PAGE).exists():
        progress.say([f"{whole} is finished: to fit again, choose another --out"])
        result = whole.saved_test()
    else:
        with progress.phases(costs(model.plan, model.config) | {READING: 0.0}):
            result = fit_all(model, new, whole.path, table)
    used = [row for row in read_measurements(whole.path, model.options)[0] if row.number > model.last_row]
    prospective, sentences = write_page(model, whole, lines)
    counts = {"new_rows": len(used), **counts}
    return {"out": str(whole), **counts, "prospective": prospective, "alarms": sentences, **result}


def next_folder(run: Path) -> Path:
    """The run folder of an update: the name of the run with -update-1, or with the next number."""
    run = run.with_suffix("") if run.suffix == SHARED else run
    before = logs.NUMBERED.fullmatch(run.name)
    base, number = (before[1], int(before[2]) + 1) if before else (run.name, 1)
    return run.with_name(f"{base}-update-{number}")


def read_new(
    model: Model, path: str, smiles_column: str | None, delimiter: str | None, sheet: str | None
) -> tuple[labels.LabelledTable, labels.LabelledTable, dict[str, int]]:
    """The new rows that can be used, averages of those that were not learnt, and numbers of rows for the result."""
    options = replace(model.options, path=path, test_csv=None, delimiter=delimiter, sheet=sheet)
    options = replace(options, smiles_column=smiles_column or options.smiles_column)
    labelled = replace(labels.read_usable(options, model.model.featurizer), class_names=model.table.class_names)
    before = set(map(signature, model.table.structures.keys, model.table.rows))
    is_new = [each not in before for each in map(signature, labelled.structures.keys, labelled.rows)]
    new, repeated = labelled.take(np.flatnonzero(is_new).tolist()), list(compress(labelled.rows, map(not_, is_new)))
    same = f"is in the table of {model.name} with the same label, and is skipped"
    progress.say(first_sentences([f"{labelled.in_file(row.number)} {same}" for row in repeated]))
    if not new.rows:
        skipped = [f"{labelled.in_file(number)} is skipped: {reason}" for number, _, reason in labelled.skipped]
        progress.say(first_sentences(skipped))
        why = f": {labelled.skipped[0][2]}" if labelled.skipped and not repeated else " that the model does not know"
        raise InputError(f"{path} has no row of new measurements{why}")
    table = labels.with_duplicates(options.kind, new)
    progress.say(bounds_as_values(model, table.rows))
    pairs = zip(model.table.structures.keys, model.table.rows, strict=True)
    learnt, means = {key for key, row in pairs if row.split != "test"}, table.with_means(options.kind)
    unseen = means.take([place for place, key in enumerate(means.structures.keys) if key not in learnt])
    if known := len(means.rows) - len(unseen.rows):
        progress.say([f"{counted(known, 'molecule')} of the training table measured again: no prospective prediction"])
    return table, unseen, {"repeated": len(repeated), "known": known}


def bounds_as_values(model: Model, rows: list[LabelledRow]) -> Iterator[str]:
    """Which targets have new labels that equal bounds of the training table, as if a < or > had been left out."""
    for place, name in enumerate(model.options.names):
        bounds = {float(text.strip("<>=")): text for row in model.table.rows if (text := row.bounds.get(place))}
        equal = [bounds[row.labels[place]] for row in rows if row.labels[place] in bounds]
        if len(equal) >= LEAST_EQUAL:
            found = f"{name}: {len(equal)} labels equal a bound in the table of {model.name}, such as {equal[0]}"
            yield f"{found}: if they are bounds, write them with < or >"


def first_sentences(sentences: list[str]) -> list[str]:
    """``MOST_NAMED`` sentences on rows, and how many others there are: a new table may have all old rows, too."""
    left = len(sentences) - MOST_NAMED
    return sentences if left <= 1 else [*sentences[:MOST_NAMED], f"and so are {left:,} other rows"]


def signature(key: str, row: LabelledRow) -> tuple:
    texts = (f"{float(text):.{DIGITS}g}" if text[:1] not in ("", "<", ">") else text for text in label_texts(row))
    return (key, row.conditions, *texts)


def prospective_lines(
    model: Model, unseen: labels.LabelledTable, log: Path | None, same_unit: bool
) -> list[dict[str, str]]:
    """The lines of ``prospective.csv`` for new measurements; raises InputError if they seem to be in another unit."""
    rows, names = unseen.rows, model.options.feature_columns
    computed = compute_all(model.model, [Sample(row.smiles, row.conditions) for row in rows])
    if not same_unit:
        refuse_other_unit(model, rows, computed)
    assert model.model.trust is not None
    similarity, *_ = model.model.trust.domain.nearest_rows(row.smiles for row in rows)
    before, digest = read_prospective(model.run.path / PROSPECTIVE), model_digest(model.run.path)
    models = {logs.ancestor(name) for name in [model.name, *(each["model"] for each in before)]}
    digests = {digest, *(each["digest"] for each in before)}
    logged = logs.earliest(log, model.model.featurizer, models, digests) if log is not None else {}
    by_us, lines = {"model": model.name, "date": datetime.now(UTC).date().isoformat(), "digest": digest}, []
    predicted, times = logs.predictions_of(model.model, computed), times_of(model, rows)
    for row, key, own, near, time in zip(rows, unseen.structures.keys, predicted, similarity, times, strict=True):
        conditions = logs.conditions_text(names, row.conditions)
        fixed = {"date": by_us["date"], "time": time, "molecule": key, "smiles": row.smiles, "conditions": conditions}
        fixed["similarity"] = logs.number_text(near)
        for prediction, measured in zip(own, label_texts(row), strict=False):
            first = logged.get((key, conditions, prediction["target"]), prediction | by_us)
            of_prediction = {name: first.get(name, "") for name in FROM_LOG}
            if measured:
                lines.append(fixed | of_prediction | {"measured": measured, "predicted_on": first["date"]})
    if log is not None:
        scored_now = {(line["molecule"], line["conditions"], line["target"]) for line in lines} & logged.keys()
        of_models = f"of {', '.join(sorted(models))} in {log}"
        progress.say([f"{counted(len(scored_now), 'prediction')} {of_models} measured since"])
    return lines


def refuse_other_unit(model: Model, new: list[LabelledRow], predictions: Predictions) -> None:
    if rows := [place for place, error in enumerate(predictions.errors) if not error]:
        y, values = label_arrays([new[row] for row in rows])[0], predictions.values[rows]
        scores = Scores({}, model.model.task, y, values, values[None])
        for target, words in other_scale(model.model.task, scores).items():
            others = f"{target}: {words}, as if they were in another unit than the training labels"
            raise InputError(f"{others}: convert them, or add --same-unit if they are in the same")


def times_of(model: Model, new: list[LabelledRow]) -> list[str]:
    before, texts = [row.time for row in model.table.rows], [row.time for row in new]
    if model.options.split != "time":
        return [""] * len(new)
    if all(map(is_number, before)):
        return texts
    times = read_times([*before, *texts])[len(before) :].tolist()
    return [f"{datetime.fromtimestamp(time, UTC):%Y-%m-%d}" for time in times]


def keep_log(whole: RunFolder, before: RunFolder, lines: list[dict[str, str]]) -> list[dict[str, str]]:
    """Writes ``prospective.csv``, unless an interrupted call has; raises InputError if the folder is another's."""
    path = whole.path / PROSPECTIVE
    ours = [*read_prospective(before.path / PROSPECTIVE), *lines]
    if not path.exists():
        if whole.stack.exists() or whole.holds_run or whole.record.exists():
            raise InputError(f"{whole} holds another run: choose another --out")
        write_atomically(path, as_csv([COLUMNS, *([each[name] for name in COLUMNS] for each in ours)]))
        return ours
    kept = read_prospective(path)
    undated, now = ([each | dict.fromkeys(WHEN, "") for each in records] for records in (kept, ours))
    if undated != now:
        raise InputError(f"{whole} holds an update with other rows or another --log: choose another --out")
    return kept


def read_prospective(path: Path) -> list[dict[str, str]]:
    names, records = logs.read_records(path) if path.exists() else (COLUMNS, [])
    if names not in (COLUMNS, COLUMNS[:-1]) or not all(map(logs.is_whole_line, records)):
        raise InputError(f"{path} is damaged: restore it, or remove it to begin with these rows")
    return [{"digest": "", **each} for each in records]


def fit_all(model: Model, new: labels.LabelledTable, out: Path, path: str) -> dict:
    options, before = replace(model.options, path=f"{model.options.path}, {path}"), model.table
    offset = model.last_row
    rows = [*before.rows, *(replace(row, number=row.number + offset) for row in new.rows)]
    if options.split != "column":
        rows = [row if options.test_csv and row.split == "test" else replace(row, split="") for row in rows]
    skipped = [(number + offset, smiles, reason) for number, smiles, reason in new.skipped]
    names = before.names | {number + offset: name for number, name in new.names.items()}
    table = replace(before, rows=rows, structures=Structures(before.structures + new.structures))
    table = replace(table, skipped=skipped, names=names, changed=new.changed)
    table = replace(table, num_own=offset, headers=(1, new.headers[0]), second=Path(path).name)
    table = labels.with_duplicates(options.kind, labels.leave_out_tested(table) if options.test_csv else table)
    table = labels.divided(options, table, labels.assign_splits(options, table))
    return train_labelled(options, table, model.config, out, model.plan)


def bounds_words(lines: list[dict[str, str]]) -> list[str]:
    """A sentence on measurements that are bounds, if there are any: how many are predicted on their known side."""
    bounds = [(each["measured"], float(each["predicted"])) for each in lines if is_bound(each) and each["predicted"]]
    right = sum((1 if text[0] == ">" else -1) * (value - float(text.lstrip("<>="))) >= 0 for text, value in bounds)
    words = f"{counted(len(bounds), 'bound')} such as <5 measured, {right:,} of them predicted on the known side"
    return [f"{words}; errors and alarms are those of exact measurements"] if bounds else []


def is_bound(line: dict[str, str]) -> bool:
    return line["measured"][:1] in ("<", ">")


def write_page(model: Model, whole: RunFolder, lines: list[dict[str, str]]) -> tuple[dict[str, list[dict]], list[str]]:
    """Writes the page; returns the facts of each target and period, without those that are not known, and alarms."""
    with open(model.run.predictions, newline="", encoding="utf-8", errors="surrogateescape") as file:
        tested = predicted_together(model.model.task, list(csv.reader(file)))
    errors = np.abs(tested.y - tested.by_name[STACK])
    reference = dict(zip(model.model.task.targets, errors.T, strict=True))
    calibrated = calibrated_labels(model.model) or {}
    for each in read_prospective(model.run.path / PROSPECTIVE):  # of models that had not learnt them
        calibrated[each["target"]] = max(1, calibrated.get(each["target"], 0) - 1)
    periods, expected = (
        over_time(checked_of(lines), reference, logs.CONFIDENCE, calibrated),
        EXPECTED.format(model.name),
    )
    sentences, of_bounds = alarms(periods, expected, logs.CONFIDENCE), bounds_words(lines)
    if model.options.test_csv is None:
        of_bounds.append(line("time.tested", before=model.name, after=whole.path.name, folders=[model.run, whole]))
    progress.say([*sentences, *of_bounds])
    part = section(periods, reference, expected, error_words(model.model.task), logs.CONFIDENCE)
    title = f"{whole.path.name}: {', '.join(periods.target.unique()) or 'no new molecules'}"
    molecules = len({each["molecule"] for each in lines})
    summary = line("time.summary", molecules=molecules, models=list(dict.fromkeys(each["model"] for each in lines)))
    page = ReportPage(title, summary, notes=(*sentences, *of_bounds), sections=(part,))
    write_atomically(whole.path / PAGE, render(page))
    facts = {
        str(target): [{n: v for n, v in each.items() if v == v} for each in part.to_dict("records")]
        for target, part in periods.set_index("target").groupby(level=0, sort=False)
    }
    return facts, sentences


def checked_of(lines: list[dict[str, str]]) -> list[Checked]:
    """The lines with an exact label by period: by month if all have a time, else by the date of their update."""
    exact = [each for each in lines if not is_bound(each) and each["predicted"]]
    is_timed = all(each["time"] for each in exact)
    whens = [each["time" if is_timed else "date"] for each in exact]
    names = periods(whens) if is_timed else whens
    numbers = ("measured", "predicted", "low", "high", "similarity")
    return [
        Checked(exact[place]["target"], names[place], *(float(exact[place][name] or "nan") for name in numbers))
        for place in (in_order(whens) if exact else [])
    ]
