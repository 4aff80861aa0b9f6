"""Who may ask, how much and how slowly, and what every answer says to a browser."""

import asyncio
import socket
import threading
import urllib.request
from urllib.parse import urlsplit

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from graphormer_sepnorm.interfaces.web import app as module
from graphormer_sepnorm.interfaces.web.app import COOKIE, is_local, middleware
from tests.page import InThisProcess, PretendedService, open_queue, served

TOKEN = "a-token-of-16-or-more"


async def echo(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"{request.url.path} {len(await request.body())}")


def client(token: str = "", names: tuple[str, ...] = ()) -> TestClient:
    routes = [Route("/{path:path}", echo, methods=["GET", "POST"])]
    app = Starlette(routes=routes, middleware=middleware(1000, token, names))
    return TestClient(app, base_url="http://localhost:8000", follow_redirects=False)


def test_addresses_of_this_machine():
    assert all(map(is_local, ["127.0.0.1", "127.8.8.8", "::1", "localhost"]))
    assert not any(map(is_local, ["0.0.0.0", "::", "192.168.0.1", "example.org", "localhost.example.org", ""]))


def test_headers_that_keep_a_page_to_itself():
    headers = client().get("/").headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy and "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff" and headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin" and headers["cache-control"] == "no-store"
    assert "server" not in headers


def test_another_name_that_points_here_is_refused():
    page = client(names=("localhost", "127.0.0.1", "::1"))
    assert page.get("/").status_code == 200 and page.get("/", headers={"host": "[::1]:8000"}).status_code == 200
    assert set(page.get("/api/model", headers={"host": "evil.example"}).json()) == {"detail"}
    for host in ("evil.example", "evil.example:8000", "", "[", "localhost.evil.example"):
        assert page.get("/", headers={"host": host}).status_code == 400


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://localhost:8000", "sec-fetch-site": "same-origin"}, 200),
        ({"host": "chem.example.org", "origin": "https://chem.example.org"}, 200),  # behind a proxy
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://localhost:9000"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site"}, 403),
    ],
)
def test_forms_of_other_pages_are_refused(headers, status):
    assert client().post("/", headers=headers).status_code == status


@pytest.mark.parametrize(("path", "most"), [("/", 1000), ("/enter", 100)])
def test_size_is_limited_whether_it_is_said_or_not_and_more_without_a_token(path, most, monkeypatch):
    monkeypatch.setattr(module, "MOST_BYTES_WITHOUT_TOKEN", 100)
    assert client().post(path, content=b"x" * most).text == f"{path} {most}"
    for content in (b"x" * (most + 1), (b"x" * (most // 2 + 1) for _ in range(2))):
        refused = client().post(path, content=content)
        assert refused.status_code == 413 and f"at most {most / 1e6:g} MB" in refused.text


def test_a_body_that_comes_too_slowly_is_given_up(monkeypatch):
    """The first part is in time, and the second one never comes."""
    monkeypatch.setattr(module, "SECONDS_FOR_BODY", 0.05)
    parts, sent = iter([{"type": "http.request", "body": b"x" * 100, "more_body": True}]), []

    async def receive() -> dict:
        return next(parts, None) or await asyncio.Event().wait()

    async def send(message: dict) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "query_string": b"", "http_version": "1.1"}
    asyncio.run(client().app(scope, receive, send))
    assert sent[0]["status"] == 408


def test_the_answer_to_a_whole_body_may_take_longer(monkeypatch):
    """Starlette goes on to receive, for the end of the connection."""
    monkeypatch.setattr(module, "SECONDS_FOR_BODY", 0.0)
    received = []

    async def app(scope, receive, send) -> None:
        received.extend([await receive(), await receive()])

    async def receive() -> dict:
        if not received and whole:
            return whole.pop()
        await asyncio.sleep(0.01)
        return {"type": "http.disconnect"}

    whole = [{"type": "http.request", "body": b"", "more_body": False}]
    asyncio.run(module.BodyLimits(app, 1000)({"type": "http", "path": "/", "headers": []}, receive, None))
    assert [message["type"] for message in received] == ["http.request", "http.disconnect"]


def test_without_the_token_nothing_is_answered():
    page = client(TOKEN)
    assert page.get("/").headers["location"] == "/enter"
    assert page.post("/tables").headers["location"] == "/enter"
    refused = page.get("/api/model")
    assert refused.status_code == 401 and refused.headers["www-authenticate"] == "Bearer"
    assert page.get("/enter").status_code == 200 and page.get("/static/page.css").status_code == 200
    assert page.get("/api/model", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200


@pytest.mark.parametrize("given", ["", "wrong", TOKEN[:-1], TOKEN + "x", TOKEN.upper(), "é"])
def test_another_token_is_refused(given):
    page = client(TOKEN)
    assert page.get("/", params={"token": given}).headers["location"] == "/enter"
    bearer = {"authorization": f"Bearer {given}".encode()}
    assert page.get("/api/model", headers=bearer).status_code == 401
    assert page.get("/api/model", headers={"cookie": f"{COOKIE}-8000={given}".encode()}).status_code == 401


def test_the_token_in_the_address_becomes_a_cookie_and_leaves_the_address():
    page = client(TOKEN)
    answer = page.get("/tables/1", params={"page": "2", "token": TOKEN})
    assert answer.status_code == 303 and answer.headers["location"] == "/tables/1?page=2"
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie
    assert page.get("/tables/1").text == "/tables/1 0"
    assert "secure" not in cookie
    assert "secure" in page.get("https://localhost/", params={"token": TOKEN}).headers["set-cookie"].lower()


def test_a_part_of_a_page_leads_the_whole_page_to_the_entrance():
    answer = client(TOKEN).get("/tables/1/status", headers={"hx-request": "true"})
    assert answer.status_code == 401 and answer.headers["hx-redirect"] == "/enter"
    for path in ("/enterx", "/enter/x", "/static"):  # only the entrance and files are open
        assert client(TOKEN).get(path).headers["location"] == "/enter"
    answer = client(TOKEN).get("http://127.0.0.1:8001/", params={"token": TOKEN})
    assert answer.headers["set-cookie"].startswith(f"{COOKIE}-8001=")
    answer = client(TOKEN).get("http://localhost:8000//evil.example/", params={"token": TOKEN})
    assert answer.headers["location"].startswith("/evil.example")


@pytest.fixture
def address(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_FOR_HEAD", 0.5)
    with open_queue(InThisProcess(PretendedService()), tmp_path) as queue, served(queue) as address:
        yield address


def connect(address: str) -> socket.socket:
    return socket.create_connection((urlsplit(address).hostname, urlsplit(address).port), timeout=60)


HEAD = b"GET /api/model HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.slow
@pytest.mark.parametrize("sent", [b"", HEAD[:10], HEAD])
def test_a_connection_without_a_whole_head_is_closed(address, sent):
    with connect(address) as connection:
        connection.sendall(sent)
        assert connection.recv(1000) == b""


@pytest.mark.slow
def test_a_head_that_comes_byte_by_byte_is_given_up(address):
    """Each byte starts no new time."""
    with connect(address) as connection, pytest.raises(OSError):
        for byte in HEAD * 100:
            connection.sendall(bytes([byte]))
            threading.Event().wait(0.02)


@pytest.mark.slow
def test_half_a_head_after_an_answer_is_given_up(address, monkeypatch):
    monkeypatch.setattr(module, "SECONDS_FOR_HEAD", 3)
    with connect(address) as connection:
        connection.sendall(HEAD + b"\r\n")
        assert connection.recv(100_000).startswith(b"HTTP/1.1 200")
        connection.sendall(HEAD)
        while received := connection.recv(100_000):
            assert received  # the rest of the answer
    with urllib.request.urlopen(f"{address}/api/model") as answer:
        assert answer.status == 200
