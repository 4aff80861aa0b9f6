import ctypes

import pytest

from graphormer_sepnorm.kernels.pool import pool_launcher


@pytest.fixture(autouse=True)
def _found_anew():
    pool_launcher.cache_clear()
    yield
    pool_launcher.cache_clear()


def test_every_thread_that_is_asked_for_runs_the_body():
    launch = pool_launcher()
    if launch is None:
        pytest.skip("PyTorch was built without GNU's OpenMP")
    seen = []
    body = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
    launch(body, 7, 3, 0)
    assert seen == [7, 7, 7]


def test_a_missing_library_gives_no_pool(monkeypatch):
    def missing(path: str):
        raise OSError(path)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert pool_launcher() is None


def test_a_library_without_openmp_gives_no_pool(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda path: object())
    assert pool_launcher() is None
