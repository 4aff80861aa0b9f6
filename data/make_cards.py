"""Writes the Markdown cards of shipped table models from their JSON and the templates next to this file.

python data/make_cards.py
"""

from functools import partial
from pathlib import Path
from textwrap import fill

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from graphormer_sepnorm.runs.zoo import READ_CARD, shipped_tables


def card_texts() -> dict[Path, str]:
    """The text of each card by its file."""
    loader = FileSystemLoader(Path(__file__).parent)
    templates = Environment(loader=loader, undefined=StrictUndefined, keep_trailing_newline=True)
    templates.filters["paragraph"] = partial(fill, width=120, subsequent_indent="  ")
    found = {}
    for name, archive in shipped_tables().items():
        card = READ_CARD.validate_json(archive.with_name(f"{name}.json").read_bytes())
        text = templates.get_template(f"{name}.md.jinja").render(vars(card))
        found[archive.with_name(f"{name}.md")] = text
    return found


if __name__ == "__main__":
    for path, text in card_texts().items():
        path.write_text(text, encoding="utf-8")
