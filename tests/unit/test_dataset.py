from pathlib import Path

from graphormer_sepnorm.dataset import ROOT_VARIABLE, data_root
from graphormer_sepnorm.system.files import CACHE_VARIABLE, cache_root


def test_the_root_is_the_argument_before_the_variable_before_a_folder_here(monkeypatch):
    monkeypatch.setenv(ROOT_VARIABLE, "/of/the/variable")
    assert data_root("/named") == Path("/named")
    assert data_root(None) == Path("/of/the/variable")
    monkeypatch.setenv(ROOT_VARIABLE, "")
    assert data_root(None) == Path("datasets")
    monkeypatch.delenv(ROOT_VARIABLE)
    assert data_root(None) == Path("datasets")


def test_the_cache_is_the_environment_variable_or_the_users_cache(monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, "/of/the/variable")
    assert cache_root() == Path("/of/the/variable")
    monkeypatch.delenv(CACHE_VARIABLE)
    monkeypatch.setenv("HOME", "/home/of/someone")
    assert cache_root() == Path("/home/of/someone/.cache/graphormer_sepnorm")
