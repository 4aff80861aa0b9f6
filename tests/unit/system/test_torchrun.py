from graphormer_sepnorm.system.torchrun import local_rank, num_processes, rank

PLACE = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1"}


def place() -> tuple[int, ...]:
    return rank(), num_processes(), local_rank()


def test_the_rank_comes_only_from_torchrun(monkeypatch):
    for name, value in PLACE.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("TORCHELASTIC_RUN_ID", raising=False)
    assert place() == (0, 1, 0), "another launcher's variables"
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "run")
    assert place() == (5, 8, 1)
