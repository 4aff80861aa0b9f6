import json
import math

import pytest
import torch

from tests.examples import load_example, run_example

pytestmark = pytest.mark.slow
SENTENCES = ["A cat sat on the mat.", "Stocks fell sharply in early trading on Monday."]


@pytest.fixture(scope="module")
def example():
    pytest.importorskip("transformers")
    pytest.importorskip("gensim")
    return load_example("sentences")


def test_the_corpus_is_there_and_its_parts_differ(example):
    corpus = example.wikipedia()
    sizes = {part: len(sentences) for part, sentences in corpus.sentences.items()}
    assert sizes["train"] > 10_000 and sizes["val"] > 1_000 and sizes["test"] > 1_000
    assert all(len(corpus.articles[part]) == size for part, size in sizes.items())
    shared = set(corpus.sentences["train"]) & set(corpus.sentences["test"])
    assert len(shared) < 0.02 * sizes["test"]  # a few sentences are in Wikipedia twice


def test_loss_of_orthogonal_sentences(example):
    """Each embedding is at cosine 1 from its other one and at 0 from the other sentence's."""
    x = torch.eye(2, dtype=torch.float64)
    expected = math.log1p(math.exp(-1 / example.TEMPERATURE))
    assert example.simcse(x, 3 * x).item() == pytest.approx(expected, abs=1e-15)
    assert example.simcse(x, x.flip(0)).item() == pytest.approx(1 / example.TEMPERATURE, rel=1e-6)


@pytest.mark.parametrize("name", ["BERT", "RoBERTa"])
def test_padding_changes_no_embedding_and_the_cls_is_normed_apart(example, name):
    torch.manual_seed(0)
    encoder = example.from_scratch(name, width=16, layers=1)
    example.separated(encoder.model, "SepNorm", example.IN_LAYERS)
    assert len(encoder.model.separated_norms.replaced) == 2
    encoder.eval()
    alone, together = (example.embed(encoder, some)[:1] for some in (SENTENCES[:1], SENTENCES))
    torch.testing.assert_close(alone, together)
    tokens = encoder.tokenizer(SENTENCES[0])["input_ids"]
    assert tokens[0] == encoder.tokenizer.cls_token_id and tokens[-1] == encoder.tokenizer.sep_token_id
    assert encoder.tokenizer.unk_token_id not in tokens


def write_sts(folder):
    (folder / "STS12-en-test").mkdir(parents=True)
    (folder / "STS12-en-test" / "STS.input.one.txt").write_text("a b\tc d\ne f\tg h\nno\tscore\n")
    (folder / "STS12-en-test" / "STS.gs.one.txt").write_text("5\n0.5\n\n")
    (folder / "STSBenchmark").mkdir()
    (folder / "STSBenchmark" / "sts-test.csv").write_text('main\tx\t2012\t1\t2.5\tA "man".\tA dog.\n')
    (folder / "SICK").mkdir()
    lines = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tjudgment\n7\tOne\tTwo\t4.1\tNEUTRAL\n"
    (folder / "SICK" / "SICK_test_annotated.txt").write_text(lines)


def test_tasks_in_the_layout_of_senteval(example, tmp_path):
    write_sts(tmp_path)
    assert example.read_sts(tmp_path) == {
        "STS12": (["a b", "e f"], ["c d", "g h"], [5.0, 0.5]),
        "STS-B": (['A "man".'], ["A dog."], [2.5]),
        "SICK-R": (["One"], ["Two"], [4.1]),
    }


@pytest.mark.nightly
def test_a_tiny_run_from_the_command_line(tmp_path):
    write_sts(tmp_path / "sts")
    tiny = ("--sentences", "128", "--width", "8", "--layers", "1", "--seeds", "1", "--sts", tmp_path / "sts")
    done = run_example("sentences", *tiny, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr[-3000:]
    rows = json.loads((tmp_path / "out" / "results.json").read_text())["rows"]
    assert [(row["model"], row["norm"]) for row in rows] == [
        (model, norm) for model in ("BERT", "RoBERTa") for norm in ("ShareNorm", "SepNorm", "LayerNorm on the CLS")
    ]
    for row in rows:
        assert -1 <= row["news, Spearman"] <= 1 and row["uniformity"] < 0 < row["alignment"]
        assert row["STS12"] in (pytest.approx(1), pytest.approx(-1))
    assert (tmp_path / "out" / "results.png").exists()
