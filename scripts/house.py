"""The house in numbers: how large, how documented and how plainly named a Python source tree is.

    python scripts/house.py src/groundfault
    python scripts/house.py groundfault=src/groundfault httpx=/path/to/httpx --json
    python scripts/house.py --imports src/groundfault

The first two print one table with a column for each tree; the third, who imports whom: rooms (the
root's subpackages and modules) by floors, circles, and arrows up. What is loaded by name is unseen.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

WIDTH = 100
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
GUARDS = {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
BREAKS = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER}
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
Arrows = dict[tuple[str, str], set[str]]  # from one module or room to another, and why


def main() -> None:
    """Print the table, or the graph of imports."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trees", nargs="*", metavar="[NAME=]DIRECTORY")
    parser.add_argument("--imports", type=Path, metavar="PACKAGE_DIRECTORY")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    trees = {}
    for argument in options.trees:
        name, _, path = argument.rpartition("=")
        trees[name or Path(path).resolve().name] = Path(path)
    places = [*trees.values(), *([options.imports] if options.imports else [])]
    if not places or not all(any(place.rglob("*.py")) for place in places):
        parser.error("name directories that hold Python files")
    table = {name: measure(path) for name, path in trees.items()}
    graph = describe_imports(options.imports) if options.imports else {}
    lines = [*(table_lines(table) if table else []), *import_lines(graph)]
    data = {"trees": table, "imports": graph}
    print(json.dumps(data, indent=2) if options.json else "\n".join(lines))


def measure(root: Path) -> dict[str, float]:
    """Counts (whole numbers) and shares (from 0 to 1) of one tree."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(root.rglob("*.py"))}
    trees = [ast.parse(text) for text in texts.values()]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    functions = [node for node in nodes if isinstance(node, FUNCTION)]
    inner = {id(node) for outer in functions for node in ast.walk(outer) if node is not outer}
    public = [f for f in functions if f.name[0] != "_" and id(f) not in inner]
    lines = [line for text in texts.values() for line in text.splitlines()]
    modules = [len(text.splitlines()) for text in texts.values()]
    sizes = [(node.end_lineno or 0) - node.lineno + 1 for node in functions] or [0]
    words = [first_word(node.id) for node in nodes if isinstance(node, ast.Name)]
    comments, code = map(sum, zip(*map(count_comments, texts), strict=True))
    classes = [{n.name for n in ast.walk(tree) if isinstance(n, ast.ClassDef)} for tree in trees]
    homes = Counter(name for names in classes for name in names)
    return {
        "Files": len(texts),
        "Lines": len(lines),
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


def count_comments(path: Path) -> tuple[int, int]:
    """Lines that hold a comment and nothing else, and lines of code; docstrings are neither."""
    comments, code = set[int](), set[int]()
    begins = True  # whether the next token begins a statement
    with path.open("rb") as stream:
        for token in tokenize.tokenize(stream.readline):
            if token.type == tokenize.COMMENT:
                comments.add(token.start[0])
            elif token.type in BREAKS:
                begins = True
            elif token.type != tokenize.NL:
                if not (begins and token.type == tokenize.STRING):
                    code.update(range(token.start[0], token.end[0] + 1))
                begins = False
    return len(comments - code), len(code)


def percentile(values: list[int], level: float) -> int:
    """The smallest value that at least this share of the values do not exceed."""
    return sorted(values)[math.ceil(level * len(values)) - 1]


def share(flags: list[bool]) -> float:
    """How many of the flags are true, from 0 to 1; 0 where there are none."""
    return sum(flags) / max(1, len(flags))


def describe_imports(root: Path) -> dict[str, Any]:
    """Floors of rooms, circles, and arrows that point up."""
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


def imports_of(name: str, path: Path, modules: set[str]) -> Iterator[tuple[str, bool]]:
    """Modules of the package that a file imports anywhere, and whether for annotations alone."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    checks = [node for node in ast.walk(tree) if isinstance(node, ast.If)]
    checks = [node for node in checks if ast.unparse(node.test) in GUARDS]
    guarded = {id(inner) for check in checks for part in check.body for inner in ast.walk(part)}
    package = name.split(".") if path.stem == "__init__" else name.split(".")[:-1]
    for node in ast.walk(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        targets = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            full = [f"{base}.{target}" for target in targets]
            targets = [target if target in modules else base for target in full]
        yield from ((t, id(node) in guarded) for t in targets if t in modules and t != name)


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
