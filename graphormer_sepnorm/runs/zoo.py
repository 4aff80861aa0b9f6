"""Names of models: shipped ones, shared files, which are unpacked into the cache, and paths; cards of models."""

import hashlib
import json
import lzma
import os
import re
import shutil
import stat
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import field
from difflib import get_close_matches
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from graphormer_sepnorm.config import first_problem
from graphormer_sepnorm.datasets.store import sha256_of_file
from graphormer_sepnorm.encodings.base import STRICT
from graphormer_sepnorm.errors import InputError, did_you_mean
from graphormer_sepnorm.runs.folder import STACK, RunFolder, runs_in, weights_file
from graphormer_sepnorm.system.files import cache_root, delete, mark_used, replacing
from graphormer_sepnorm.tables.formats import is_table_name
from graphormer_sepnorm.tasks import METRICS

RESOURCES = "graphormer_sepnorm.resources"
ARCHIVE = ".tar.xz"
CARD = "card.json"
DIGESTS = ".sha256.json"  # the digests of the files of an unpacked model
SHARED = ".gsn"  # the ending of the file of a shared model
FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # of every file in an archive, so that equal models are equal files
FILE_OF_RUN = re.compile(r"(model-\d{1,4}/)?\w[\w-]{0,60}\.(safetensors|json|csv)", re.ASCII)
UNREADABLE = OSError, EOFError, UnicodeDecodeError, NotImplementedError, zlib.error, tarfile.TarError, lzma.LZMAError
MOST_BYTES, MOST_FILES = 4_000_000_000, 1_000
PRETRAINED = {"foundation", "foundation-mini"}  # for fine-tuning and embeddings: they predict no property


def resolve_model(name: str | os.PathLike) -> Path:
    """The run folder or weights file of a path or of a shipped model by name; that of a shared file is in the cache."""
    path = Path(name)
    if os.path.isfile(path) and is_table_name(path):
        raise InputError(f"{name} is a table, not a model: name a run folder, a weights file or a shipped model")
    if os.path.isfile(path) and is_shared(path):
        return opened_model(path)
    if os.path.exists(path):
        return path
    weights, tables = shipped_models(), shipped_tables()
    if (archive := tables.get(str(name))) is not None:
        return unpacked_model(archive, str(name), archive.with_name(f"{name}.json"), CARD)
    if str(name) in weights:
        return weights[str(name)]
    names = sorted(weights | tables)
    shared = [file for ending in (SHARED, ".safetensors") for file in path.parent.glob(f"*{ending}")]
    similar = get_close_matches(path.name, [each.name for each in [*runs_in(path.parent), *shared]], n=1)
    near = did_you_mean(str(name), [*names, *(str(path.parent / run) for run in similar)])
    predicting = ", ".join(each for each in names if each not in PRETRAINED)
    listed = f"{predicting}; for fine-tuning {', '.join(sorted(PRETRAINED))}"
    raise InputError(f"there is no file or folder {name}, and no shipped model of this name ({listed}){near}")


def shipped(ending: str) -> dict[str, Path]:
    return {file.name.removesuffix(ending): file for file in resource_files() if file.name.endswith(ending)}


def resource_files() -> list[Path]:
    return [Path(str(entry)) for entry in resources.files(RESOURCES).iterdir()]


shipped_models = partial(shipped, ".safetensors")  # weights
shipped_tables = partial(shipped, ARCHIVE)  # table models: archives of their folders


@dataclass(frozen=True, config=STRICT)
class AssayLimit:
    """The lowest or highest value that an assay reports; predictions from ``value`` on, to its side, are near it."""

    value: float
    side: Literal["less", "more"]
    unit: Literal["", "uM"] = ""  # "" for the scale of the predictions, "uM" of predictions that are log10 of ug/mL
    meaning: str = ""  # in words, as the number of training labels near it
    labels: str = ""

    def __str__(self) -> str:
        return f"{self.value:g}{self.unit and ' '}{self.unit} or {self.side}"


@dataclass(frozen=True, config=STRICT)
class Endpoint:
    """A target of a model, with the source and licence of its data."""

    description: str  # what is measured, with the unit
    scale: str = ""  # how the target is computed from it, such as "log10"; "" for the value itself
    molecules: int | None = None  # for training
    positives: float | None = None  # share of class 1 among their labels
    rmse_out_of_fold: float | None = None
    others: dict[str, float] = field(default_factory=dict)  # RMSE of other models, by name
    limit: AssayLimit | None = None
    group: str = ""  # heading that it is listed under, such as "Absorption"
    direction: Literal["higher", "lower", ""] = ""  # of better values; "" if that depends
    score: float | None = None  # for molecules that the model did not learn
    metric: str = ""  # of the score, as in ``METRICS``
    source: str = ""
    licence: str = ""
    trust: str = ""  # a sentence on when not to trust the predictions

    def __post_init__(self) -> None:
        if (self.score is None) != (not self.metric) or self.metric not in ("", *METRICS):
            raise ValueError(f"a score needs its metric, one of {', '.join(METRICS)}")

    def facts(self) -> dict[str, Any]:
        """The known ones of its facts, as JSON values."""
        texts = ("metric", "group", "direction", "source", "licence", "trust")
        numbers = ("description", "molecules", "positives", "rmse_out_of_fold", "limit", "score")
        card = {name: getattr(self, name) for name in (*numbers, *texts)}
        card["description"] = f"{self.scale} of {self.description}" if self.scale else self.description
        card["limit"] = self.limit and str(self.limit)
        return {name: value for name, value in card.items() if value not in (None, "")}


@dataclass(frozen=True, config=STRICT)
class ModelCard:
    """Facts about a table model, in ``card.json`` in its folder: data and licence in words, and endpoints by target."""

    training_data: str
    licence: str
    endpoints: dict[str, Endpoint] = field(default_factory=dict)

    @property
    def limits(self) -> dict[str, AssayLimit]:
        return {target: endpoint.limit for target, endpoint in self.endpoints.items() if endpoint.limit}

    @property
    def descriptions(self) -> dict[str, str]:
        return {target: endpoint.description for target, endpoint in self.endpoints.items()}


READ_CARD = TypeAdapter(ModelCard)


def read_card(place: Path) -> ModelCard | None:
    """The card in a run folder; None if there is none; raises InputError if it is not valid."""
    path = place / CARD
    if not path.is_file():
        return None
    try:
        return READ_CARD.validate_json(path.read_bytes())
    except ValidationError as error:
        raise InputError(f"{path} is not a card: {first_problem(error)}") from None


def panel_parts(place: Path) -> list[Path]:
    """The run folders of the table models in the folder of a panel, which has their card; empty for any other path."""
    if RunFolder(place).stack.exists() or not (place / CARD).is_file():
        return []
    return [path for path in runs_in(place) if RunFolder(path).stack.exists()]


def model_digest(place: Path) -> str:
    """12 digits that equal models share; a ``STACK`` has the digests of the other files of its model."""
    files = [RunFolder(part).stack for part in panel_parts(place) or [place]]
    digests = (digest(each if each.exists() else weights_file(place)) for each in files)
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:12]


def card_facts(place: Path) -> dict[str, str]:
    """The training data and the licence in the card of a model; empty without a card."""
    card = read_card(place)
    return {"training_data": card.training_data, "licence": card.licence} if card else {}


def card_endpoints(place: Path) -> dict[str, dict[str, Any]]:
    """The facts in the card of a model by target, as ``Endpoint.facts``; empty without a card."""
    card = read_card(place)
    return {target: endpoint.facts() for target, endpoint in card.endpoints.items()} if card else {}


@cache
def digest_of(path: Path, stamp: tuple[int, int]) -> str:
    """The SHA-256 of a file with this size and time of change."""
    return sha256_of_file(path)


def digest(path: Path) -> str:
    status = path.stat()
    return digest_of(path, (status.st_size, status.st_mtime_ns))


def in_cache(name: str, content: str, archive: Path, fill: Callable[[Path], None]) -> Path:
    """The folder of an unpacked model in the cache, named by ``name`` and ``content``, a digest of everything in it."""
    folder = cache_root() / f"{name}-{content[:16]}"
    try:
        if (folder.exists() or folder.is_symlink()) and not is_whole(folder):
            print(f"{folder} is damaged: {name} is unpacked again", file=sys.stderr)
            delete(folder)
        if not folder.is_dir():
            folder.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".unpacking-", dir=folder.parent) as elsewhere:
                whole = Path(elsewhere) / "model"
                whole.mkdir()
                fill(whole)
                files = (path for path in whole.rglob("*") if path.is_file())
                digests = {path.relative_to(whole).as_posix(): digest(path) for path in files}
                (whole / DIGESTS).write_text(json.dumps(digests))
                whole.rename(folder)
    except (*UNREADABLE, zipfile.BadZipFile) as error:
        if not folder.is_dir():  # another process was not faster
            raise InputError(f"cannot unpack {archive.name} into {folder}: {error}") from None
    mark_used(folder)
    return folder


def is_whole(folder: Path) -> bool:
    try:
        digests = json.loads((folder / DIGESTS).read_bytes())
        return bool(digests) and all(digest(folder / name) == expected for name, expected in digests.items())
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return False


def unpacked_model(archive: Path, name: str, card: Path, card_name: str) -> Path:
    """The folder of a shipped table model in the cache, with its card, as ``in_cache``."""

    def fill(whole: Path) -> None:
        shutil.unpack_archive(archive, whole, filter="data")
        shutil.copy(card, whole / card_name)

    both = hashlib.sha256((digest(archive) + digest(card)).encode()).hexdigest()
    return in_cache(name, both, archive, fill)


def is_shared(path: Path) -> bool:
    """Whether a file is named as a shared model, or begins as a ZIP archive."""
    with open(path, "rb") as file:
        return path.suffix.lower() == SHARED or file.read(4) == b"PK\x03\x04"


def opened_model(archive: Path) -> Path:
    """The folder of a shared model in the cache, as ``in_cache``."""

    def fill(whole: Path) -> None:
        with zipfile.ZipFile(archive) as content:
            check_content(archive, content.infolist())
            content.extractall(whole)

    if not zipfile.is_zipfile(archive):
        raise InputError(f"{archive} is damaged or no model that export wrote: ask for the file again")
    return in_cache(re.sub(r"[^\w-]", "-", archive.stem)[:60] or "model", digest(archive), archive, fill)


def check_content(archive: Path, files: list[zipfile.ZipInfo]) -> None:
    """Raises InputError unless the files of an archive are those of a run folder, few, and not too large."""
    names, foreign = [info.filename for info in files], f"{archive} is no model that export wrote"
    for info in files:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if not FILE_OF_RUN.fullmatch(info.filename) or kind not in (0, stat.S_IFREG) or info.flag_bits & 1:
            raise InputError(f"{foreign}: it has {info.filename[:80]!r}, and is not opened")
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise InputError(f"{foreign}: {info.filename} is packed in another way")
    if STACK not in names or len(set(map(str.lower, names))) < len(names) or len(names) > MOST_FILES:
        raise InputError(f"{foreign}: it has no {STACK}, or too many files")
    if sum(info.file_size for info in files) > MOST_BYTES:
        raise InputError(f"{archive} would need more than {MOST_BYTES / 1e9:g} GB, more than a model: it is not opened")


def write_archive(out: Path, files: Mapping[str, bytes]) -> None:
    """Writes files by name into an archive of which equal content has equal bytes; raises OSError."""
    with replacing(out) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name, FIRST_DAY), content, zipfile.ZIP_DEFLATED)
