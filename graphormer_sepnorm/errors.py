from collections.abc import Callable, Collection
from difflib import get_close_matches
from itertools import islice

MOST_COMPARED = 1000


class InputError(ValueError):
    """The user's input cannot be used. The message is one sentence: what is wrong, where, and what to do.

    The ``options`` to change follow it in the words of the reader: as arguments in Python, with dashes in the commands,
    which print the message and exit with code 2, and not on the page, which shows its fields.
    """

    def __init__(self, sentence: str, *options: str):
        super().__init__(sentence, *options)
        self.sentence, self.options = sentence, options

    def __str__(self) -> str:
        return self.with_options(str)

    def with_options(self, spelling: Callable[[str], str]) -> str:
        """The sentence with its options as they are shown to the reader."""
        return "; see ".join(filter(None, [self.sentence, ", ".join(map(spelling, self.options))]))


def as_text(text: str) -> str:
    """A text of a file, to be shown: bytes that are not UTF-8 become replacement characters."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def not_installed(what: str, package: str, extra: str) -> InputError:
    """The error for a missing package, with the extra of this package that installs it."""
    advice = f'run pip install ".[{extra}]" in the folder of the repository'
    return InputError(f"{what} needs {package}, which is not installed: {advice}")


def one_of(kind: str, name: str, choices: Collection[str]) -> str:
    """The name of something of this kind; raises InputError if it is none of the choices."""
    if name not in choices:
        near = did_you_mean(str(name), choices)
        raise InputError(f"unknown {kind} {name!r}, choose one of {', '.join(choices)}{near}")
    return name


def did_you_mean(name: str, choices: Collection[str]) -> str:
    """The end of a message on an unknown name: the choice that is most like it, or begins with it; "" if none is."""
    folded, name = (
        {each.casefold(): each for each in islice(choices, MOST_COMPARED) if as_text(each) == each},
        name.casefold(),
    )
    longer = [choice for choice in folded if len(name) > 2 and choice.startswith(name)]
    holding = [choice for choice in folded if len(name) > 2 and choice.endswith(name)]  # such as run_HLM for HLM
    near = holding[:1] or get_close_matches(name, folded, n=1) or longer[:1]
    return f"; did you mean {folded[near[0]]!r}?" if near else ""


def find_target(name: str, targets: Collection[str]) -> str:
    """The target of this name, in any case if none is written so; raises InputError if there is none."""
    alike = [target for target in targets if target.casefold() == name.casefold()]
    return one_of("target", name if name in targets or len(alike) != 1 else alike[0], targets)
