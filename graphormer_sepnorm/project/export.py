"""A table model as one file to share."""

import json
from dataclasses import replace
from pathlib import Path

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs import zoo
from graphormer_sepnorm.runs.arrays import stored_facts
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.files import writing
from graphormer_sepnorm.table_model.evaluate import check_table, unfinished_words
from graphormer_sepnorm.table_model.model import TableModel
from graphormer_sepnorm.table_model.scores import STACK
from graphormer_sepnorm.tables.prepared_table import MEASUREMENTS, TABLE, kept_options
from graphormer_sepnorm.tasks.scales import named_unit

PROSPECTIVE = "prospective.csv"  # the log of an update
FACTS = Path(TABLE).with_suffix(".json").name
NO_LICENCE = "not stated: ask whoever exported the model"


def export_model(model: str | Path, out: str | Path, licence: str | None = None) -> dict:
    """Writes a table model, with its training molecules, into one file; equal runs give equal bytes."""
    out = Path(out)
    if out.suffix != zoo.SHARED:
        raise InputError(f"{out}: name a file that ends in {zoo.SHARED}")
    run = RunFolder(zoo.resolve_model(model))
    if not run.stack.exists():
        network = "a network is one file already, model.safetensors of its run folder"
        raise InputError(f"{model} is no table model: {network}")
    loaded = TableModel.load(run.path)
    check_table(run.path)
    if unfinished := unfinished_words(run):
        raise InputError(unfinished)
    card = zoo.read_card(run.path) or card_of(run, loaded)
    card = card if licence is None else replace(card, licence=licence)
    configs = [each.config.relative_to(run.path).as_posix() for each in run.members()]
    others = [run.test.name, run.predictions.name, run.record.name, *configs, TABLE, MEASUREMENTS, PROSPECTIVE, FACTS]
    names = [run.stack.name, *stored_facts(run.stack)["files"], *(n for n in others if (run.path / n).exists())]
    files = {name: (run.path / name).read_bytes() for name in names}
    if FACTS in files:
        facts = json.loads(files[FACTS])
        paths = {name: path for name in ("path", "test_csv") if (path := facts["options"].get(name))}
        facts["options"] |= {name: names_only(path) for name, path in paths.items()}
        files[FACTS] = (json.dumps(facts, indent=2) + "\n").encode()
    files[zoo.CARD] = zoo.READ_CARD.dump_json(card, indent=2) + b"\n"
    with writing(out):
        zoo.write_archive(out, files)
    assert loaded.trust is not None
    numbers = {"bytes": out.stat().st_size, "training_molecules": len(loaded.trust.domain.bits)}
    return {"model": str(model), "output": str(out), **numbers, "licence": card.licence}


def card_of(run: RunFolder, model: TableModel) -> zoo.ModelCard:
    rows = model.trust.rows if model.trust else None
    options, scores = kept_options(run.path), run.saved_test().get("out_of_fold", {}).get(STACK, {})
    rmse = scores.get("rmse") if len(model.targets) == 1 else None
    counts = dict(zip(model.targets, rows.labelled if rows else (), strict=False))
    units, endpoints = dict(zip(options.targets, options.units, strict=False)), {}
    for place, target in enumerate(model.targets):
        column = options.targets[min(place, len(options.targets) - 1)]
        unit = units.get(column, "")
        description = f"{column} in {unit}" if unit and unit != named_unit(column) else column
        scale = model.task.scales[place] if model.task.scales else ""
        endpoints[target] = zoo.Endpoint(description, scale, counts.get(target), rmse_out_of_fold=rmse)
    return zoo.ModelCard(names_only(options.path), NO_LICENCE, endpoints)


def names_only(paths: str) -> str:
    """The names of files without their folders; of an updated model there are several."""
    return ", ".join(Path(path).name for path in paths.split(", "))
