"""The sentences on results, for people; imported when a command has its result."""

import shlex
from collections.abc import Iterator
from pathlib import Path

from graphormer_sepnorm.runs.folder import REPORT
from graphormer_sepnorm.runs.info import score_words
from graphormer_sepnorm.runs.numbers import counted, percent, shown, shown_together
from graphormer_sepnorm.table_model.evaluate import targets_on_test
from graphormer_sepnorm.table_model.reliability import low_coverage, no_better, unjudged, usual_confidence
from graphormer_sepnorm.table_model.scores import STACK, top_words
from graphormer_sepnorm.tables.splits import known_words
from graphormer_sepnorm.tasks import METRICS

MOST_TARGETS = 12  # of which each has a line


def test_score_words(result: dict) -> str:
    """The test score, of one target with its interval, the number of targets, and the score of a forest, if any."""
    forest = result.get("baseline", {}).get("random_forest", {}).get(result["metric"])
    value, rival = shown_together([result["value"], forest], result["value"])
    scores = {} if "deviation" in result else targets_on_test(result)
    value = score_words(*next(iter(scores.values())).values()) if len(scores) == 1 else value
    targets = result.get("targets", {}).keys()
    more = [f"mean of {counted(len(targets - result.get('left_out', {})), 'target')}"] if len(targets) > 1 else []
    more += [] if forest is None else [f"a forest: {rival}"]
    return f"{METRICS[result['metric']].title} {value}" + (f" ({', '.join(more)})" if more else "")


def scored_targets(result: dict) -> dict[str, str]:
    """The score of each target that can be judged, in words."""
    scores = {name: each for name, each in targets_on_test(result).items() if name not in result.get("left_out", {})}
    return {name: f"{METRICS[result['metric']].title} {score_words(**each)}" for name, each in scores.items()}


def on_evaluation(result: dict, what: str) -> Iterator[str]:
    """The score of ``what``, rows without a score, the targets with coverage and bounds, and training molecules."""
    for name, words in result.get("other_scale", {}).items():
        yield f"{name}: {words}: are they in the unit and on the scale of the training labels?"
    skipped, censored = result.get("skipped", 0), sum(result.get("censored", {}).values())
    unscored = f"; {counted(skipped, 'row')} skipped" if skipped else ""
    unscored += f"; {counted(censored, 'bound')} not in this score" if censored else ""
    yield f"{what} {test_score_words(result)}{unscored}"
    reasons = result.get("reasons", {})
    yield from (f"row {row} is skipped: {reason}" for row, reason in reasons.items())
    if more := skipped - len(reasons):
        yield f"and {more:,} more"
    trust, has_several = result.get("trust", {}), len(targets_on_test(result)) > 1
    level = usual_confidence(trust)
    for target, score in scored_targets(result).items():
        said, facts = [score] * has_several, result["targets"][target]
        if level:
            said.append(f"{percent(trust['coverage'][level][target])} inside the {percent(float(level))} intervals")
        if (bounds := facts.get("bounds", {}).get(STACK)) is not None:
            right = f"{percent(bounds['right_side'])} of {counted(bounds['bounds'], 'bound')} on the right side"
            said.append(f"{right}, concordance {shown(bounds['concordance'], 3)}")
        if said := [*said, *top_words(facts.get("top", {}))]:
            yield f"{target}: {'; '.join(said)}"
    yield from unjudged(result)
    yield from filter(None, [known_words(result)])


def on_left_out(result: dict) -> Iterator[str]:
    """Sentences on members without predictions, on intervals that are too narrow, and on labels without scores."""
    for member, reason in result.get("left_out_members", {}).items():
        yield f"the {member} {'were' if member == 'networks' else 'was'} left out of the model: {reason}"
    yield from result.get("remarks", {}).values()
    yield from filter(None, [known_words(result)])
    for sentences in (no_better, low_coverage, unjudged):
        yield from sentences(result)
    for target, count in result.get("censored", {}).items():
        scores = result.get("targets", {}).get(target, {}).get("bounds", {}).get(STACK)
        right = f"; predicted on their side: {round(scores['right_side'] * scores['bounds'])}" if scores else ""
        are = "is" if count == 1 else "are"
        if count:
            yield f"{counted(count, 'bound')} among the labels of {target} {are} not in this score{right}"


def on_targets(result: dict) -> Iterator[str]:
    """The score of each of several targets that can be judged; of many, the best and the worst."""
    scores = scored_targets(result) if len(result.get("targets", ())) > 1 else {}
    names, of_test = list(scores), targets_on_test(result)
    if len(names) > MOST_TARGETS:
        is_up = METRICS[result["metric"]].higher_is_better
        best_first = sorted(names, key=lambda name: of_test[name]["value"], reverse=is_up)
        names = [best_first[0], best_first[-1]]
        yield f"the best and the worst of {len(scores)} targets; {REPORT} has all"
    yield from (f"{name}: {scores[name]}" for name in names)


def next_steps(folder: Path, is_model: bool) -> Iterator[str]:
    """The report to open, and the command that predicts with the model, or first how to get one if there are folds."""
    if (folder / REPORT).exists():
        yield f"open {shlex.quote(str(folder / REPORT))} in a browser for the scores and how far to trust predictions"
    quoted = shlex.quote(str(folder if is_model else folder.with_name(f"{folder.name}-model")))
    if not is_model:
        how = f"with --final in place of --folds and with --out {quoted}"
        yield f"folds do not predict: for a model, repeat this command {how}"
    command = f"graphormer-sepnorm predict {quoted} FILE -o predictions.csv --interval 0.9 --domain"
    yield f"{'predict other molecules' if is_model else 'then predict other molecules'}: {command}"
