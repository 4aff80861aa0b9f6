"""Models in one file: archives of run folders, which are unpacked into the cache."""

import hashlib
import json
import lzma
import re
import shutil
import stat
import sys
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.runs.folder import STACK
from graphormer_sepnorm.system.cache import delete, mark_used
from graphormer_sepnorm.system.files import cache_root, replacing

DIGESTS = ".sha256.json"  # the digests of the files of an unpacked model
SHARED = ".gsn"  # the ending of the file of a shared model
FIRST_DAY = (1980, 1, 1, 0, 0, 0)  # of every file in an archive, so that equal models are equal files
FILE_OF_RUN = re.compile(r"(model-\d{1,4}/)?\w[\w-]{0,60}\.(safetensors|json|csv)", re.ASCII)
UNREADABLE = (
    *(OSError, EOFError, UnicodeDecodeError, NotImplementedError, zlib.error),
    *(tarfile.TarError, lzma.LZMAError, zipfile.BadZipFile),
)
MOST_BYTES, MOST_FILES = 4_000_000_000, 1_000


@cache
def digest_of(path: Path, stamp: tuple[int, int]) -> str:
    """The SHA-256 of a file with this size and time of change."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest(path: Path) -> str:
    known = path.stat()
    return digest_of(path, (known.st_size, known.st_mtime_ns))


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
    except UNREADABLE as error:
        if not folder.is_dir():  # another process was not faster
            raise InputError(f"cannot unpack {archive.name} into {folder}: {error}") from None
    mark_used(folder)
    return folder


def is_whole(folder: Path) -> bool:
    """Whether the files of an unpacked model are as they were unpacked."""
    try:
        digests = json.loads((folder / DIGESTS).read_bytes())
        return bool(digests) and all(digest(folder / name) == known for name, known in digests.items())
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return False


def unpacked(archive: Path, name: str, card: Path, card_name: str) -> Path:
    """The folder of a shipped table model in the cache, with its card, as ``in_cache``."""

    def fill(whole: Path) -> None:
        with tarfile.open(archive) as content:
            content.extractall(whole, filter="data")
        shutil.copy(card, whole / card_name)

    both = hashlib.sha256((digest(archive) + digest(card)).encode()).hexdigest()
    return in_cache(name, both, archive, fill)


def is_shared(path: Path) -> bool:
    """Whether a file is named as a shared model, or begins as a ZIP archive."""
    if path.suffix.lower() == SHARED:
        return True
    with open(path, "rb") as file:
        return file.read(4) == b"PK\x03\x04"


def opened_model(archive: Path) -> Path:
    """The folder of a shared model in the cache, as ``in_cache``."""

    def fill(whole: Path) -> None:
        with zipfile.ZipFile(archive) as content:
            check_content(archive, content.infolist())
            for info in content.infolist():
                place = whole / info.filename
                place.parent.mkdir(exist_ok=True)
                with content.open(info) as source, open(place, "xb") as file:
                    shutil.copyfileobj(source, file)

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
