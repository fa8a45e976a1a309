"""The house keeps its rules: layers, public names, start-up, module sizes."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import groundfault

SOURCE = Path(groundfault.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
TOP = {"improve", "studies", "render", "web", "cli", "testing"}
PLUGINS = {"readers", "finders", "judges", "policies"}
# the flow joins the core with its plug-ins, so it may name them; reports are rendered on demand
JOINTS = {
    "flow",
    "case",
    "assemble",
    "checking",
    "detectable",
    "robustness",
    "verification",
    "evidence",
    "importing",
    "report",
    "__init__",
}
HEAVY = {
    "sklearn",
    "altair",
    "vl_convert",
    "sqlglot",
    "sqlalchemy",
    "rich",
    "jinja2",
    "joblib",
    "torch",
    "spacy",
    "duckdb",
}


def room(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[0]


def imports(path: Path, *, top_level: bool = False) -> set[str]:
    """Modules that a file imports; only those on import, where asked."""
    tree = ast.parse(path.read_text())
    checking = {id(n) for node in ast.walk(tree) if _is_type_checking(node) for n in ast.walk(node)}
    inside = {
        id(n)
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        for n in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in checking or (top_level and id(node) in inside):
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def _is_type_checking(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Name)
        and node.test.id == "TYPE_CHECKING"
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_layers(path: Path) -> None:
    here = room(path)
    for name in imports(path):
        if not name.startswith("groundfault."):
            continue
        there = name.split(".")[1]
        if here == "stats":
            assert there == "stats", f"{path} imports {name}: stats stands on nothing of ours"
        elif here in PLUGINS:
            assert there not in TOP, f"{path} imports {name}"
            assert there not in PLUGINS - {here}, (
                f"{path} imports {name}: plug-ins never import each other"
            )
        elif here not in TOP | JOINTS | {"__main__"}:
            assert there not in TOP, (
                f"{path} imports {name}: the core does not know what stands on it"
            )


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_heavy_libraries_wait_until_they_are_used(path: Path) -> None:
    loaded = {name.split(".")[0] for name in imports(path, top_level=True)}
    allowed = {"rich"} if room(path) == "cli" else set()
    assert not (loaded & HEAVY) - allowed, f"{path} imports {loaded & HEAVY} on import"


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_modules_stay_small(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 480


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
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    loaded = set(out.splitlines()[-1].split()[1:])
    assert not loaded & (HEAVY | {"numpy", "scipy", "polars", "numba"})
