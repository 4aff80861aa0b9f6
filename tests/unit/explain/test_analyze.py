from graphormer_sepnorm.explain import analyze
from graphormer_sepnorm.explain.analyze import analyze_run
from tests.tiny import save_tiny


def test_measures_of_a_run_are_possible_ones(tmp_path):
    result = analyze_run(save_tiny(tmp_path, featurizer="zinc"), "val")
    assert (result["dataset"], result["split"], result["molecules"]) == ("sample", "val", 500)
    values = result["singular_values"]
    assert len(values) == 16 and values == sorted(values, reverse=True)
    assert 1 <= result["effective_rank"] <= 16
    assert result["uniformity"] <= 0 and 0 < result["isotropy"] <= 1


def test_of_many_molecules_the_same_are_drawn_every_time(tmp_path, monkeypatch):
    monkeypatch.setattr(analyze, "MAX_MOLECULES", 50)
    run = save_tiny(tmp_path, featurizer="zinc")
    first = analyze_run(run, "val")
    assert first["molecules"] == 50 and first == analyze_run(run, "val")
