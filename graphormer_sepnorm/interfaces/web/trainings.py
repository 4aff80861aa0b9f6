"""Trainings of the page, one at a time by the command ``train`` in a process of its own, and their addresses."""

import asyncio
import contextlib
import os
import re
import secrets
import shlex
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass, field, replace
from itertools import chain, count
from pathlib import Path, PurePath
from typing import Annotated, Any, BinaryIO, ClassVar, Literal, cast, get_args

from fastapi import FastAPI, Form, Query, Request, UploadFile
from fastapi.responses import FileResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from graphormer_sepnorm.dataset import SplitName
from graphormer_sepnorm.errors import InputError, as_text
from graphormer_sepnorm.interfaces.web.job_queue import JobQueue
from graphormer_sepnorm.interfaces.web.jobs import keep
from graphormer_sepnorm.interfaces.web.pages import Pages
from graphormer_sepnorm.interfaces.web.schemas import TableLook, TrainingChoice
from graphormer_sepnorm.runs.folder import RunFolder
from graphormer_sepnorm.system.files import own_folder
from graphormer_sepnorm.system.progress import AS_LINES, MARK
from graphormer_sepnorm.system.signals import END_WITH_INPUT
from graphormer_sepnorm.tables.formats import TABLE_KINDS

KINDS = tuple(kind for kind in TABLE_KINDS if kind != ".smi")  # which have labels
MOST_UPLOADS = 10
MOST_OF_NAME = 60
SECONDS_TO_END = 10
SOURCES = Path(__file__).parents[3]
# A report has its own script and style; in a sandbox it reaches nothing of the page.
REPORT_POLICY = (
    "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "frame-ancestors 'none'; sandbox allow-scripts"
)


@dataclass
class TrainingStatus:
    """How far the training of a run folder is, with what the command has said so far, and why it failed."""

    name: str
    command: str
    table: Path
    process: subprocess.Popen
    state: Literal["training", "done", "cancelled", "failed"] = "training"
    phase: str = ""
    percent: int = 0
    left: str = ""
    sentences: list[str] = field(default_factory=list)
    problem: str = ""


class Trainings:
    """The trainings of a page, and the run folders that they leave in ``runs``, which are moved there when whole.

    One that is cancelled, fails or is killed leaves nothing, nor does a killed page once the next one has started.
    """

    command_line: ClassVar = [sys.executable, "-m", "graphormer_sepnorm"]

    def __init__(self, runs: Path, device: str = "auto"):
        self.runs, self.device = runs, device
        self.claim = contextlib.ExitStack()
        self.folder = self.claim.enter_context(own_folder(runs.absolute(), ".training-"))
        self.uploads: dict[str, Path] = {}
        self.lock = threading.Lock()
        self.progress: TrainingStatus | None = None
        self.thread = threading.Thread()  # that of the last training

    def names(self) -> list[str]:
        """The finished trainings, the last one first."""
        runs = [run for run in map(RunFolder, self.runs.glob("[!.]*")) if run.stack.exists() and run.report.exists()]
        return [run.path.name for run in sorted(runs, key=lambda run: -run.report.stat().st_mtime)]

    def run(self, name: str) -> RunFolder:
        if name not in self.names():
            raise InputError(f"there is no finished training {name!r}")
        return RunFolder(self.runs / name)

    def keep(self, file: BinaryIO, name: str) -> str:
        """The number of an uploaded table, of which the last ones are kept; raises InputError for what is none."""
        suffix, number = PurePath(name).suffix.lower(), secrets.token_hex(16)
        if suffix not in KINDS:
            raise InputError(f"{name or 'this'} is not a table with labels: give one of {', '.join(KINDS)}")
        stem = re.sub(r"[^\w.-]+", "-", PurePath(name).stem)[:MOST_OF_NAME].strip("-.") or "table"
        path = self.folder / number / f"{stem}{suffix}"
        keep(file, path, path.name)
        with self.lock:
            self.uploads[number] = path
            for each in list(self.uploads)[:-MOST_UPLOADS]:
                if not (self.is_training and self.progress and self.progress.table == self.uploads[each]):
                    shutil.rmtree(self.uploads.pop(each).parent, ignore_errors=True)
        return number

    def upload(self, number: str) -> Path:
        if not (path := self.uploads.get(number)):
            raise InputError("this table is no longer kept: upload it again")
        return path

    def arguments(self, table: Path, choice: TrainingChoice) -> list[str]:
        """The arguments of the command, which ends with the name of a run folder that is not there yet."""
        names = (f"{table.stem}-{number}" for number in count(2))
        out = next(name for name in chain([table.stem], names) if not (self.runs / name).exists())
        device = [] if self.device == "auto" else ["--device", self.device]
        return ["train", table.name, *choice.arguments(), *device, "--out", out]

    def command(self, table: Path, choice: TrainingChoice) -> str:
        *arguments, out = self.arguments(table, choice)
        return shlex.join(["graphormer-sepnorm", *arguments, str(self.runs / out)])

    @property
    def is_training(self) -> bool:
        return self.thread.is_alive()

    def start(self, table: Path, choice: TrainingChoice) -> None:
        """Starts a training; raises InputError while another one runs, or if it cannot be started."""
        with self.lock:
            if self.is_training:
                raise InputError("another training runs: wait for its end, or cancel it")
            arguments = self.arguments(table, choice)
            paths = os.pathsep.join(filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")]))
            pipes: dict[str, Any] = dict.fromkeys(("stdin", "stderr"), subprocess.PIPE)
            pipes |= {"stdout": subprocess.DEVNULL, "encoding": "utf-8", "errors": "replace"}
            env = os.environ | {AS_LINES: "1", END_WITH_INPUT: "1", "PYTHONPATH": paths}
            try:
                process = subprocess.Popen([*self.command_line, *arguments], cwd=table.parent, env=env, **pipes)
            except OSError as error:
                raise InputError(f"the training could not be started: {error.strerror}") from None
            self.progress = TrainingStatus(arguments[-1], self.command(table, choice), table, process)
            self.thread = threading.Thread(target=self.follow, args=(self.progress,))
            self.thread.start()

    def follow(self, progress: TrainingStatus) -> None:
        process, folder = progress.process, progress.table.parent / progress.name
        assert process.stderr and process.stdin
        for line in map(str.strip, process.stderr):
            if line.startswith(MARK):
                progress.phase, percent, progress.left = line.removeprefix(MARK).rsplit("|", 2)
                progress.percent = int(percent)
            elif line:
                progress.sentences.append(as_text(line))
        problem = reason_of_end(process.wait(), progress.sentences)
        process.stdin.close()
        with self.lock:
            if progress.state == "training":
                try:
                    if not problem:
                        os.rename(folder, self.runs / progress.name)
                except OSError as error:
                    problem = f"the run cannot be moved to {self.runs}: {error.strerror}"
                progress.state, progress.problem = "failed" if problem else "done", problem
        shutil.rmtree(folder, ignore_errors=True)

    def cancel(self) -> None:
        """Ends the training, if one runs; nothing of it is left."""
        with self.lock:
            if not self.progress or self.progress.state != "training":
                return
            self.progress.state = "cancelled"
            process, thread = self.progress.process, self.thread
        process.terminate()
        thread.join(SECONDS_TO_END)
        process.kill()
        thread.join()

    def close(self) -> None:
        """As ``cancel``; the uploads are removed, too."""
        self.cancel()
        self.claim.close()


def reason_of_end(code: int, lines: list[str]) -> str:
    """Why a command with this exit code failed, in a sentence; "" if it did not."""
    if errors := [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]:
        return errors[-1]
    if code < 0:
        return f"the training was killed (signal {-code}), perhaps for lack of memory"
    if code > 0:
        print("\n".join(lines), file=sys.stderr)
    return "the training failed: the terminal of the server says where" if code else ""


def add_training(app: FastAPI, queue: JobQueue, pages: Pages, trainings: Trainings | None) -> None:
    """The page of trainings; without ``trainings`` it says how to start them."""

    app.add_api_route("/train", lambda: pages("train.html", trainings=trainings), include_in_schema=False)
    if trainings is None:
        return
    app.add_api_route("/trainings/status", lambda: pages("training.html", trainings=trainings), include_in_schema=False)

    @app.post("/trainings/cancel", include_in_schema=False)
    def cancel() -> Response:
        trainings.cancel()
        return RedirectResponse("/train", 303)

    @app.get("/trainings/{name}/report", include_in_schema=False)
    def report(name: str) -> Response:
        return FileResponse(trainings.run(name).report, 200, {"Content-Security-Policy": REPORT_POLICY}, "text/html")

    @app.post("/models", include_in_schema=False)
    def use_model(name: Annotated[str, Form()] = "") -> Response:
        """Predicts with the model of a training from now on; with no name, with those at the beginning."""
        queue.use([str(trainings.run(name).path)] if name else [])
        return RedirectResponse("/", 303)

    last, looking = dict[str, TrainingChoice](), asyncio.Lock()

    async def look(number: str, choice: TrainingChoice) -> dict[str, Any]:
        """How the table is understood, for templates; raises HTTPException if another choice came meanwhile."""
        table = trainings.upload(number)
        last[number] = choice
        async with looking:
            if last[number] is not choice:
                raise HTTPException(409, "the choice has changed since: look again")
            answer = cast(TableLook, await queue.ask("look", table, table.name, queue.limits.rows, choice))
        choice = choice.model_copy(update={"targets": answer.chosen or choice.targets})
        context = {"number": number, "table": table.name, "look": answer, "choice": choice}
        return context | {"splits": get_args(SplitName), "command": trainings.command(table, choice)}

    @app.post("/train", include_in_schema=False)
    def upload(file: UploadFile) -> Response:
        return RedirectResponse(f"/train/{trainings.keep(file.file, file.filename or '')}", 303)

    @app.get("/train/{number}", include_in_schema=False)
    async def choose(request: Request, number: str, choice: Annotated[TrainingChoice, Query()]) -> Response:
        """The table with a form, or for htmx the part that depends on what is chosen."""
        name = "look.html" if "hx-request" in request.headers else "choose.html"
        return pages(name, **await look(number, choice))

    @app.post("/train/{number}", include_in_schema=False)
    async def train(number: str, choice: Annotated[TrainingChoice, Form()]) -> Response:
        context = await look(number, choice)
        try:
            if context["look"].problem:
                raise InputError(context["look"].problem)
            await run_in_threadpool(trainings.start, trainings.upload(number), context["choice"])
        except InputError as error:
            refused = replace(context["look"], problem=as_text(error.sentence))
            return pages("choose.html", 422, **context | {"look": refused, "is_refused": True})
        return RedirectResponse("/train", 303)
