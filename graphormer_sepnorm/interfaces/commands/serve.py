import contextlib
import os
import re
import secrets
import socket
from pathlib import Path
from typing import Annotated

from graphormer_sepnorm.errors import InputError, not_installed
from graphormer_sepnorm.interfaces.commands import shared
from graphormer_sepnorm.interfaces.commands.shared import argument, option
from graphormer_sepnorm.system.signals import advising, interruptible

TOKEN_VARIABLE = "GRAPHORMER_SEPNORM_TOKEN"
LIMITS = "Limits"


def serve(
    models: Annotated[list[str], argument("MODEL...", f"Each is a {shared.MODEL}.", shared.predicting_names)],
    runs: Annotated[Path | None, option("Folder for models trained on the page, which trains none without it.")] = None,
    keep: Annotated[Path | None, option("Folder for tables, for a week; by default in the cache.")] = None,
    confidence: Annotated[float, option("Confidence level of intervals, if the model has them.")] = 0.9,
    port: Annotated[int, option("Port; 0: any free port.", min=0, max=65535)] = 8000,
    host: Annotated[str, option("Address; one that other machines can reach requires a token.")] = "127.0.0.1",
    root_path: Annotated[str, option("Prefix, such as /admet, that a proxy takes away from addresses.")] = "",
    max_rows: Annotated[int, option("Maximum number of molecules in a table.", panel=LIMITS, min=1)] = 50_000,
    max_megabytes: Annotated[float, option("Largest size of an upload.", panel=LIMITS, min=0.001)] = 20,
    max_minutes: Annotated[float, option("Longest computing time of a table.", panel=LIMITS, min=0.01)] = 30,
    device: shared.Device = "auto",
    precision: shared.Precision = "auto",
) -> None:
    """Serve a web page that predicts drawn, pasted and uploaded molecules.

    Ctrl-C closes the page when running downloads have finished. Tables are kept with their finished rows and can be
    downloaded after a restart. With a --host that other machines can reach, users need a token: that of
    GRAPHORMER_SEPNORM_TOKEN, or a new one, which is printed. GET /healthz says without a token whether it computes.

    Example: graphormer-sepnorm serve adme
    """
    try:
        from graphormer_sepnorm.interfaces.web.app import is_local, make_app, make_server
    except ModuleNotFoundError as error:
        raise not_installed("the page", str(error.name), "web") from None
    from graphormer_sepnorm.interfaces.web.job_queue import JobLimits, JobQueue, Worker
    from graphormer_sepnorm.interfaces.web.jobs import ResultStore
    from graphormer_sepnorm.interfaces.web.trainings import Trainings
    from graphormer_sepnorm.system.files import cache_root

    local = is_local(host)
    token = "" if local else find_token()
    with interruptible(), listening(host, port) as listener, contextlib.ExitStack() as open_things:
        store = ResultStore(keep or cache_root() / "tables")
        limits = JobLimits(int(max_megabytes * 1e6), max_rows, max_minutes * 60)
        trainings = open_things.enter_context(contextlib.closing(Trainings(runs, device))) if runs else None

        def open_worker(names: list[str]) -> Worker:
            return Worker(service_of, names or models, confidence, device, precision)

        names = (host, "localhost", "127.0.0.1", "::1") if local else ()
        root = f"/{root_path.strip('/')}".rstrip("/")
        queue = open_things.enter_context(contextlib.closing(JobQueue(open_worker, limits, store)))
        if words := queue.facts.about.get("training"):  # not finished
            shared.tell([words])
        server = make_server(make_app(queue, token, names, trainings, root))
        address = address_of(listener, host)
        entrance = f"{address}/?token={token}" if token and not os.environ.get(TOKEN_VARIABLE) else f"{address}/"
        shared.tell([f"open {entrance} in a browser; Ctrl-C closes the page"])
        shared.print_result({"address": address, "kept": str(store.folder)})
        with advising(f"finished tables are kept in {store.folder}"):
            server.run(sockets=[listener])


def find_token() -> str:
    token = os.environ.get(TOKEN_VARIABLE) or secrets.token_urlsafe(32)
    if not re.fullmatch(r"[\w-]{16,}", token, re.ASCII):
        raise InputError(f"{TOKEN_VARIABLE} needs 16 or more letters, digits, - or _: unset it to get a new token")
    return token


def service_of(names: list[str], confidence: float, device: str, precision: shared.PrecisionName) -> object:
    """The service of the computing process; the process of the page does not import it."""
    from graphormer_sepnorm.interfaces.web.service import load_service

    return load_service(names, confidence, device, precision)


def listening(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        problem = f"cannot listen at {host}, port {port} ({error.strerror})"
        raise InputError(f"{problem}: choose another with --host or --port") from None


def address_of(listener: socket.socket, host: str) -> str:
    return f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
