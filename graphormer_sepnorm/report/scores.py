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
        members = {
            "member": list(weights),
            "weight": list(map(weight_words, weights.values())),
            f"{'mean ' * (len(targets) > 1)}out-of-fold {page.metric}": shown_together(
                page.result["out_of_fold"][name][metric] for name in weights
            ),
            "description": list(described.values()),
        }
        grids.append(Grid.of(members, "members"))
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
    """The ``scores_by_target`` of one, a row per prediction; ``constant`` names that without a model."""
    names, intervals, bounds = {STACK: "prediction", MEAN: constant}, facts.get("interval"), facts.get("bounds")
    # a single member is the prediction
    shown_names = [name for name in facts["scores"] if name in names or len(facts["scores"]) > len(names) + 1]
    found, last = [facts["scores"][name] for name in shown_names], [] if out_of_fold is None else [out_of_fold[0]]
    texts = [names.get(name, f"only the {name}") for name in shown_names]
    table = {"": texts if out_of_fold is None else [*texts, f"prediction, {out_of_fold[1]}"]}
    by_column = {each: [scores[each] for scores in (*facts["scores"].values(), *last)] for each in columns}
    by_column[metric] += [end for ends in (intervals or {}).values() for end in ends or ()]
    decimals = {each: decimals_for(values, facts["scores"][STACK][each]) for each, values in by_column.items()}
    table |= {METRICS[name].title: [shown(each[name], decimals[name]) for each in (*found, *last)] for name in columns}
    if intervals is not None:
        cells = [interval_words(intervals[name], decimals[metric]) for name in shown_names]
        table[f"95 % interval of the {METRICS[metric].title}"] = [*cells, *[""] * len(last)]
    if bounds is not None:
        scored = [*(bounds.get(name, {}) for name in shown_names), *last]
        table["bounds on their side"] = [percent(each["right_side"]) if "right_side" in each else "" for each in scored]
        table["concordance"] = [shown(each["concordance"], 3) if "concordance" in each else "" for each in scored]
    return Grid.of(table, title)


def interval_words(ends: list[float] | None, decimals: int) -> str:
    """An interval, or the score in every resample if it is always the same, as the ROC-AUC of a constant."""
    return shown(ends[0], decimals) if ends and ends[0] == ends[1] else shown_interval(ends, decimals)


def weight_words(weights: dict[str, float]) -> str:
    """The weight of a member by target, as a range if there are several."""
    lowest, highest = (f"{choose(weights.values()):.2f}" for choose in (min, max))
    return lowest if highest == lowest else f"{lowest} to {highest}"
