"""Write which numbers of the search for failure modes decide what is said, and how much.

    python scripts/constants.py docs/explanation/constants.md [--worlds 6] [--jobs 1] [--keep FILE]

Every number that a module of `groundfault.modes` names and that decides what is said is halved and
doubled (a share above a half: its distance from 1; a log: the level), and the search runs again on
simulated tables whose causes are planted and on the prompts of the demo. Needs no data beside the
package; the reasons are the docstrings of the numbers. With a file to keep, a run that was stopped
goes on.
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from io import BytesIO
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

Bools = NDArray[np.bool_]

PACKAGE = "groundfault.modes"
LEFT_OUT = ("compiled", "examples", "near_misses", "kernels", "patterns")
"""Modules whose numbers are about time, memory, and the examples that are shown."""
READ_ONLY = {
    "find": "numbers and sentences about a mode that is named",
    "lexicon": "languages and word classes of texts",
    "matrix": "the table of several models",
    "strata": "rounding, samples and storage of losses",
    "template_rules": "patterns of templates",
    "templates": "templates of texts",
    "text_attributes": "attributes of texts",
    "text_conditions": "attributes of texts",
    "text_shapes": "attributes of texts",
}
"""Modules whose numbers choose no rule: they are listed, and not varied."""
LIMITS = {
    "bars.WORK", "bars._HELD", "bars.PRODUCTS", "changes._CELLS", "changes._FEW",
    "changes._SHUFFLED", "condition._RANGES", "rule_space._AT_ONCE", "rule_space._JOINED",
    "rule_space._TRIPLE_WORK", "search.TOP", "search._BLOCK", "search._HOPELESS", "search._SHARED",
}  # fmt: skip
"""Numbers that bound work and memory: they are listed, and not varied."""
BY_CHANCE = ("hour", "client", "load")
"""Columns of every table that go with no failure."""
SPLITS = ("halved", "doubled")
WELL = 0.8
_NONE, _LATER = "change none of these lists", "were not varied since the search changed"
MARK = "<!-- constants -->"
END = "<!-- end -->"


@dataclass(frozen=True)
class Constant:
    """A number of a module: its name, value, and the sentence that says why."""

    module: str
    name: str
    value: Any
    reason: str

    @property
    def key(self) -> str:
        """Return its module and name."""
        return f"{self.module}.{self.name}"

    @property
    def decides(self) -> bool:
        """Return whether it decides what is said: it is varied."""
        return self.module not in READ_ONLY and self.key not in LIMITS

    def vary(self, how: str) -> Any:
        """Return the number halved, or doubled."""
        return _vary(self.value, 0.5 if how == "halved" else 2.0)


def _vary(value: Any, factor: float) -> Any:
    if isinstance(value, dict):
        # weights among themselves: evener, or more uneven
        return {key: part**factor for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(_vary(part, factor) for part in value)
    if isinstance(value, int):
        return max(1, round(value * factor))
    if value < 0:
        return value + math.log(factor)
    if 0.5 <= value < 1:
        return 1 - (1 - value) / factor if factor > 1 else max(0.0, 1 - (1 - value) / factor)
    return value * factor


def list_constants() -> list[Constant]:
    """Read the numbers that modules name, with the docstring below or the comment beside."""
    found = []
    folder = Path(import_module(PACKAGE).__file__ or "").parent
    for file in sorted(folder.glob("*.py")):
        if file.stem in LEFT_OUT:
            continue
        text = file.read_text(encoding="utf-8")
        lines, module = text.splitlines(), import_module(f"{PACKAGE}.{file.stem}")
        body = ast.parse(text).body
        for node, after in zip(body, [*body[1:], None], strict=True):
            target = node.targets[0] if isinstance(node, ast.Assign) else None
            if not isinstance(target, ast.Name) or not target.id.strip("_").isupper():
                continue
            names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
            if names - {target.id, "math"}:
                # made of others
                continue
            value = getattr(module, target.id)
            parts = (
                value.values() if isinstance(value, dict)
                else value if isinstance(value, tuple) else [value]
            )  # fmt: skip
            if not all(isinstance(p, int | float) and not isinstance(p, bool) for p in parts):
                continue
            said = after.value if isinstance(after, ast.Expr) else None
            comment = lines[node.end_lineno - 1].partition("  # ")[2] if node.end_lineno else ""
            reason = said.value if isinstance(said, ast.Constant) else comment
            found.append(Constant(file.stem, target.id, value, " ".join(str(reason).split())))
    return found


@cache
def _list_modules() -> dict[str, set[str]]:
    """Return the names that each module of the package defines itself."""
    folder = Path(import_module(PACKAGE).__file__ or "").parent
    return {
        file.stem: {
            target.id
            for node in ast.parse(file.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for file in folder.glob("*.py")
    }


def put(constant: Constant, value: Any) -> None:
    """Give a number another value, in every module that reads it."""
    for stem, own in _list_modules().items():
        module = import_module(f"{PACKAGE}.{stem}")
        if stem == constant.module or (constant.name in vars(module) and constant.name not in own):
            setattr(module, constant.name, value)
        for one in vars(module).values():
            if hasattr(one, "cache_clear"):
                one.cache_clear()


@dataclass(frozen=True)
class Table:
    """A table, its losses (one row, or two runs, or several models), and what is planted in it."""

    kind: str
    frame: pl.DataFrame
    losses: NDArray[np.float64]
    planted: tuple[Bools, ...]
    causes: str
    strata: NDArray[np.int64] | None = None


def _draw_attributes(rng: np.random.Generator, n: int) -> pl.DataFrame:
    shared = rng.normal(size=n)

    def draw() -> NDArray[np.float64]:
        return 0.3 * shared + 0.95 * rng.normal(size=n)

    return pl.DataFrame(
        {
            "size": draw().round(2),
            "price": np.exp(draw()).round(2),
            "new": draw() > 0.4,
            "rush": draw() > 0.8,
            "topic": np.array(list("abcdefgh"))[np.clip(((draw() + 2) * 2).astype(int), 0, 7)],
            "language": rng.choice(["en", "de", "fr", "es"], n, p=[0.5, 0.2, 0.2, 0.1]),
            "steps": np.clip(rng.poisson(3, n), 0, 12),
        }
    )


def _plant(rng: np.random.Generator, t: pl.DataFrame, kind: int) -> tuple[Bools, str]:
    """Draw a rule of a kind; where it holds, and the columns it names."""
    size, topic = t["size"].to_numpy(), t["topic"].to_numpy()
    low = float(rng.uniform(0.1, 0.8))
    rules = (
        (t["rush"].to_numpy(), "rush"),
        (topic == rng.choice(list("bcdefg")), "topic"),
        ((size > np.quantile(size, low)) & (size <= np.quantile(size, low + 0.12)), "size"),
        ((topic == rng.choice(list("cdef"))) & t["new"].to_numpy(), "topic new"),
        (np.isin(topic, ["c", "d"]) & (t["language"] == "de").to_numpy(), "topic language"),
        ((t["steps"] >= 5).to_numpy() & t["new"].to_numpy(), "steps new"),
        (t["price"].to_numpy() > np.quantile(t["price"], 0.9), "price"),
    )
    return rules[kind % len(rules)]


def make_table(number: int) -> Table:
    """Draw a table: attributes, prompts, graded losses, strata, a change, or models, in turn."""
    rng = np.random.default_rng([number, 20_261_127])
    kind = ("planted", "attributes", "prompts", "graded", "strata", "change")[number % 6]
    strata = None
    if kind == "planted":
        from groundfault_studies.mode_tables import plant

        made = plant(rng, 800, 2)
        t, planted = made.frame.drop("id"), tuple(made.planted.values())
        causes = " ".join([*made.planted, "family", "steps", "contrast"])
        losses = (rng.random(t.height) < made.chance)[None].astype(float)
    elif kind == "prompts":
        from groundfault.cli.demo import read_table

        t = pl.read_parquet(BytesIO(read_table())).sample(800, seed=number)
        y = (~t["correct"].cast(pl.Boolean)).to_numpy()
        t = t.drop("correct", "id", "answer", "target", strict=False)
        rule = number // 6 % 4
        words = t["prompt"].str.to_lowercase()
        on = (
            t["prompt"].str.len_chars() > t["prompt"].str.len_chars().quantile(0.9),
            words.str.contains(r"\bhow many\b"), words.str.contains("please"),
            words.str.starts_with("what"),
        )[rule].to_numpy()  # fmt: skip
        planted, causes = (on,), " ".join(t.columns)
        losses = (y | (on & (rng.random(len(y)) < 0.4)))[None].astype(float)
    else:
        t = _draw_attributes(rng, 500)
        drawn = [_plant(rng, t, number // 6 + i * 3) for i in range(2)]
        planted, causes = tuple(on for on, _ in drawn), " ".join(names for _, names in drawn)
        p = np.where(np.logical_or.reduce(planted), 0.5, 0.12)
        if kind == "graded":
            losses = rng.binomial(4, p)[None] / 4
        elif kind == "change":
            noise = rng.random((2, t.height))
            losses = np.stack([noise[0] < 0.12, np.where(noise[1] < 0.8, noise[0], noise[1]) < p])
            losses = losses.astype(float)
        else:
            if kind == "strata":
                strata = (t["price"] > 1).cast(pl.Int64).to_numpy()
                p = np.clip(p + 0.1 * strata, 0, 1)
            losses = (rng.random(t.height) < p)[None].astype(float)
    n = t.height
    by_chance = {"hour": rng.integers(0, 24, n), "client": rng.choice(list("vwxyz"), n)}
    t = t.with_columns(**by_chance, load=rng.random(n).round(3))
    return Table(kind, t, losses, planted, causes, strata)


def measure(number: int) -> dict[str, Any]:
    """Search one table, and tell what was named."""
    from groundfault.modes.changes import find_changes
    from groundfault.modes.find import find_modes

    table = make_table(number)
    if table.kind == "change":
        modes = find_changes(table.frame, table.losses)[0]
    else:
        modes = find_modes(table.frame, table.losses, strata=table.strata)[0]
    on = [mode.holds(table.frame).to_numpy() for mode in modes[:5]]
    named = [
        max([0.0, *((a & b).sum() / max(1, (a | b).sum()) for b in on)]) >= WELL
        for a in table.planted
    ]
    chance = sum(bool(re.search(rf'"{name}"', mode.rule)) for mode in modes for name in BY_CHANCE)
    return {
        "rules": [mode.rule for mode in modes],
        "named": int(sum(named)),
        "causes": len(named),
        "false": chance,
        "conditions": sum(len(mode.conditions) for mode in modes),
    }


def measure_all(job: tuple[int, str, int]) -> dict[str, Any]:
    """Search some tables with one number changed; -1 changes none."""
    place, how, worlds = job
    constant = list_constants()[place] if place >= 0 else None
    begin = time.process_time()
    try:
        if constant is not None:
            put(constant, constant.vary(how))
        rows: list[dict[str, Any]] = []
        failed = ""
        for number in range(worlds):
            try:
                rows.append(measure(number))
            except Exception as error:
                rows.append({"rules": ["?"], "named": 0, "causes": 2, "false": 0, "conditions": 0})
                failed = f"{type(error).__name__}: {error}"[:100]
    finally:
        if constant is not None:
            put(constant, constant.value)
    key = "as it is" if constant is None else constant.key
    seconds = round(time.process_time() - begin, 2)
    return {"key": key, "how": how, "rows": rows, "seconds": seconds, "failed": failed}


def run(jobs: list[tuple[int, str, int]], processes: int) -> Iterator[dict[str, Any]]:
    """Yield results as they come."""
    if processes == 1:
        yield from map(measure_all, jobs)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for one in as_completed([pool.submit(measure_all, job) for job in jobs]):
            yield one.result()


@dataclass(frozen=True)
class Effect:
    """What changes where a number is another."""

    lists: int
    named: int
    false: int
    failed: str

    @classmethod
    def of(cls, result: dict[str, Any], base: dict[str, Any]) -> Effect:
        """Compare two results."""
        pairs = list(zip(result["rows"], base["rows"], strict=True))
        lists = sum(a["rules"] != b["rules"] for a, b in pairs)
        named, false = (sum(a[key] - b[key] for a, b in pairs) for key in ("named", "false"))
        return cls(lists, named, false, result["failed"])

    def __str__(self) -> str:
        if self.failed:
            return "stops"
        return f"{self.lists}, {self.named:+d}, {self.false:+d}" if self.lists else "-"


def _show(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_show(part)}" for key, part in value.items())
    if isinstance(value, tuple):
        return ", ".join(map(_show, value))
    if isinstance(value, float) and value < 0:
        return f"log {math.exp(value):.3g}"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def make_page(results: dict[tuple[str, str], dict[str, Any]], worlds: int) -> str:
    """Return the tables."""
    base = results["as it is", ""]
    rows = base["rows"]
    lines: dict[str, list[tuple[int, str]]] = {"change a list": [], _NONE: [], _LATER: []}
    for one in list_constants():
        kept = [results.get((one.key, how)) for how in SPLITS]
        if not one.decides:
            continue
        effects = [None if found is None else Effect.of(found, base) for found in kept]
        size = sum(e.lists + (worlds if e.failed else 0) for e in effects if e)
        cells = [
            f"`{one.key}`",
            _show(one.value),
            *(str(e or "not run") for e in effects),
            one.reason or "**no reason**",
        ]
        told = _LATER if None in effects else "change a list" if size else _NONE
        lines[told].append((-size, f"| {' | '.join(cells)} |"))
    named, causes = (sum(row[key] for row in rows) for key in ("named", "causes"))
    false, conditions = (sum(row[key] for row in rows) for key in ("false", "conditions"))
    limits, others = (
        [
            f"| `{one.key}` | {_show(one.value)} | {one.reason or '**no reason**'} |"
            for one in list_constants()
            if not one.decides and (one.key in LIMITS) == limit
        ]
        for limit in (True, False)
    )
    head = "| Number | Value | Halved | Doubled | Reason |\n|---|--:|--:|--:|---|\n"
    return "\n".join(
        [
            MARK,
            "",
            f"On {worlds} tables with {causes} planted causes the search names {named} among its "
            f"first five modes, with {conditions} conditions, {false} of them on columns drawn by "
            "chance. A cell has in how many tables the list changes, how many more causes are "
            "named, and how many more conditions are on columns drawn by chance.",
            "",
            *(
                f"## {len(some)} numbers that {told}\n\n{head}"
                + "\n".join(line for _, line in sorted(some))
                + "\n"
                for told, some in lines.items()
                if some
            ),
            f"## {len(limits)} limits of work and memory",
            "",
            "Where a table is so large that one of them binds, the search looks at fewer rules and "
            "pays for all that it could have looked at. A faster machine would raise them. None is "
            "varied.",
            "",
            "| Number | Value | Reason |\n|---|--:|---|\n" + "\n".join(limits),
            "",
            f"## {len(others)} numbers that choose no rule",
            "",
            "They make conditions of texts, round, lay out the table of models and write about a "
            "mode. None is varied.",
            "",
            "| Number | Value | Reason |\n|---|--:|---|\n" + "\n".join(others),
            "",
            END,
        ]
    )


def main() -> int:
    """Measure what is not kept yet, and fill the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("page", type=Path)
    parser.add_argument("--worlds", type=int, default=6)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=math.inf, help="end after this")
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    results: dict[tuple[str, str], dict[str, Any]] = {}
    if options.keep and options.keep.exists():
        kept = map(json.loads, options.keep.read_text(encoding="utf-8").splitlines())
        results = {(one["key"], one["how"]): one for one in kept}
    constants = list_constants()
    jobs = [(-1, "", options.worlds)]
    jobs += [
        (i, how, options.worlds) for i, one in enumerate(constants) if one.decides for how in SPLITS
    ]
    names = ["as it is" if i < 0 else constants[i].key for i, *_ in jobs]
    jobs = [job for job, name in zip(jobs, names, strict=True) if (name, job[1]) not in results]
    begin = time.monotonic()
    for one in run(jobs, options.jobs):
        results[one["key"], one["how"]] = one
        if options.keep:
            with options.keep.open("a", encoding="utf-8") as file:
                file.write(json.dumps(one) + "\n")
        print(f"{time.monotonic() - begin:6.0f} s  {one['key']} {one['how']}", file=sys.stderr)
        if time.monotonic() - begin > options.seconds:
            break
    page = options.page.read_text(encoding="utf-8") if options.page.exists() else f"{MARK}\n{END}\n"
    tables = make_page(results, options.worlds)
    filled = re.sub(rf"{MARK}.*?{END}", lambda _: tables, page, flags=re.DOTALL)
    options.page.write_text(filled, encoding="utf-8")
    return 0


if __name__ == "__main__":
    for kind in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ.setdefault(f"{kind}_NUM_THREADS", "1")
    sys.exit(main())
