"""The layout of the package: the order of imports, the files of a wheel, and that imports have no effects."""

import ast
import configparser
import importlib
import json
import re
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import graphormer_sepnorm
from graphormer_sepnorm import MODULES
from graphormer_sepnorm.version import __version__

PACKAGE = Path(graphormer_sepnorm.__file__).parent
REPOSITORY = Path(__file__).parents[2]
# A folder imports only those before it. Files at the top of the package count as folders, its public names as the last.
ROOMS = [
    "version", "errors", "options", "resources", "graphs", "system", "chem", "kernels", "layers", "encodings",
    "config", "model", "tasks", "dataset", "tables", "datasets", "runs", "recipes", "predict", "output", "explain",
    "training", "table_model", "report", "table_run", "project", "library", "search", "interfaces", "__main__",
    "__init__",
]  # fmt: skip
FILES = {".".join(path.relative_to(PACKAGE).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
REGISTRIES = {
    "chem.features": "FEATURIZERS",
    "layers.norms": "NORMS",
    "layers.readouts": "READOUTS",
    "encodings": "ENCODINGS",
    "tasks": "TASKS",
    "tasks.metrics": "METRICS",
    "datasets.benchmarks": "DATASETS",
    "recipes": "RECIPES",
    "training.optimizers": "OPTIMIZERS",
    "training.objectives": "OBJECTIVES",
    "table_model.members": "MEMBERS",
}
IMPORT_ALL = """
import importlib, json, os, sys
import numpy, torch

def surroundings():
    return {"folder": os.getcwd(), "floating-point errors": numpy.geterr(),
            "PyTorch's random numbers": hash(bytes(torch.get_rng_state())),
            "NumPy's random numbers": hash(bytes(numpy.random.get_state()[1])),
            "type of numbers": torch.get_default_dtype(), "threads": torch.get_num_threads()}

modules, registries = json.loads(sys.argv[1])
before, entries = surroundings(), {}
for module in modules:
    found = importlib.import_module(module)
    if module in registries:
        entries[module] = list(vars(found)[registries[module]])
for module, names in entries.items():
    assert list(vars(sys.modules[module])[registries[module]]) == names, f"{module} was added to by another module"
assert "ogb" not in sys.modules, "OGB starts threads that look for updates: import it where it is used"
after = surroundings()
assert after == before, [name for name in before if before[name] != after[name]]
print(sorted(entries))
"""


def room(name: str) -> str:
    return name.partition(".")[0]


def imports(name: str) -> set[str]:
    """The modules of this package that a module imports anywhere, by their names in ``FILES``."""
    found = set()
    for node in ast.walk(ast.parse(FILES[name].read_text())):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relatively"
            base = node.module or ""
            found |= {target(f"{base}.{alias.name}") or target(base) for alias in node.names}
        elif isinstance(node, ast.Import):
            found |= {target(alias.name) for alias in node.names}
    return found - {None}


def target(dotted: str) -> str | None:
    """The module or package with this name; None for modules of other packages."""
    top, _, rest = dotted.partition(".")
    names = (rest, f"{rest}.__init__" if rest else "__init__")
    return next((name for name in names if name in FILES), None) if top == PACKAGE.name else None


def test_imports_are_found_in_every_form():
    assert {"system.files", "errors", "chem.smiles", "runs.plots"} <= imports("explain.pictures")
    assert "encodings.__init__" in imports("encodings.transform")
    assert "encodings.graph_algorithms" in imports("encodings.shipped")
    assert "table_model.model" in imports("table_model.load"), "inside a function"
    assert target("graphormer_sepnorm") == "__init__" and target("torch.nn") is None


def test_every_room_has_its_place():
    assert {room(name) for name in FILES} == set(ROOMS)


@pytest.mark.parametrize("name", FILES)
def test_no_import_runs_upward(name):
    own = ROOMS.index(room(name))
    assert [other for other in imports(name) if room(other) != room(name) and ROOMS.index(room(other)) >= own] == []


def test_no_modules_import_each_other_in_a_circle():
    TopologicalSorter({name: imports(name) for name in FILES}).prepare()


def test_a_class_name_has_one_meaning():
    nodes = (node for path in FILES.values() for node in ast.walk(ast.parse(path.read_text())))
    names = Counter(node.name for node in nodes if isinstance(node, ast.ClassDef))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_folder_with_modules_is_a_package():
    assert [path for path in FILES.values() if not (path.parent / "__init__.py").exists()] == []


def test_data_files_are_shipped_with_their_folder():
    setup = configparser.ConfigParser()
    setup.read(REPOSITORY / "setup.cfg")
    assert setup["options"]["packages"] == "find:"
    shipped = {package: patterns.split() for package, patterns in setup["options.package_data"].items()}
    others = [
        path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in (".py", ".pyc", ".nbi", ".nbc")
    ]
    assert {"py.typed", "sample.csv.gz", "zinc.safetensors"} <= {path.name for path in others}
    for path in others:
        folder = next(parent for parent in path.parents if (parent / "__init__.py").exists())
        patterns = shipped.get(".".join(folder.relative_to(PACKAGE.parent).parts), [])
        assert any(path in folder.glob(pattern) for pattern in patterns), f"{path} is not in a wheel"


def test_the_package_itself_imports_nothing_heavy():
    code = "import sys, graphormer_sepnorm; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "pandas", "rdkit", "sklearn", "torch_geometric", "numba"} & set(loaded)
    assert {name for name in loaded if name.startswith(PACKAGE.name)} == {PACKAGE.name, f"{PACKAGE.name}.version"}


@pytest.mark.slow
def test_importing_every_module_changes_nothing(tmp_path):
    """Folders are imported in order, so a change of a registry by a later one would be detected."""
    names = sorted(FILES, key=lambda name: (ROOMS.index(room(name)), name))
    modules = [".".join([PACKAGE.name, name]).removesuffix(".__init__") for name in names]
    registries = {f"{PACKAGE.name}.{module}": registry for module, registry in REGISTRIES.items()}
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", IMPORT_ALL, json.dumps([modules, registries])],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    assert result.stdout == f"{sorted(registries)}\n", "a module prints"
    assert list(tmp_path.iterdir()) == []


def test_type_checkers_and_programs_see_the_same_names():
    (block,) = (node for node in ast.parse((PACKAGE / "__init__.py").read_text()).body if isinstance(node, ast.If))
    imported = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    homes = {each.name: node.module.removeprefix(f"{PACKAGE.name}.") for node in imported for each in node.names}
    assert homes == MODULES
    assert set(graphormer_sepnorm.__all__) == {"__version__", *MODULES} == set(dir(graphormer_sepnorm))


@pytest.mark.parametrize("name", MODULES)
def test_a_name_is_what_its_module_defines(name):
    module = importlib.import_module(f"graphormer_sepnorm.{MODULES[name]}")
    assert getattr(graphormer_sepnorm, name) is getattr(module, name)
    assert getattr(module, name).__module__ == module.__name__


def test_an_unknown_name_is_reported():
    with pytest.raises(AttributeError, match="has no attribute 'SepNrom'; did you mean 'SepNorm'"):
        graphormer_sepnorm.SepNrom  # noqa: B018


def test_every_file_that_names_the_version_names_this_one():
    cited = re.search(r"^version: (.*)$", (REPOSITORY / "CITATION.cff").read_text(), re.M)
    newest = re.search(r"^## \[(\d.*?)\]", (REPOSITORY / "CHANGELOG.md").read_text(), re.M)
    assert cited[1] == newest[1] == __version__


def test_no_command_installs_another_pytorch_than_the_package_asks_for():
    """Only ``setup.cfg`` has bounds; an installation of the package sees the CPU builds beside the default ones."""
    files = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md"), REPOSITORY / "Dockerfile"]
    texts = [path.read_text(encoding="utf-8").replace("\\\n", " ") for path in files]
    commands = [line for text in texts for line in re.findall(r"pip install [^\n`#]*", text)]
    assert [line for line in commands if "--extra-index-url https://download.pytorch.org/whl/cpu" in line]
    assert not [line for line in commands if re.search(r"[ \"']torch\b(?!-)|--index-url", line)]
