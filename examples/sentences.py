"""Sentence embeddings by SimCSE with one norm for all tokens and with separate norms: how well the CLS is read.

A small BERT and a small RoBERTa of transformers' learn that two passes over a sentence, with other dropout, belong
together (unsupervised SimCSE, Gao et al., EMNLP 2021). Then their CLS is read: similarity of news against the judgement
of people, a linear probe of the article that a sentence is from, alignment and uniformity (Wang & Isola, ICML 2020), on
sentences that were not trained on. Needs the extra ``sentences``:

    python examples/sentences.py

All text comes with gensim: 13,000 sentences of 100 articles of Wikipedia (CC BY-SA 3.0), and 50 news of the Australian
Broadcasting Corporation whose similarities people judged (Lee, Pincombe & Welsh, CogSci 2005; gensim hands them on for
tests under the LGPL 2.1). ``--model FOLDER`` starts from weights on disk instead of from scratch (then ``--lr 3e-5``);
``--sts FOLDER`` scores STS12 to STS16, STS-B and SICK-R, laid out as SentEval lays them out, those that are there.

Axis letters: M sentences, L tokens, D width.
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from comparison import Parts, arguments, compare, linear_probe, positive, separated
from gensim.corpora.wikicorpus import extract_pages, filter_wiki
from gensim.test.utils import datapath
from scipy.stats import spearmanr
from smart_open import open as open_compressed
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy
from tqdm import tqdm
from transformers import (
    AutoModel,
    AutoTokenizer,
    BertConfig,
    BertModel,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
)

from graphormer_sepnorm import reestimate_batch_norm
from graphormer_sepnorm.errors import InputError
from graphormer_sepnorm.explain.cls_geometry import alignment, uniformity
from graphormer_sepnorm.interfaces.guard import guarded

WIKIPEDIA = "enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
END_OF_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'])")
LONGEST = 32  # tokens
BATCH = 64
TEMPERATURE = 0.05
VOCABULARY = 8000
SPECIAL = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
IN_LAYERS = r"^encoder\."  # and not the norm of the embeddings, which sees the same CLS in every sentence
SCRATCH = {"BERT": (BertModel, BertConfig), "RoBERTa": (RobertaModel, RobertaConfig)}
SMALLEST_ARTICLE, MOST_OF_ARTICLE = 100, 60  # sentences, for the probe
Pairs = tuple[list[str], list[str], list[float]]


@dataclass(frozen=True)
class Corpus:
    """Sentences and the number of the article that each is from; "train", "val" and "test" parts of every article."""

    sentences: dict[str, list[str]]
    articles: dict[str, list[int]]


def sentences_in(text: str) -> list[str]:
    """The whole sentences in running text."""
    return [s for s in END_OF_SENTENCE.split(text.strip()) if 6 <= len(s.split()) <= 40 and s[-1] in ".!?\"'"]


@cache
def wikipedia() -> Corpus:
    """Sentences of Wikipedia; of each article every tenth is for validation, and the next one to it for test."""
    sentences: dict[str, list[str]] = defaultdict(list)
    articles: dict[str, list[int]] = defaultdict(list)
    with open_compressed(datapath(WIKIPEDIA), "rb") as file:
        for number, (_, text, _) in enumerate(extract_pages(file, ("0",))):
            lines = re.sub("'{2,}", "", filter_wiki(text)).splitlines()
            found = [s for line in lines if line[:1].isalpha() for s in sentences_in(line)]
            for place, sentence in enumerate(found):
                part = {0: "val", 1: "test"}.get(place % 10, "train")
                sentences[part].append(sentence)
                articles[part].append(number)
    return Corpus(sentences, articles)


@cache
def news() -> tuple[list[list[str]], np.ndarray]:
    """The sentences of 50 news, and the similarity [50, 50] that people give each pair, above the diagonal."""
    texts = Path(datapath("lee.cor")).read_text("latin-1").splitlines()
    return [sentences_in(text) or [text] for text in texts], np.loadtxt(datapath("similarities0-1.txt"))


@cache
def train_tokenizer(model: str) -> PreTrainedTokenizerFast:
    """The tokenizer of the original model, WordPiece or byte-level BPE, trained on the training sentences."""
    options = {"vocab_size": VOCABULARY, "special_tokens": list(SPECIAL.values()), "show_progress": False}
    if model == "BERT":
        tokenizer, trainer = Tokenizer(models.WordPiece(unk_token="[UNK]")), trainers.WordPieceTrainer(**options)
        tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    else:
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        tokenizer, trainer = Tokenizer(models.BPE()), trainers.BpeTrainer(initial_alphabet=alphabet, **options)
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    tokenizer.train_from_iterator(wikipedia().sentences["train"], trainer)
    ends = [(name, tokenizer.token_to_id(name)) for name in ("[SEP]", "[CLS]")]
    tokenizer.post_processor = processors.BertProcessing(*ends)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)


class Encoder(nn.Module):
    """A model with its tokenizer: sentences in, embeddings of the CLS out."""

    def __init__(self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase):
        super().__init__()
        self.model = model
        self.tokenizer = tokenizer

    def read(self, sentences: list[str]) -> tuple[Tensor, Tensor]:
        """The CLS [M, D] of sentences, and what the pooler, a layer with tanh, makes of it."""
        tokens = self.tokenizer(sentences, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
        output = self.model(tokens["input_ids"], attention_mask=tokens["attention_mask"])
        return output.last_hidden_state[:, 0], output.pooler_output

    def embed(self, sentences: list[str]) -> Tensor:
        return self.read(sentences)[0]


def from_scratch(name: str, width: int, layers: int) -> Encoder:
    kind, configure = SCRATCH[name]
    tokenizer = train_tokenizer(name)
    config = configure(
        vocab_size=len(tokenizer),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=4,
        intermediate_size=2 * width,
        max_position_embeddings=LONGEST + 8,
        pad_token_id=tokenizer.pad_token_id,
        initializer_range=width**-0.5,
    )
    return Encoder(kind(config), tokenizer)


def from_disk(folder: Path) -> Encoder:
    """The model in a folder; raises InputError if there is none that transformers can load."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        return Encoder(AutoModel.from_pretrained(folder, local_files_only=True), tokenizer)
    except (OSError, ValueError) as error:
        raise InputError(f"--model {folder}: {str(error).splitlines()[0]}") from None


def simcse(x: Tensor, y: Tensor) -> Tensor:
    """SimCSE's loss of two embeddings [M, D] of each sentence: its other one against those of the other sentences."""
    similarity = cosine_similarity(x.unsqueeze(1), y.unsqueeze(0), dim=2) / TEMPERATURE
    return cross_entropy(similarity, torch.arange(len(x)))


def batches_of(sentences: list[str], seed: int) -> list[list[str]]:
    """Random batches of all sentences but the last few; one of all if there are few."""
    order = np.random.default_rng(seed).permutation(len(sentences))
    whole = max(len(order) // BATCH, 1)
    return [[sentences[row] for row in rows] for rows in np.array_split(order[: whole * BATCH], whole)]


def train(encoder: Encoder, sentences: list[str], epochs: int, lr: float, seed: int) -> None:
    """Trains on sentences; their pooled CLS is compared, as SimCSE does only in training."""
    batches = [batch for epoch in range(epochs) for batch in batches_of(sentences, seed + 1000 * epoch)]
    optimizer = torch.optim.AdamW(encoder.parameters(), lr, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, lr, total_steps=len(batches), pct_start=0.1)
    encoder.train()
    for batch in tqdm(batches, "SimCSE", leave=False):
        optimizer.zero_grad()
        simcse(*encoder.read(batch + batch)[1].chunk(2)).backward()
        nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    reestimate_batch_norm(encoder, encoder.embed, batches_of(sentences, seed)[:100])


@torch.no_grad()
def embed(encoder: Encoder, sentences: list[str]) -> Tensor:
    """Embeddings [M, D] of sentences, in the mode that the encoder is in."""
    return torch.cat([encoder.embed(sentences[start : start + 256]) for start in range(0, len(sentences), 256)])


def spearman_with_people(encoder: Encoder) -> float:
    """Spearman's correlation of the news' similarity with people's; a text is the mean of its sentences."""
    texts, judged = news()
    x = torch.stack([embed(encoder, sentences).mean(0) for sentences in texts])
    pairs = np.triu_indices(len(texts), 1)
    return float(spearmanr(cosine_similarity(x[pairs[0]], x[pairs[1]]), judged[pairs]).statistic)


def probe(encoder: Encoder, corpus: Corpus) -> float:
    """Accuracy of a linear probe that tells from which of the larger articles test sentences are."""
    counts = np.bincount(corpus.articles["train"])
    large = set(np.flatnonzero(counts >= SMALLEST_ARTICLE).tolist())
    parts: Parts = {}
    for part, articles in corpus.articles.items():
        table = pd.DataFrame({"article": articles, "sentence": corpus.sentences[part]})
        table = table[table.article.isin(large)].groupby("article").head(MOST_OF_ARTICLE)
        parts[part] = embed(encoder, table.sentence.tolist()).numpy(), table.article.to_numpy()
    return float(linear_probe(parts, "accuracy").score(*parts["test"]))


def measure(encoder: Encoder, corpus: Corpus, sts: dict[str, Pairs]) -> dict[str, float]:
    encoder.eval()
    sentences = corpus.sentences["test"]
    scores = {
        "news, Spearman": spearman_with_people(encoder),
        "article, probe": probe(encoder, corpus),
        "uniformity": uniformity(embed(encoder, sentences)),
    }
    scores |= {name: sts_score(encoder, pairs) for name, pairs in sts.items()}
    for module in encoder.modules():
        module.train(not isinstance(module, nn.BatchNorm1d))
    return scores | {"alignment": alignment(embed(encoder, sentences), embed(encoder, sentences))}


def sts_score(encoder: Encoder, pairs: Pairs) -> float:
    """Spearman's correlation of cosines with people's scores, over all pairs of a task together."""
    first, second, judged = pairs
    return float(spearmanr(cosine_similarity(embed(encoder, first), embed(encoder, second)), judged).statistic)


def read_sts(folder: Path) -> dict[str, Pairs]:
    """The tasks below a folder in SentEval's layout; raises InputError if there is none."""
    tasks = {f"STS{year}": scored_files(folder / f"STS{year}-en-test") for year in range(12, 17)}
    tasks["STS-B"] = columns_of(folder / "STSBenchmark" / "sts-test.csv", 5, 6, 4, header=None)
    tasks["SICK-R"] = columns_of(folder / "SICK" / "SICK_test_annotated.txt", 1, 2, 3, header=0)
    found = {name: pairs for name, pairs in tasks.items() if pairs[0]}
    if not found:
        raise InputError(
            f"--sts {folder} holds none of STS12-en-test, ..., STSBenchmark and SICK, as SentEval has them"
        )
    return found


def scored_files(folder: Path) -> Pairs:
    """All pairs of a year of STS that people scored."""
    first, second, judged = [], [], []
    for path in sorted(folder.glob("STS.input.*.txt")):
        scores = path.with_name(path.name.replace("input", "gs")).read_text().splitlines()
        for line, score in zip(path.read_text().splitlines(), scores, strict=True):
            if score.strip():
                a, b = line.split("\t")[:2]
                first, second, judged = [*first, a], [*second, b], [*judged, float(score)]
    return first, second, judged


def columns_of(path: Path, first: int, second: int, score: int, header: int | None) -> Pairs:
    """Pairs and scores in some columns of a file with tabs; none if it is not there."""
    if not path.exists():
        return [], [], []
    lines = [line.split("\t") for line in path.read_text().splitlines()[0 if header is None else header + 1 :]]
    return [x[first] for x in lines], [x[second] for x in lines], [float(x[score]) for x in lines]


def main() -> None:
    parser = arguments(__doc__, "runs/sentences")
    parser.add_argument("--model", type=Path, help="folder of a BERT or RoBERTa to start from; default: both, scratch")
    parser.add_argument("--sts", type=Path, help="folder of STS tasks in SentEval's layout")
    parser.add_argument("--sentences", type=positive, default=13000, help="largest number of training sentences")
    parser.add_argument("--epochs", type=positive, default=1)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--width", type=positive, default=64)
    parser.add_argument("--layers", type=positive, default=2)
    options = parser.parse_args()
    sts = read_sts(options.sts) if options.sts else {}
    corpus = wikipedia()

    def cell(name: str, norm: str, seed: int) -> dict[str, float]:
        torch.manual_seed(seed)
        encoder = from_disk(options.model) if options.model else from_scratch(name, options.width, options.layers)
        separated(encoder.model, norm, IN_LAYERS)
        train(encoder, corpus.sentences["train"][: options.sentences], options.epochs, options.lr, seed)
        return measure(encoder, corpus, sts)

    setting = {name: str(value) for name, value in vars(options).items() if name not in ("seeds", "out")}
    compare(options.out, setting, [options.model.name] if options.model else [*SCRATCH], options.seeds, cell)


if __name__ == "__main__":
    guarded(main)
