"""The house keeps its rules: every file in a room, rooms by floors, plain names, a quick start."""

from __future__ import annotations

import ast
import importlib.util
import json
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

import groundfault

SOURCE = Path(groundfault.__file__).parent
ROOT = Path(__file__).resolve().parents[1]
STUDIES = ROOT / "studies" / "groundfault_studies"
LAB = ROOT / "lab" / "groundfault_lab"
MODULES = sorted(path for place in (SOURCE, LAB, STUDIES) for path in place.rglob("*.py"))

# the rule for a new line, as CONTRIBUTING.md asks it, from the ground floor up: a room imports from
# the lines before its own, never from those after it
FLOORS = {
    "errors": "the tree of errors",
    "stats": "no noun of evaluation: computes",
    "base": "no noun of evaluation: touches disk, processes, time, chance or threads",
    "core": "a noun that two ways of working share",
    "readers": "one log format a file",
    "transcripts": "what agents did, step by step",
    "engines": "one engine that counts a file",
    "slicing": "embeddings and predictions of slices",
    "judges": "one judge a file",
    "finders": "one finder a file",
    "models": "the door to language models",
    "descriptions": "what a language model says failures have in common",
    "modes": "the search for failure modes",
    "auditing": "one batch audit",
    "sequential": "one case at a time",
    "review": "people who decide blind",
    "coding": "what goes wrong in runs, in a person's words",
    "probes": "many wordings",
    "case": "the investigation that joins them",
    "exports": "one other tool a file",
    "render": "words and pixels",
    "workbench": "the browser's side",
    "plugins": "what an author of a plug-in imports",
    "pytest_plugin": "the tests that others run",
    "cli": "flags",
    "__main__": "python -m groundfault",
    "groundfault_lab": "research that no command of an audit needs",
    "groundfault_studies": "a paper's tables",
}
# rooms inside a room, from the ground up; what stands in the room itself is above them
INNER = {
    "sequential": ("policies",),
    "groundfault_lab": (
        "stats",
        "slicing",
        "language",
        "improve",
        "taxonomy",
        "probes",
        "testing",
        "pages",
        "commands",
    ),
    "probes": ("bank", "policies", "running", "review"),
}
# the only arrows that point up: evidence is read by readers, when it is asked to read
NAMED = {("groundfault.core.evidence", room) for room in ("readers", "transcripts")}
# rooms whose files are known one by one: a new one is a decision
CLOSED = {
    "": "__init__ __main__ coding errors plugins pytest_plugin",
    "base": "__init__ anchors arrays database files holdout_events"
    " ledger ledgers long_work reading registry row_sketch sheets",
    "core": "__init__ candidate column_meaning columns counted_units equivalence"
    " evidence finding judge pairs plan roles row_names rules status time_split units",
}
HEAVY = set("scipy sklearn sqlglot psycopg rich jinja2 joblib torch spacy duckdb uvicorn".split())


def load_script() -> ModuleType:
    """``scripts/house.py``, which measures source trees and their imports."""
    spec = importlib.util.spec_from_file_location("house", ROOT / "scripts" / "house.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


house = load_script()
NAMES = {
    house.module_name(path, place): path
    for place in (SOURCE, LAB, STUDIES)
    for path in place.rglob("*.py")
}


def room(module: str) -> str:
    """The room of the top floor plan that a module stands in."""
    parts = module.split(".")
    return parts[0] if parts[0] != "groundfault" else [*parts, "__init__"][1]


def inner_floor(module: str) -> int:
    """Where a module stands inside its room: the number of its inner room, the highest for none."""
    inner = INNER.get(room(module), ())
    below = module.removeprefix("groundfault.").split(".")[1:2]
    return inner.index(below[0]) if below and below[0] in inner else len(inner)


@cache
def imports(module: str) -> dict[str, bool]:
    """Modules of ours that a module imports anywhere, and whether for annotations alone."""
    arrows: dict[str, bool] = {}
    for target, annotation in house.imports_of(module, NAMES[module], set(NAMES)):
        arrows[target] = annotation and arrows.get(target, True)
    return arrows


def test_every_module_has_its_place_and_imports_downwards() -> None:
    floors = list(FLOORS)
    unplaced = [module for module in NAMES if room(module) not in [*floors, "__init__"]]
    assert not unplaced, "no rule places these; see the top of CONTRIBUTING.md"
    assert [
        f"{module} imports {target}, which stands above it"
        for module in sorted(NAMES)
        if room(module) != "__init__"
        for target, annotation in imports(module).items()
        if climbs(module, target, annotation)
    ] == []


def climbs(module: str, target: str, annotation: bool) -> bool:
    """Whether an import points up, between rooms or inside one."""
    here, there, floors = room(module), room(target), list(FLOORS)
    if there == "__init__" or (module, there) in NAMED or (annotation and here == there):
        return False
    if here == there:
        return inner_floor(target) > inner_floor(module)
    return here == "stats" or floors.index(there) > floors.index(here)


@pytest.mark.parametrize("place", CLOSED)
def test_a_new_file_on_the_ground_floors_is_a_decision(place: str) -> None:
    files = {path.stem for path in (SOURCE / place).glob("*.py")}
    assert files == set(CLOSED[place].split())


def test_no_modules_import_each_other_in_a_circle() -> None:
    arrows = {
        (module, target): set()
        for module in NAMES
        for target, annotation in imports(module).items()
        if not annotation and (module, room(target)) not in NAMED
    }
    assert house.find_circles(arrows) == []


def imported_at_start(path: Path) -> set[str]:
    """Libraries that a file imports when it is imported itself."""
    nodes = house.list_nodes(path)
    lazy = {
        id(inner)
        for node in nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or house.is_for_types(node)
        for inner in ast.walk(node)
    }
    names = set()
    for node in nodes:
        if id(node) in lazy:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names


def at_start(path: Path) -> str:
    """The statements of a module that run when it is imported, as text."""
    return "\n".join(
        ast.unparse(node)
        for node in house.list_nodes(path)[0].body
        if isinstance(node, ast.Import | ast.ImportFrom)
    )


def test_heavy_libraries_wait_until_they_are_used() -> None:
    loaded = {
        module: imported_at_start(path) & HEAVY - ({"rich"} if room(module) == "cli" else set())
        for module, path in NAMES.items()
    }
    # a server's protocol extends the server's own, and is imported only by a function that serves
    name = "groundfault.workbench.connections"
    assert loaded.pop(name) == {"uvicorn"}
    assert not [path for path in MODULES if name in path.read_text() and name in at_start(path)]
    assert {module: libraries for module, libraries in loaded.items() if libraries} == {}


@cache
def measure() -> dict[str, float]:
    """Measure the package once for all tests."""
    return dict(house.measure(SOURCE))


@pytest.mark.parametrize("place", ["core", "auditing", "judges", "stats"])
def test_every_module_that_decides_has_a_test_file_of_its_own(place: str) -> None:
    modules = {path.stem for path in (SOURCE / place).glob("*.py")} - {"__init__"}
    tests = {path.stem.removeprefix("test_") for path in (ROOT / "tests" / place).glob("*.py")}
    lacking = sorted(modules - tests)
    assert not lacking, f"tests/{place} needs {', '.join(f'test_{name}.py' for name in lacking)}"


def test_sizes_and_names() -> None:
    measures = measure()
    assert measures["Lines of a module, median"] <= 260
    assert measures["Lines of a module, longest"] <= 660
    assert measures["Lines of a function, 90th percentile"] <= 30
    # ruff holds all others: these are patterns, frozen texts and lines that end in a pragma
    assert measures["Lines over 100 characters"] < 0.001
    assert measures["Names in the code that begin with a participle"] < 0.01


def test_types_say_more_than_any() -> None:
    """Both counts may only fall: say what a parameter takes, or ``object`` where it takes all."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCE.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    passed_on = [one.kwarg for one in nodes if isinstance(one, ast.arguments) and one.kwarg]
    untyped = [one for one in passed_on if one.annotation and ast.unparse(one.annotation) == "Any"]
    assert sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes) <= 483
    assert len(untyped) <= 5


def test_what_was_made_smaller_stays_so() -> None:
    """Each number falls here and in docs/.../house.md, or rises there with a reason."""
    measures = measure()
    most = {
        "Files": 310,
        "Lines of code: no blanks, comments or docstrings": 50_161,
        "Files with one importer": 33,
        "Circles of files, by imports or annotations": 0,
        "Docstrings of functions that begin with no verb": 0.009,
        "Constants of numbers without a word, outside modes/": 0,
        "Required dependencies": 11,
    }
    above = {name: measures[name] for name, limit in most.items() if measures[name] > limit}
    assert not above


def test_evidence_takes_a_short_way_through_an_audit() -> None:
    # a process of its own: modules that other tests imported would be entered, too
    run = subprocess.run(
        [sys.executable, ROOT / "scripts" / "house.py", "--route", SOURCE, "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    route = json.loads(run.stdout)["route"]
    assert len(route["files"]) <= 45
    assert len(route["climbs"]) <= 19


def test_no_class_name_stands_in_two_places() -> None:
    homes = Counter(
        node.name
        for path in MODULES
        for node in house.list_nodes(path)[0].body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    assert [name for name, count in homes.items() if count > 1] == []


def test_every_public_name_is_there() -> None:
    for name in groundfault.__all__:
        assert getattr(groundfault, name).__name__ == name
    assert set(groundfault.__all__) <= set(dir(groundfault))
    assert groundfault.__version__
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        groundfault.nonsense  # noqa: B018


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['groundfault', '--help']\n"
        "from groundfault.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print('LOADED', *sorted({m.split('.')[0] for m in sys.modules}))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(run.stdout.splitlines()[-1].split()[1:])
    assert not loaded & (HEAVY | {"numpy", "polars", "numba"})


def test_an_audit_of_a_small_table_loads_no_compiler(tmp_path: Path) -> None:
    """Loading numba and compiling take longer than the audit; so does importing scikit-learn."""
    rows = "".join(f"{i},{i % 5 == 0:d},{i % 7},{i % 3}\n" for i in range(400))
    (tmp_path / "t.csv").write_text(f"id,error,a,b\n{rows}")
    code = (
        "import sys; sys.argv = 'groundfault audit t.csv --outcome error --out report'.split()\n"
        "from groundfault.cli.main import main\n"
        "main()\n"
        "print('LOADED', *sorted({m.split('.')[0] for m in sys.modules}))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    loaded = set(run.stdout.splitlines()[-1].split()[1:])
    assert "polars" in loaded
    assert not loaded & {"numba", "llvmlite", "sklearn", "pandas"}


def described_parameters(docstring: str) -> list[str]:
    """Names under the head "Parameters" of a numpydoc docstring."""
    _, _, rest = docstring.partition("Parameters\n----------\n")
    block = rest.split("\n\n")[0] if "\n----" not in rest.split("\n\n")[0] else ""
    lines = (line.partition(" :")[0] for line in block.splitlines() if line[:1].strip())
    return [name.strip("* ") for line in lines for name in line.split(",")]


def test_docstrings_describe_parameters_that_are_there() -> None:
    for module, path in NAMES.items():
        for node in house.list_nodes(path):
            if not isinstance(node, ast.FunctionDef) or node.args.kwarg:
                continue
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            names = {argument.arg for argument in arguments}
            names |= {node.args.vararg.arg} if node.args.vararg else set()
            described = described_parameters(ast.get_docstring(node) or "")
            assert set(described) <= names, f"{module}.{node.name}"


@pytest.mark.parametrize(("more", "status"), [((), 0), (("-m", "not attacks"), 5)])
def test_naming_a_file_runs_a_suite_that_is_left_out_otherwise(
    more: tuple[str, ...], status: int
) -> None:
    words = ("--collect-only", "tests/attacks/test_types.py", "-p", "no:cacheprovider", *more)
    done = subprocess.run([sys.executable, "-m", "pytest", *words], cwd=ROOT, check=False)
    assert done.returncode == status
