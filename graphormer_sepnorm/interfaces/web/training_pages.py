"""The addresses where people train a model on their own table."""

from collections.abc import Callable
from typing import Annotated, get_args

from fastapi import FastAPI, Form, Query, Request, UploadFile
from fastapi.responses import FileResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from graphormer_sepnorm.dataset import SplitName
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.interfaces.web.exchange import answer_to
from graphormer_sepnorm.interfaces.web.job_queue import JobQueue
from graphormer_sepnorm.interfaces.web.pages import Pages
from graphormer_sepnorm.interfaces.web.schemas import TableLook, TrainingChoice
from graphormer_sepnorm.interfaces.web.trainings import KINDS, Trainings

# A report has its own script and style; in a sandbox it reaches nothing of the page.
REPORT_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
        "frame-ancestors 'none'; sandbox allow-scripts"
    )
}
SCALES = {
    "": "as measured",
    "log10": "their logarithm (log10)",
    **{unit: f"-log10 of M, from {unit}" for unit in ("nM", "uM", "mM", "M", "pM")},
}


def add_training(
    app: FastAPI, queue: JobQueue, pages: Pages, trainings: Trainings | None, use: Callable[[list[str]], None] | None
) -> None:
    """The page of trainings; without ``trainings`` it says how to start them."""

    @app.get("/train", include_in_schema=False)
    def start() -> Response:
        return pages("train.html", trainings=trainings, label_kinds=KINDS)

    if trainings is not None and use is not None:
        add_choosing(app, queue, pages, trainings)
        add_following(app, pages, trainings, use)


def add_choosing(app: FastAPI, queue: JobQueue, pages: Pages, trainings: Trainings) -> None:
    """The pages of a table that is not trained on yet."""
    pages.environment.globals.update(scales=SCALES, splits=get_args(SplitName))

    async def look(number: str, choice: TrainingChoice) -> tuple[TableLook, TrainingChoice]:
        """The table, and the choice with the columns to predict."""
        table = trainings.upload(number)
        found = await answer_to(queue.ask("look", table, table.name, queue.limits.rows, choice), "look at the table")
        assert isinstance(found, TableLook)
        return found, choice.model_copy(update={"targets": found.chosen or choice.targets})

    @app.post("/train", include_in_schema=False)
    def upload(file: UploadFile) -> Response:
        return RedirectResponse(f"/train/{trainings.keep(file.file, file.filename or '')}", 303)

    @app.get("/train/{number}", include_in_schema=False)
    async def choose(request: Request, number: str, choice: Annotated[TrainingChoice, Query()]) -> Response:
        """The table with a form, or for htmx the part that depends on what is chosen."""
        found, choice = await look(number, choice)
        table = trainings.upload(number)
        name = "look.html" if "hx-request" in request.headers else "choose.html"
        command = trainings.command(table, choice)
        return pages(name, number=number, table=table.name, look=found, choice=choice, command=command)

    @app.post("/train/{number}", include_in_schema=False)
    async def train(number: str, choice: Annotated[TrainingChoice, Form()]) -> Response:
        found, choice = await look(number, choice)
        if found.problem:
            raise InputError(found.problem)
        await run_in_threadpool(trainings.start, trainings.upload(number), choice)
        return RedirectResponse("/train", 303)


def add_following(app: FastAPI, pages: Pages, trainings: Trainings, use: Callable[[list[str]], None]) -> None:
    """The training that runs, and the models of those that are finished."""

    @app.get("/trainings/status", include_in_schema=False)
    def status() -> Response:
        return pages("training.html", trainings=trainings)

    @app.post("/trainings/cancel", include_in_schema=False)
    def cancel() -> Response:
        trainings.cancel()
        return RedirectResponse("/train", 303)

    @app.get("/trainings/{name}/report", include_in_schema=False)
    def report(name: str) -> Response:
        return FileResponse(trainings.run(name).report, 200, REPORT_HEADERS, "text/html")

    @app.post("/models", include_in_schema=False)
    def use_model(name: Annotated[str, Form()] = "") -> Response:
        """Predicts with the model of a training from now on; with no name, with those at the beginning."""
        use([str(trainings.run(name).path)] if name else [])
        return RedirectResponse("/", 303)
