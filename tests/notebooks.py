"""``python -m tests.notebooks [NOTEBOOK ...]`` executes the notebooks and stores their outputs.

Messages on stderr, the time of a training and details of the machine are left out, and pictures get 256 colours.
"""

import base64
import io
import os
import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from PIL import Image

FOLDER = Path(__file__).parents[1] / "docs/notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def executed(path: Path) -> NotebookNode:
    """A notebook with the outputs of a run in its folder, with the Python and the commands of this environment."""
    notebook = nbformat.read(path, as_version=4)
    metadata = notebook.metadata.copy()
    place = {"metadata": {"path": str(FOLDER)}}
    client = NotebookClient(notebook, timeout=600, record_timing=False, coalesce_streams=True, resources=place)
    client.execute(env=os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"})
    notebook.metadata = metadata
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [stored(output) for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


def stored(output: NotebookNode) -> NotebookNode:
    """An output as it is stored."""
    if output.output_type == "stream":
        output.text = re.sub(r"(?m), \d+ s$", "", output.text)  # "test MAE 0.5, 11 s"
    elif "image/png" in output.get("data", {}):
        output.data["image/png"] = smaller(output.data["image/png"])
    return output


def smaller(picture: str) -> str:
    """A PNG in base64 with a palette of 256 colours."""
    file = io.BytesIO()
    Image.open(io.BytesIO(base64.b64decode(picture))).convert("RGB").quantize().save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


if __name__ == "__main__":
    for path in [Path(name) for name in sys.argv[1:]] or NOTEBOOKS:
        nbformat.write(executed(path), path)
