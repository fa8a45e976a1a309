"""The house in numbers: how large, how documented and how plainly named a Python source tree is.

    python scripts/house.py src/groundfault
    python scripts/house.py groundfault=src/groundfault httpx=/path/to/httpx --json
    python scripts/house.py --imports src/groundfault
    python scripts/house.py --route src/groundfault

The first two print one table with a column for each tree; the third, who imports whom: rooms (the
root's subpackages and modules) by floors, circles, and arrows up. What is loaded by name is unseen.
The last runs an audit of a small table, and prints the files it goes through (`trace_audit`).
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import re
import sys
import threading
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from statistics import median
from types import FrameType
from typing import Any, TypeGuard

WIDTH = 100
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
# variables that begin with one of these are neither nouns nor verbs
PARTICIPLES = """found given said told kept asked seen made held known taken left done written
    chosen met""".split()
# functions that begin with one of these, or with a word in -ed, are not named by a verb; forms that
# are a verb's stem too ("put", "set", "read", "split", "run") are not here: httpx.put is a verb
IRREGULAR = """begun born bought broken brought built caught drawn driven fallen fed felt forgotten
    gone grown heard hidden laid lent lost meant paid proven risen sent shown sold spent spoken
    sworn taught thought thrown torn understood unseen won""".split()
NO_PARTICIPLES = """bed bleed breed embed exceed feed hundred indeed need proceed red reseed seed
    shed shred speed succeed""".split()
# first words of docstrings that say what a function does; before "of" they are nouns: "Share of"
VERBS = """accept add adjust allow answer append apply approximate ask assemble assign attach audit
    average avoid await base begin bind bound break build buy call carry cast change check choose
    claim clear close cluster code collect combine compare compile complete compute confirm connect
    continue convert copy count cover create cut deal decide declare decode decorate define delete
    derive describe detect discard display divide do download draw drop embed encode end enforce
    ensure enter estimate evaluate exit expand explain export extend extract fail fetch fill filter
    find finish fit fix flag flatten flip fold follow forecast format freeze generate get give go
    grow group guard handle hash have hide hold identify ignore import improve include infer
    initialise initialize insert inspect invert iterate join judge keep label launch lay learn leave
    let limit link list load locate look lower make map mark match measure merge mine mirror move
    multiply name narrow normalise normalize note number observe offer open order pack pad pair
    parse pass permit permute pick place plan plant play plot pool post predict prepare print
    process project prompt propose prove provide pull push put query raise rank read rebuild
    recognise recompute record redirect redraw reduce refit refuse regenerate register reject
    relabel release remove rename render reopen repeat replace replay report represent require
    resample reset resolve restate restore restrict resume retrieve return reverse review rewrite
    round rule run sample save say scale scan score screen search see select send separate
    serialise serialize serve set share shift shorten show shuffle sign simulate skip solve sort
    split spread standardise start state step stop store stream strip subtract sum summarise
    summarize swap switch take tell test tie trace train transform translate trim truncate try
    turn unite unpack update use validate verify visit wait walk warn watch weigh wrap write
    yield""".split()
Arrows = dict[tuple[str, str], set[str]]  # from one module or room to another, and why


def main() -> None:
    """Print the table, or the graph of imports."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trees", nargs="*", metavar="[NAME=]DIRECTORY")
    parser.add_argument("--imports", type=Path, metavar="PACKAGE_DIRECTORY")
    parser.add_argument("--route", type=Path, metavar="PACKAGE_DIRECTORY")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    trees = {}
    for argument in options.trees:
        name, _, path = argument.rpartition("=")
        trees[name or Path(path).resolve().name] = Path(path)
    places = [*trees.values(), *filter(None, (options.imports, options.route))]
    if not places or not all(any(place.rglob("*.py")) for place in places):
        parser.error("name directories that hold Python files")
    table = {name: measure(path) for name, path in trees.items()}
    graph = describe_imports(options.imports) if options.imports else {}
    route = trace_audit(options.route) if options.route else {}
    lines = [*(table_lines(table) if table else []), *import_lines(graph), *route_lines(route)]
    data = {"trees": table, "imports": graph, "route": route}
    print(json.dumps(data, indent=2) if options.json else "\n".join(lines))


@cache
def list_nodes(path: Path) -> list[ast.AST]:
    """Return the nodes of a file's syntax tree, the module first; parsed once for all measures."""
    return list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


def measure(root: Path) -> dict[str, float]:
    """Return counts (whole numbers) and shares (from 0 to 1) of one tree."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}
    nodes = [node for path in texts for node in list_nodes(path)]
    functions = [node for node in nodes if isinstance(node, FUNCTION)]
    inner = {id(node) for outer in functions for node in ast.walk(outer) if node is not outer}
    public = [f for f in functions if f.name[0] != "_" and id(f) not in inner]
    lines = [line for text in texts.values() for line in text.splitlines()]
    modules = [len(text.splitlines()) for text in texts.values()]
    sizes = [(node.end_lineno or 0) - node.lineno + 1 for node in functions] or [0]
    words = [first_word(node.id) for node in nodes if isinstance(node, ast.Name)]
    comments, code = sum(map(count_comments, texts)), sum(map(count_code, texts))
    classes = [{n.name for n in list_nodes(path) if isinstance(n, ast.ClassDef)} for path in texts]
    homes = Counter(name for names in classes for name in names)
    importers = list_importers(root)
    return {
        "Files": len(texts),
        "Lines": len(lines),
        "Lines of code: no blanks, comments or docstrings": code,
        "Modules at the package root": sum(path.parent == root for path in texts),
        "Lines of a module, median": int(median(modules)),
        "Lines of a module, 90th percentile": percentile(modules, 0.9),
        "Lines of a module, longest": max(modules),
        "Functions": len(functions),
        "Lines of a function, median": int(median(sizes)),
        "Lines of a function, 90th percentile": percentile(sizes, 0.9),
        "Public functions with a docstring": share([bool(ast.get_docstring(f)) for f in public]),
        "Names in the code that begin with a participle": share([w in PARTICIPLES for w in words]),
        "Functions that begin with a participle": sum(map(begins_with_participle, functions)),
        "Comment lines to lines of code": comments / max(1, code),
        f"Lines over {WIDTH} characters": share([len(line) > WIDTH for line in lines]),
        "Class names defined in more than one file": sum(n > 1 for n in homes.values()),
        "Files with one importer": sum(len(who) == 1 for who in importers.values()),
        "Circles of files, by imports or annotations": len(
            find_circles({(a, b): set() for b, who in importers.items() for a in who})
        ),
        "Docstrings of functions that begin with no verb": share(
            [not begins_with_verb(doc) for f in functions if (doc := ast.get_docstring(f))]
        ),
        # the search for modes is rebuilt, with its constants
        "Constants of numbers without a word, outside modes/": sum(
            map(count_bare_constants, (path for path in texts if "modes" not in path.parts))
        ),
        "Required dependencies": count_dependencies(root),
    }


def table_lines(table: dict[str, dict[str, float]]) -> Iterator[str]:
    """The measures in Markdown, with a column for each tree."""
    yield f"| | {' | '.join(table)} |"
    yield "|---|" + "--:|" * len(table)
    for label in next(iter(table.values())):
        values = [tree[label] for tree in table.values()]
        cells = [f"{value:,}" if isinstance(value, int) else f"{value:.1%}" for value in values]
        yield f"| {label} | {' | '.join(cells)} |"


def begins_with_participle(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether the first word of its name is on the list, or ends as regular participles do."""
    word = first_word(function.name)
    regular = word.endswith("ed") and word not in NO_PARTICIPLES
    return regular or word in PARTICIPLES or word in IRREGULAR


def first_word(name: str) -> str:
    """The part of a name before the first underscore that is not a leading one."""
    return name.strip("_").split("_")[0]


def count_comments(path: Path) -> int:
    """Return the number of lines that hold a comment and nothing else."""
    inside = {
        number
        for node in list_nodes(path)
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno
        for number in range(node.lineno + 1, (node.end_lineno or 0) + 1)
    }
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return sum(line.lstrip().startswith("#") and number not in inside for number, line in lines)


def count_code(path: Path) -> int:
    """Return the number of lines that hold more than a comment and are part of no docstring."""
    described = set[int]()
    for node in list_nodes(path):
        if isinstance(node, ast.Module | ast.ClassDef | FUNCTION) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                described.update(range(first.lineno, (first.end_lineno or 0) + 1))
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in described
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    )


def begins_with_verb(docstring: str) -> bool:
    """Return whether a docstring begins as PEP 257 asks: with what the function does."""
    words = re.findall(r"[^\s.,:;]+", docstring)[:2]
    return words[0].lower() in VERBS and words[-1] != "of"


def count_bare_constants(path: Path) -> int:
    """Count constants of a module whose value is numbers and that no word explains.

    A word is a comment on one of its lines or the line above it, or a string below it. The value
    may be a number, a sum or shift of numbers, or a collection of them; one that calls something
    other than ``frozenset``, ``range`` or a number's type is no such constant.
    """
    lines, body = path.read_text(encoding="utf-8").splitlines(), list_nodes(path)[0].body
    count = 0
    for i, node in enumerate(body):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or not _is_numbers(node.value):
            continue
        below = body[i + 1] if i + 1 < len(body) else None
        described = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
        near = lines[max(0, node.lineno - 2) : node.end_lineno]
        above = node.lineno > 1 and near[0].lstrip().startswith("#")
        count += not (described or above or any("#" in line for line in near[node.lineno > 1 :]))
    return count


def _is_numbers(value: ast.expr | None) -> bool:
    """Return whether an expression is made of numbers, of which at least one is not 0 or 1."""
    if value is None:
        return False
    nodes = list(ast.walk(value))
    leaves = [node.value for node in nodes if isinstance(node, ast.Constant)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    numbers = [leaf for leaf in leaves if isinstance(leaf, int | float) and leaf not in (0, 1)]
    return (
        bool(numbers)
        and all(isinstance(leaf, int | float) for leaf in leaves)
        and names <= {"frozenset", "range", "int", "float", "Fraction", "Decimal"}
    )


def count_dependencies(root: Path) -> int:
    """Return how many libraries the project's ``pyproject.toml`` requires; 0 without one."""
    files = (folder / "pyproject.toml" for folder in root.resolve().parents)
    project = next((tomllib.loads(file.read_text()) for file in files if file.exists()), {})
    return len(project.get("project", {}).get("dependencies", []))


def percentile(values: list[int], level: float) -> int:
    """The smallest value that at least this share of the values do not exceed."""
    return sorted(values)[math.ceil(level * len(values)) - 1]


def share(flags: list[bool]) -> float:
    """How many of the flags are true, from 0 to 1; 0 where there are none."""
    return sum(flags) / max(1, len(flags))


def list_importers(root: Path) -> dict[str, set[str]]:
    """Return for each module of a tree the modules that import it, anywhere and for whatever."""
    paths = {module_name(path, root): path for path in sorted(root.rglob("*.py"))}
    importers: dict[str, set[str]] = {name: set() for name in paths}
    for name, path in paths.items():
        for target, _ in imports_of(name, path, set(paths)):
            importers[target].add(name)
    return importers


def describe_imports(root: Path) -> dict[str, Any]:
    """Return floors of rooms, circles, and arrows that point up."""
    paths = {module_name(path, root): path for path in sorted(root.rglob("*.py"))}
    modules: Arrows = {}
    annotations: Arrows = {}  # what is imported under TYPE_CHECKING
    for name, path in paths.items():
        for target, guarded in imports_of(name, path, set(paths)):
            (annotations if guarded else modules)[name, target] = set()
    rooms, room_annotations = join_rooms(modules), join_rooms(annotations)
    floors = dict.fromkeys(sorted(map(room_of, paths)), 0)
    downward = drop_circles(rooms)
    for _ in floors:  # no way down is longer than there are rooms
        for upper, lower in downward:
            floors[upper] = max(floors[upper], floors[lower] + 1)
    upward, upward_annotations = (
        {f"{a} -> {b}": sorted(why) for (a, b), why in arrows.items() if floors[a] <= floors[b]}
        for arrows in (rooms, room_annotations)
    )
    return {
        "floors": [[r for r in floors if floors[r] == n] for n in range(max(floors.values()) + 1)],
        "circles of modules": find_circles(modules),
        "circles of rooms": find_circles(rooms),
        "upward arrows": upward,
        "upward arrows under TYPE_CHECKING": upward_annotations,
    }


def import_lines(graph: dict[str, Any]) -> Iterator[str]:
    """The graph in words, the highest floor first."""
    for number, rooms in reversed(list(enumerate(graph.get("floors", [])))):
        yield f"floor {number:2}  {', '.join(rooms)}"
    for title, items in list(graph.items())[1:]:
        yield f"{title}: {len(items) or 'none'}"
        for item in items:
            yield f"  {'; '.join(items[item])}" if "arrows" in title else f"  {', '.join(item)}"


def trace_audit(root: Path) -> dict[str, Any]:
    """Return the files that evidence goes through on its way through ``groundfault.audit``.

    The evidence is a table of 400 rows with a number and a category; another such table is audited
    before, so that imports and what is computed once a process are not part of the route. A file is
    entered when code in it runs. A call goes from one file of the package to another, whatever
    library stands between the two; each pair of files counts once. It is a climb if the file that
    is called was entered before the caller's, and stands in the same room or in one above it: what
    came earlier in the flow is asked again. Calls down to a room that others stand on, such as
    `stats`, are no climbs.
    """
    sys.path.insert(0, str(root.resolve().parent))
    package = import_module(root.resolve().name)
    floors = {
        room: number
        for number, rooms in enumerate(describe_imports(root)["floors"])
        for room in rooms
    }
    names = {str(path.resolve()): module_name(path, root) for path in root.rglob("*.py")}
    order, calls = dict[str, int](), dict[tuple[str, str], None]()

    def follow(frame: FrameType, event: str, _: object) -> None:
        here = names.get(frame.f_code.co_filename)
        if event != "call" or here is None:
            return
        order.setdefault(here, len(order))
        caller = frame.f_back
        while caller is not None and caller.f_code.co_filename not in names:
            caller = caller.f_back
        there = None if caller is None else names[caller.f_code.co_filename]
        if there is not None and there != here:
            calls[there, here] = None

    tables = [
        package.Evidence.from_table(
            {
                number: [i % 7 for i in range(400)],
                category: ["xyz"[i % 3] for i in range(400)],
                "error": [int(i % 7 == 0 or i % 11 == 0) for i in range(400)],
            },
            outcome="error",
        )
        for number, category in (("a", "b"), ("c", "d"))
    ]
    package.audit(tables[0], ledger=None)
    threading.setprofile(follow)
    sys.setprofile(follow)
    try:
        package.audit(tables[1], ledger=None)
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    climbs = [
        f"{a} calls {b}"
        for a, b in calls
        if order[b] < order[a] and floors[room_of(b)] >= floors[room_of(a)]
    ]
    return {"files": list(order), "calls": len(calls), "climbs": climbs}


def route_lines(route: dict[str, Any]) -> Iterator[str]:
    """Yield the route in words: files in the order in which they are entered, then climbs."""
    if route:
        yield f"files entered: {len(route['files'])}"
        yield from (f"  {name}" for name in route["files"])
        yield f"calls from file to file: {route['calls']}, of them climbs: {len(route['climbs'])}"
        yield from (f"  {climb}" for climb in route["climbs"])


@cache
def list_imports(path: Path) -> list[tuple[ast.Import | ast.ImportFrom, bool]]:
    """Return the statements of a file that import, and whether each does for annotations alone."""
    nodes = list_nodes(path)
    parts = [part for node in nodes if is_for_types(node) for part in node.body]
    guarded = {id(inner) for part in parts for inner in ast.walk(part)}
    return [(n, id(n) in guarded) for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]


def imports_of(name: str, path: Path, modules: set[str]) -> Iterator[tuple[str, bool]]:
    """Yield modules of the package that a file imports, and whether for annotations alone."""
    package = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
    for node, guarded in list_imports(path):
        targets = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            full = [f"{base}.{target}" for target in targets]
            targets = [target if target in modules else base for target in full]
        yield from ((t, guarded) for t in targets if t in modules and t != name)


def is_for_types(node: ast.AST) -> TypeGuard[ast.If]:
    """Return whether a node is ``if TYPE_CHECKING:``."""
    test = getattr(node, "test", None) if isinstance(node, ast.If) else None
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def module_name(path: Path, root: Path) -> str:
    """The dotted name of a file of the package."""
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join([root.resolve().name, *(parts[:-1] if parts[-1] == "__init__" else parts)])


def room_of(module: str) -> str:
    """The subpackage or loose module of the root that a module stands in."""
    return [*module.split("."), "__init__"][1]


def join_rooms(modules: Arrows) -> Arrows:
    """Arrows between rooms, each with the imports that it stands for."""
    rooms: Arrows = defaultdict(set)
    for a, b in modules:
        if room_of(a) != room_of(b):
            rooms[room_of(a), room_of(b)].add(f"{a} imports {b}")
    return rooms


def find_circles(arrows: Arrows) -> list[list[str]]:
    """Groups in which everything leads to everything."""
    ahead: dict[str, set[str]] = defaultdict(set)
    for a, b in arrows:
        ahead[a].add(b)
    reach = {}
    for start in list(ahead):
        reach[start], edge = set(ahead[start]), set(ahead[start])
        while edge:
            edge = {c for b in edge for c in ahead.get(b, ())} - reach[start]
            reach[start] |= edge
    rings = {frozenset(b for b in reach[a] if a in reach.get(b, ())) for a in reach}
    return sorted(sorted(ring) for ring in rings if ring)


def drop_circles(rooms: Arrows) -> Arrows:
    """The arrows without the weakest of each circle, those that the fewest imports stand behind."""
    arrows, weak = dict(rooms), []
    while rings := find_circles(arrows):
        circular = [pair for pair in arrows for ring in rings if {*pair} <= {*ring}]
        weak.append(min(circular, key=lambda pair: (len(arrows[pair]), pair)))
        del arrows[weak[-1]]
    for pair in reversed(weak):  # one that was dropped first may close no circle any more
        if not find_circles({**arrows, pair: rooms[pair]}):
            arrows[pair] = rooms[pair]
    return arrows


if __name__ == "__main__":
    main()
