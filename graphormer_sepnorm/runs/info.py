"""Facts about a model: architecture, training data, performance and supported molecules."""

from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from pathlib import Path

from graphormer_sepnorm.chem.features import FEATURIZERS, ZINC_ATOM_TYPES, as_written
from graphormer_sepnorm.chem.smiles import MAX_ATOMS
from graphormer_sepnorm.config import Config, TaskConfig
from graphormer_sepnorm.runs.checkpoint import load_model
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.runs.numbers import counted, decimals_for, percent, shown, shown_interval
from graphormer_sepnorm.tasks import METRICS

AS_WRITTEN = {
    "zinc": f"the ZINC benchmark's {len(ZINC_ATOM_TYPES)} atom types ({', '.join(ZINC_ATOM_TYPES)}), "
    "single, double and triple bonds",
    "ogb": "all elements, by OGB's nine atom and three bond features",
    "mol": "all elements and bonds, with charges, hydrogens, rings and CIP labels, however a SMILES is written",
}
# What the page and workbooks say of a model.
SHOWN_OF_MODEL = (
    "architecture", "weights", "parameters", "training_data", "units", "transforms", "metric", "validation", "test",
    "vocabulary", "salts", "licence", "digest",
)  # fmt: skip
SALTS = {
    "": "read as written, with all parts of a SMILES",
    "without-salts": "removed: counter-ions and solvents of a SMILES are not read",
    "standardized": "removed: of each molecule its neutral parent is read",
    "tautomer": "removed: of each molecule its neutral parent is read, in one canonical tautomer",
    "chembl": "removed: of each molecule its parent by ChEMBL's structure pipeline is read",
}


def describe_model(path: Path) -> dict:
    """Facts about a model, JSON-serializable."""
    model, config, facts = load_model(path)
    shape = config.model
    return {
        "model": str(path),
        "architecture": f"Graphormer, {shape.layers} layers, width {shape.width}, FFN {shape.ffn_width}, "
        f"{shape.heads} heads, {shape.norm} ({shape.norm_position}-norm)",
        "encodings": [encoding.name for encoding in shape.encodings],
        "messages_along_bonds": shape.messages,
        "degree_scaling": shape.degree_scaling,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "task": config.task.kind,
        "targets": list(config.task.targets),
        "predicts": probability_words(config.task),
        "training_data": config.dataset,
        "training": training_words(config),
        "epoch": facts.get("epoch"),
        "metric": config.task.metric,
        "validation": facts.get("val_metric"),
        "test": facts.get("test", RunFolder(path).saved_test().get("value")),
        "featurizer": config.featurizer,
        "vocabulary": vocabulary_words(config.featurizer),
        "salts": salts_words(config.featurizer),
        "licence": facts.get("licence", "not stated in the file: that of its training data applies"),
    }


def probability_words(task: TaskConfig) -> list[str] | None:
    """The probability that is predicted for each target of a classification; None for other tasks."""
    if task.kind != "classification":
        return None
    return [f"probability that {target} is {one}" for target, (_, one) in zip(task.targets, task.classes, strict=True)]


def vocabulary_words(featurizer: str) -> str:
    return f"{AS_WRITTEN[as_written(featurizer)]}; up to {MAX_ATOMS:,} atoms"


def salts_words(featurizer: str) -> str:
    return SALTS[FEATURIZERS[featurizer].preparation]


def training_words(config: Config) -> str:
    train = config.train
    start = f", from {train.start_from}" if train.start_from else ""
    rate = f"{train.optimizer} at {train.lr:g}"
    return f"{train.epochs} epochs, batches of {train.batch_size}, {rate}, seed {train.seed}{start}"


def facts_text(facts: dict) -> str:
    hidden = {name for name, value in facts.items() if value is None or (name == "test_scores" and len(value) == 1)}
    texts = {name: fact_words(name, facts).replace("\n", f"\n{'':21}") for name in facts if name not in hidden}
    return "\n".join(f"{name.replace('_', ' '):20} {text}" for name, text in texts.items())


def shown_facts(facts: dict) -> dict[str, str]:
    return {name.replace("_", " "): fact_words(name, facts) for name in SHOWN_OF_MODEL if facts.get(name) is not None}


def fact_words(name: str, facts: dict) -> str:
    """A fact as text; the test score of a single target with its interval, of several with their number."""
    scores = facts.get("test_scores") or {}
    if name == "test" and len(scores) == 1:
        return score_words(**next(iter(scores.values())))
    if name == "test" and scores:
        targets = scores.keys() - set(facts.get("left_out_of_test") or ())
        return f"{shown(facts[name])} (mean of {counted(len(targets), 'target')})"
    if name == "test_scores":
        return "\n".join(f"{target}  {score_words(**score)}" for target, score in scores.items())
    if name == "molecules":
        return f"{facts[name]:,} for training"
    return "\n".join(endpoint_lines(facts[name])) if name == "endpoints" else fact_line(name, facts[name])


def score_words(value: float, interval: Sequence[float] | None = None, molecules: int | None = None) -> str:
    """A score, its interval and how many labels, where known: "0.66, 95 % interval 0.41 to 0.87 on 30 labels"."""
    ends = f", 95 % interval {shown_interval(list(interval), decimals_for([value]))}" if interval else ""
    return shown(value) + ends + ("" if molecules is None else f" on {counted(molecules, 'label')}")


def endpoint_lines(endpoints: dict[str, dict]) -> list[str]:
    width, lines, group, groups = max(map(len, endpoints)), [], "", groups_of(endpoints)
    for target, facts in endpoints.items():
        if group != (group := groups.get(target, "")):
            lines.append(f"{group}:")
        parts = "; ".join(say(facts) for name, say in ENDPOINT_WORDS.items() if name in facts)
        lines.append(f"{target:{width}}  {parts}")
    return lines


def groups_of(endpoints: Mapping[str, dict]) -> dict[str, str]:
    """The heading that each endpoint is listed under, from what ``card_endpoints`` found; empty if none has one."""
    groups = {target: facts.get("group", "Other") for target, facts in endpoints.items()}
    return groups if set(groups.values()) != {"Other"} else {}


def limit_meaning(limit: str) -> str:
    """The meaning of predictions near a limit of an assay; ``limit`` as in cards, such as "0.8 or less"."""
    return f'limit of the assay: {limit} means "at {"least" if limit.endswith("more") else "most"}"'


# Facts about an endpoint in their order, and how each is said, from all of them.
ENDPOINT_WORDS: dict[str, Callable[[dict], str]] = {
    "description": itemgetter("description"),
    "molecules": lambda facts: f"{facts['molecules']:,} training molecules",
    "positives": lambda facts: f"{percent(facts['positives'])} of them are of class 1",
    "rmse_out_of_fold": lambda facts: f"RMSE out of fold {shown(facts['rmse_out_of_fold'])}",
    "score": lambda facts: f"{METRICS[facts['metric']].title} on test molecules {shown(facts['score'])}",
    "direction": lambda facts: f"{facts['direction']} is better",
    "limit": lambda facts: limit_meaning(facts["limit"]),
    **{name: itemgetter(name) for name in ("source", "licence", "trust")},
}


def fact_line(name: str, value: object) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return shown(value)
    if isinstance(value, int) and name != "epoch":
        return f"{value:,}"
    return METRICS[value].title if name == "metric" and isinstance(value, str) else str(value)
