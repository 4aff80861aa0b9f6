"""Names of models: shipped weights, shipped table models and paths."""

import hashlib
import os
import re
import tarfile
import tempfile
from difflib import get_close_matches
from functools import cache
from importlib import resources
from itertools import dropwhile, takewhile
from pathlib import Path
from typing import Any

from graphormer_sepnorm.errors import InputError, did_you_mean
from graphormer_sepnorm.runs.folder import runs_in
from graphormer_sepnorm.system.cache import mark_used
from graphormer_sepnorm.system.files import cache_root
from graphormer_sepnorm.tables.formats import is_table_name

RESOURCES = "graphormer_sepnorm.resources"
ARCHIVE = ".tar.xz"
PRETRAINED = {"foundation", "foundation-mini"}  # for fine-tuning and embeddings: they predict no property


def resolve_model(name: str | os.PathLike) -> Path:
    """The run folder or weights file for a path or the name of a shipped model.

    Raises:
        InputError: there is no such path and no such name, or it is a table.
    """
    path = Path(name)
    if os.path.isfile(path) and is_table_name(path):
        raise InputError(f"{name} is a table, not a model: name a run folder, a weights file or a shipped model")
    if os.path.exists(path):
        return path
    shipped, tables = shipped_models(), shipped_tables()
    if str(name) in tables:
        return unpacked(tables[str(name)])
    if str(name) not in shipped:
        names = sorted(shipped | tables)
        near = did_you_mean(str(name), [*names, *similar_runs(path)])
        predicting = ", ".join(each for each in names if each not in PRETRAINED)
        listed = f"{predicting}; for fine-tuning {', '.join(sorted(PRETRAINED))}"
        raise InputError(f"{name} is neither a run folder, nor a weights file, nor a shipped model ({listed}){near}")
    return shipped[str(name)]


def similar_runs(path: Path) -> list[str]:
    """The run folder in the same folder as a path with the most similar name; empty if there is none."""
    names = [run.name for run in runs_in(path.parent)]
    return [str(path.parent / name) for name in get_close_matches(path.name, names, n=1)]


def shipped_models() -> dict[str, Path]:
    """The weights that come with the package, by name."""
    return {file.stem: file for file in resource_files() if file.suffix == ".safetensors"}


def shipped_tables() -> dict[str, Path]:
    """The table models that come with the package, by name: archives of their folders."""
    return {file.name.removesuffix(ARCHIVE): file for file in resource_files() if file.name.endswith(ARCHIVE)}


def card_facts(name: str) -> dict[str, str]:
    """The training data and the licence of a shipped table model, from its card; empty for any other model."""
    card = card_of(name)
    return {"training_data": point(card, "Training data"), "licence": point(card, "Licence")} if card else {}


def card_endpoints(name: str) -> dict[str, dict[str, Any]]:
    """The targets of a shipped table model, from the table in its card; empty for any other model.

    Returns:
        by target its ``description`` with the scale and the unit and, where the card has them, ``molecules``, the
        number of those with a label, ``rmse_out_of_fold``, and ``limit``, the predictions near a limit of the assay.
    """
    card = card_of(name)
    scale = re.match(r"(\S+) of all values", point(card, "Units"))
    limits = {cells["limited column"]: cells["near the limit"] for cells in table_rows(card, "limited column")}
    found = {}
    for cells in table_rows(card, "endpoint"):
        description = f"{scale[1]} of {cells['endpoint']}" if scale else cells["endpoint"]
        facts: dict[str, Any] = {"description": description}
        if number := re.fullmatch(r"[\d,]+", cells.get("molecules", "")):
            facts["molecules"] = int(number[0].replace(",", ""))
        if number := re.fullmatch(r"\d+\.\d+", cells.get("RMSE out of fold", "").strip("*")):
            facts["rmse_out_of_fold"] = float(number[0])
        if limit := limits.get(cells["column"]):
            facts["limit"] = limit
        found[cells["column"].strip("`")] = facts
    return found


def assay_limits(folder: Path) -> dict[str, str]:
    """The limits in ``card_endpoints`` by target, for the folder of a shipped table model; empty for any other."""
    known = card_endpoints(folder.name.rpartition("-")[0]) if folder.parent == cache_root() else {}
    return {target: facts["limit"] for target, facts in known.items() if "limit" in facts}


def table_rows(card: str, first: str) -> list[dict[str, str]]:
    """The rows of the table of a card with this first column, by the names of its columns; empty without it."""
    lines = dropwhile(lambda line: not line.startswith(f"| {first} |"), card.splitlines())
    table = takewhile(lambda line: line.startswith("|"), lines)
    records = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table]
    return [dict(zip(records[0], record, strict=True)) for record in records[2:]]


def card_of(name: str) -> str:
    """The text of the card of a shipped table model; empty for any other model."""
    archive = shipped_tables().get(name)
    if archive is None or os.path.exists(name):
        return ""
    return archive.with_name(f"{name}.md").read_text(encoding="utf-8")


def point(card: str, title: str) -> str:
    """The text of the point of a card with this title; empty if there is none."""
    found = re.search(rf"- \*\*{title}\*\*: (.+?)(?= - \*\*|$)", " ".join(card.split()))
    return found[1] if found else ""


def resource_files() -> list[Path]:
    return [Path(str(entry)) for entry in resources.files(RESOURCES).iterdir()]


@cache
def digest_of(archive: Path, changed: int) -> str:
    """The start of the SHA-256 of an archive, which was ``changed`` at this time."""
    return hashlib.sha256(archive.read_bytes()).hexdigest()[:16]


def unpacked(archive: Path) -> Path:
    """The folder of a shipped table model, unpacked into the cache by the first process that needs it."""
    digest = digest_of(archive, archive.stat().st_mtime_ns)
    folder = cache_root() / f"{archive.name.removesuffix(ARCHIVE)}-{digest}"
    if not folder.is_dir():
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as elsewhere:
                whole = Path(elsewhere) / "model"
                with tarfile.open(archive) as content:
                    content.extractall(whole, filter="data")
                whole.rename(folder)
        except OSError as error:
            if not folder.is_dir():  # another process was not faster
                raise InputError(f"cannot unpack {archive.name} into {folder}: {error.strerror or error}") from None
    mark_used(folder)
    return folder
