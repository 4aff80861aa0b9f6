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
