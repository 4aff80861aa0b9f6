"""Edits of texts and of bytes, and a runner that tries many of them."""

import argparse
import faulthandler
import json
import random
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

Text = TypeVar("Text", str, bytes)
Edit = tuple[str, float, int, Text]
KINDS = ("insert", "replace", "delete", "repeat")
NUMBERS = (1, 1, 1, 2, 3, 6)
SIZES = (0, 0, 1, 1, 2, 20)


def edited(text: Text, edits: Sequence[Edit]) -> Text:
    """``text`` after some edits: kind, place as a fraction of the length, size of the part, what is put in."""
    for kind, fraction, size, token in edits:
        start = round(fraction * len(text))
        part = text[start : start + size]
        new = {"insert": token + part, "replace": token, "delete": text[:0], "repeat": part * 3}[kind]
        text = text[:start] + new + text[start + size :]
    return text


def random_edits(rng: random.Random, tokens: Sequence[Text]) -> list[Edit]:
    count = rng.choice(NUMBERS)
    return [(rng.choice(KINDS), rng.random(), rng.choice(SIZES), rng.choice(tokens)) for _ in range(count)]


def run(try_one: Callable[[random.Random], str]) -> None:
    """Tries ``--count`` cases, each with its own generator, and prints how they ended; exit code 1 if any failed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case, to repeat a failure")
    options = parser.parse_args()
    faulthandler.enable()
    ends: Counter[str] = Counter()
    for number in range(options.first, options.first + options.count):
        try:
            ends[try_one(random.Random(f"{options.seed} {number}"))] += 1
        except Exception:
            ends["failed"] += 1
            print(f"failure: --seed {options.seed} --first {number} --count 1\n{traceback.format_exc()}", flush=True)
        if number % 10_000 == 9_999:
            print(json.dumps({"seed": options.seed, "tried": number + 1 - options.first, **ends}), flush=True)
    print(json.dumps({"seed": options.seed, "count": options.count, **ends}))
    raise SystemExit(ends["failed"] > 0)
