"""Tries the mutations: python -m tests.mutations --only ROOM --jobs N --first N --count N."""

import argparse
import importlib
from collections import Counter

from tests.mutations.mutation import Mutation
from tests.mutations.runner import PACKAGE, REPOSITORY, End, Outcome, run

ROOMS = ("layers", "model", "encodings", "graphs", "training", "tasks", "data", "inference", "chem", "runs")


def of_room(room: str) -> tuple[Mutation, ...]:
    """The mutations of a room in the order of its file."""
    return importlib.import_module(f"tests.mutations.{room}").MUTATIONS


def main() -> None:
    """Prints a line per mutation, the counts, and a table of those that survived.

    The exit code is 1 if one survived without a reason, or was not tried.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    parser.add_argument("--only", choices=ROOMS, nargs="+", default=ROOMS, help="some rooms; all by default")
    parser.add_argument("--jobs", type=int, default=1, help="how many to try at a time")
    parser.add_argument("--first", type=int, default=0, help="number of the first one to try, in each room")
    parser.add_argument("--count", type=int, help="how many to try, in each room; all by default")
    parser.add_argument("--limit", type=int, default=120, help="seconds of a processor's time that one may take")
    options = parser.parse_args()
    last = None if options.count is None else options.first + options.count
    names = {m: f"{room} {number}" for room in options.only for number, m in enumerate(of_room(room))}
    chosen = [mutation for room in options.only for mutation in of_room(room)[options.first : last]]
    outcomes = []
    for outcome in run(chosen, options.jobs, options.limit):
        outcomes.append(outcome)
        print(f"{names[outcome.mutation]}: {outcome.end} {outcome.seen_by}".rstrip(), flush=True)
    counts = Counter(outcome.end for outcome in outcomes)
    print(f"{len(outcomes)} tried: " + ", ".join(f"{count} {end}" for end, count in counts.items()))
    left = [outcome for outcome in outcomes if outcome.end not in (End.KILLED, End.TIMED_OUT)]
    if left:
        print("\n" + table_of(left))
    raise SystemExit(any(outcome.end is not End.SURVIVED or not outcome.mutation.survives for outcome in left))


def table_of(outcomes: list[Outcome]) -> str:
    """Outcomes as a table in Markdown."""
    rows = [("place", "instead of", "is", "why")]
    for outcome in outcomes:
        bug = outcome.mutation
        place = f"{bug.file}:{bug.line(REPOSITORY / PACKAGE)}"
        why = bug.survives if outcome.end is End.SURVIVED else outcome.end.value
        rows.append((place, *(f"`{' '.join(text.split())}`" for text in (bug.old, bug.new)), why))
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]])


if __name__ == "__main__":
    main()
