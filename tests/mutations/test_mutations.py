"""The list fits today's source, and the runner tells what tests see from what they do not."""

import ast
import subprocess
import sys

import pytest

from tests.mutations.__main__ import ROOMS, of_room, table_of
from tests.mutations.mutation import Mutation, mutations
from tests.mutations.runner import PACKAGE, REPOSITORY, End, Outcome

ALL = [mutation for room in ROOMS for mutation in of_room(room)]
SCHEDULE = "training/schedule.py", "unit/training/test_schedule.py"
TRY = """
from tests.mutations.mutation import mutations
from tests.mutations.runner import run
bugs = mutations({file!r}, {tests!r}, *{edits!r})
print(*(outcome.end for outcome in run(bugs)), sep="\\n")
"""


def test_there_are_many_and_none_twice():
    assert len(ALL) >= 200 and len(set(ALL)) == len(ALL)


@pytest.mark.parametrize("file", sorted({mutation.file for mutation in ALL}))
def test_each_applies_once_and_leaves_a_program(file):
    text = (REPOSITORY / PACKAGE / file).read_text()
    program = ast.dump(ast.parse(text))
    for mutation in (mutation for mutation in ALL if mutation.file == file):
        assert ast.dump(ast.parse(mutation.applied(text))) != program, mutation


@pytest.mark.parametrize("name", sorted({name for mutation in ALL for name in mutation.tests}))
def test_the_tests_that_should_see_them_are_there(name):
    file, _, test = name.partition("::")
    text = (REPOSITORY / "tests" / file).read_text()
    assert not test or f"def {test}(" in text


def test_a_mutation_that_does_not_apply_is_told():
    (mutation,) = mutations(*SCHEDULE, ("no such text", ""))
    with pytest.raises(ValueError, match="has 'no such text' 0 times"):
        mutation.applied("another text")


def test_survivors_are_shown_with_their_place_and_reason():
    bug = Mutation("version.py", '__version__ = "', '__version__ = "|', (), "nobody reads it")
    assert table_of([Outcome(bug, End.SURVIVED)]).splitlines()[2:] == [
        '| version.py:1 | `__version__ = "` | `__version__ = "\\|` | nobody reads it |'
    ]


@pytest.mark.slow
def test_bugs_are_killed_and_what_is_none_survives():
    edits = (
        ("0.5 * (1 + math.cos", "0.5 * (1 - math.cos"),
        ("0.5 * (1 + math.cos", "0.50 * (1 + math.cos"),
        ("no such text", ""),
        ("import math\n", "import math\nwhile True:\n    pass\n"),
    )
    code = TRY.format(file=SCHEDULE[0], tests=SCHEDULE[1], edits=edits).replace("run(bugs)", "run(bugs, limit=20)")
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.stdout.splitlines() == [End.KILLED, End.SURVIVED, End.NOT_APPLIED, End.TIMED_OUT], done.stderr[-2000:]
