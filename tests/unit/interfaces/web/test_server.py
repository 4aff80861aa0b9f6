"""Connections that send no whole head of a request, on a real server."""

import socket
import threading
import urllib.request
from urllib.parse import urlsplit

import pytest

from graphormer_sepnorm.interfaces.web import app as server
from tests.page import InThisProcess, PretendedService, open_queue, served


@pytest.fixture
def address(tmp_path, monkeypatch):
    monkeypatch.setattr(server, "SECONDS_FOR_HEAD", 0.5)
    with open_queue(InThisProcess(PretendedService()), tmp_path) as queue, served(queue) as address:
        yield address


def connect(address: str) -> socket.socket:
    return socket.create_connection((urlsplit(address).hostname, urlsplit(address).port), timeout=60)


HEAD = b"GET /api/model HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.mark.parametrize("sent", [b"", HEAD[:10], HEAD])
def test_a_connection_without_a_whole_head_is_closed(address, sent):
    with connect(address) as connection:
        connection.sendall(sent)
        assert connection.recv(1000) == b""


def test_a_head_that_comes_byte_by_byte_is_given_up(address):
    """Each byte starts no new time."""
    with connect(address) as connection, pytest.raises(OSError):
        for byte in HEAD * 100:
            connection.sendall(bytes([byte]))
            threading.Event().wait(0.02)


def test_half_a_head_after_an_answer_is_given_up(address, monkeypatch):
    monkeypatch.setattr(server, "SECONDS_FOR_HEAD", 3)
    with connect(address) as connection:
        connection.sendall(HEAD + b"\r\n")
        assert connection.recv(100_000).startswith(b"HTTP/1.1 200")
        connection.sendall(HEAD)
        while received := connection.recv(100_000):
            assert received  # the rest of the answer
    with urllib.request.urlopen(f"{address}/api/model") as answer:
        assert answer.status == 200
