"""The section of a report on scores: a table per target, and the weights of the members."""

from graphormer_sepnorm.config import TaskConfig
from graphormer_sepnorm.report.headline import FEW_TESTED
from graphormer_sepnorm.report.page import Grid, Section
from graphormer_sepnorm.report.reported import Reported, constant_words, frequent_class
from graphormer_sepnorm.report.words import words
from graphormer_sepnorm.runs.numbers import counted, decimals_for, percent, shown, shown_interval, shown_together
from graphormer_sepnorm.table_model.members import MEMBERS
from graphormer_sepnorm.table_model.scores import MEAN, RESAMPLES, STACK
from graphormer_sepnorm.tasks import METRICS, TASKS


def scores_section(page: Reported) -> Section:
    """Scores of each target by each member, with intervals."""
    metric, columns = page.task.metric, shown_metrics(page.task)
    weights, targets = page.result["weights"], page.result["targets"]
    least = min((facts["n"] for facts in targets.values()), default=0)
    described = {name: MEMBERS[name].words(page.task, len(page.learnt)) for name in weights}
    grids = []
    for name, facts in targets.items():
        constant = constant_words(page.task)
        if not page.is_regression:
            constant += f": always {frequent_class(page, name)[1]}"
        title = f"{page.title_of(name)}, {counted(facts['n'], 'test label')}"
        grids.append(scores_grid(title, facts, metric, columns, constant, page.out_of_fold(name)))
    if len(weights) > 1:
        scores = shown_together(page.result["out_of_fold"][name][metric] for name in weights)
        members = zip(weights.items(), scores, strict=True)
        rows = tuple((name, weight_words(by_target), score, described[name]) for (name, by_target), score in members)
        mean = "mean " if len(targets) > 1 else ""
        grids.append(Grid(("member", "weight", f"{mean}out-of-fold {page.metric}", "description"), rows, "members"))
    facts = {"members": len(weights), "few": least if least < FEW_TESTED else None, "only": described}
    return Section("Scores", words("scores.scores", metric=page.metric, resamples=RESAMPLES, **facts), tuple(grids))


def shown_metrics(task: TaskConfig) -> tuple[str, ...]:
    """The reported metrics and that of the task."""
    reported = TASKS[task.kind].reported
    return reported if task.metric in reported else (task.metric, *reported)


def scores_grid(
    title: str,
    facts: dict,
    metric: str,
    columns: tuple[str, ...],
    constant: str,
    out_of_fold: tuple[dict[str, float | None], str] | None = None,
) -> Grid:
    """The scores of one target, one row per prediction; ``facts`` as ``scores_by_target``.

    ``constant`` is the name of the prediction without a model. ``Reported.out_of_fold`` is the last row.
    """
    names, intervals, bounds = {STACK: "prediction", MEAN: constant}, facts.get("interval"), facts.get("bounds")
    # a single member is the prediction
    shown_names = [name for name in facts["scores"] if name in names or len(facts["scores"]) > len(names) + 1]
    last = [] if out_of_fold is None else [out_of_fold[0]]
    by_column = {each: [scores[each] for scores in (*facts["scores"].values(), *last)] for each in columns}
    by_column[metric] += [end for ends in (intervals or {}).values() for end in ends or ()]
    decimals = {each: decimals_for(values, facts["scores"][STACK][each]) for each, values in by_column.items()}
    header = ("", *(METRICS[each].title for each in columns))
    rows = [
        [names.get(name, f"only the {name}"), *(shown(facts["scores"][name][each], decimals[each]) for each in columns)]
        for name in shown_names
    ]
    if out_of_fold is not None:
        found, where = out_of_fold
        rows.append([f"prediction, {where}", *(shown(found[each], decimals[each]) for each in columns)])
    if intervals is not None:
        header += (f"95 % interval of the {METRICS[metric].title}",)
        texts = [interval_words(intervals[name], decimals[metric]) for name in shown_names] + [""] * len(last)
        rows = [[*row, text] for row, text in zip(rows, texts, strict=True)]
    if bounds is not None:
        header += ("bounds on their side", "concordance")
        cells = map(bounded_cells, [*(bounds.get(name, {}) for name in shown_names), *last])
        rows = [[*row, *more] for row, more in zip(rows, cells, strict=True)]
    return Grid(header, tuple(map(tuple, rows)), title)


def bounded_cells(scores: dict[str, float | None]) -> tuple[str, str]:
    """The share of bounds on their side and the concordance, of ``BoundScores``; empty without bounds."""
    return (percent(scores["right_side"]), shown(scores["concordance"], 3)) if "right_side" in scores else ("", "")


def interval_words(ends: list[float] | None, decimals: int) -> str:
    """An interval, or the score in every resample if it is always the same, as the ROC-AUC of a constant."""
    return shown(ends[0], decimals) if ends and ends[0] == ends[1] else shown_interval(ends, decimals)


def weight_words(weights: dict[str, float]) -> str:
    """The weight of a member by target, as a range if there are several."""
    lowest, highest = (f"{choose(weights.values()):.2f}" for choose in (min, max))
    return lowest if highest == lowest else f"{lowest} to {highest}"
