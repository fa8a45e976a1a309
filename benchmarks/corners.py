"""Where users waited without a word: wide tables, conjunctions, max-T, lm-eval logs, hashes.

Run with ``python benchmarks/corners.py [--json]``. Each row times a piece of work of ours and, turn
about in the same run, a peer: what is least for that work, done by a library that does it well.
Seconds are of this process's CPU, the fewest of several turns each, and the ratio is the peer's
over ours. A limit is the least ratio that is good enough, and is said where one was set as an aim.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from groundfault import Evidence, PlanError
from groundfault.core.columns import list_examples, profile
from groundfault.finders.columns import Categories, Declared
from groundfault.readers.lm_eval import LmEval
from groundfault.readers.promptfoo import Promptfoo
from groundfault.stats import bits, multiple
from groundfault_lab.slicing.interactions import Interactions
from groundfault_lab.slicing.sliceline import SliceLine

WORDS = "alpha beta gamma delta question answer model number total price".split()


@dataclass(frozen=True)
class Row:
    """A piece of work, its peer, and the least ratio that is good enough."""

    work: str
    ours: Callable[[], object]
    peer_name: str
    peer: Callable[[], object]
    limit: float | None = None
    turns: int = 3


def main() -> None:
    """Print every row, and end with the ratios as JSON."""
    print(f"{'work':44}{'peer':44}{'peer':>8}{'ours':>8}{'ratio':>8}{'limit':>7}   (CPU s)")
    results = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = (choices, answers, promptfoo)
        for make in (declared, conjunctions, max_t, small_max_t, *logs, hashes, deep):
            row = make(folder)
            ours, peer = measure(row)
            ratio = peer / ours
            limit = f"{row.limit:>7.2f}" if row.limit else f"{'':7}"
            times = f"{peer:>8.3f}{ours:>8.3f}{ratio:>8.2f}{limit}"
            print(f"{row.work:44}{row.peer_name:44}{times}", flush=True)
            results[row.work] = {"ours": ours, "peer": peer, "ratio": ratio, "limit": row.limit}
    if "--json" in sys.argv[1:]:
        print(json.dumps(results))


def measure(row: Row) -> tuple[float, float]:
    """CPU seconds of ours and of the peer, the fewest of several turns."""
    times = [(time_once(row.ours), time_once(row.peer)) for _ in range(row.turns)]
    ours, peer = zip(*times, strict=True)
    return min(ours), min(peer)


def time_once(work: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    work()
    return time.process_time() - start


def make_flags(count: int, rows: int = 200) -> Evidence:
    """Evidence with so many columns of 0 and 1."""
    rng = np.random.default_rng(0)
    columns = {f"f{i}": rng.integers(0, 2, rows) for i in range(count)}
    table = {"id": [str(i) for i in range(rows)], "error": rng.integers(0, 2, rows)} | columns
    return Evidence.from_table(table, id="id", outcome="error")


def declared(_: Path) -> Row:
    """A quadratic step would give .1 here, and did."""
    wide, narrow = make_flags(4_000), make_flags(400)

    def propose(evidence: Evidence, times: int) -> None:
        for _ in range(times):
            list(Declared().propose(evidence))

    return Row(
        "4,000 declared flags",
        lambda: propose(wide, 1),
        "400 flags, ten times",
        lambda: propose(narrow, 10),
        limit=0.5,
    )


def conjunctions(_: Path) -> Row:
    """The refusal of a million pairs should take no longer than what went before it."""
    rng = np.random.default_rng(0)
    table = {"id": [str(i) for i in range(2_000)], "error": rng.integers(0, 2, 2_000)}
    table |= {f"c{i}": rng.choice(list("abcde"), 2_000) for i in range(300)}
    evidence = Evidence.from_table(table, id="id", outcome="error")
    bases = tuple(Categories().propose(evidence))

    def refuse() -> None:
        try:
            Interactions(bases, order=(2,)).propose(evidence)
        except PlanError:
            return
        raise AssertionError("not refused")

    return Row(
        "pairs of 1,500 levels, refused",
        refuse,
        "profile of the columns",
        lambda: profile(list_examples(evidence)),
        turns=2,
    )


def make_max_t(units: int, candidates: int, draws: int, limit: float) -> Row:
    """Step-down max-T, beside drawing as many permutations by NumPy and nothing else."""
    rng = np.random.default_rng(0)
    packed = bits.pack(rng.random((candidates, units)) < rng.uniform(0.02, 0.5, (candidates, 1)))
    losses = (rng.random((1, units)) < 0.2).astype(np.int64)
    bits.expect(1 << 40)  # what is compiled is loaded before the clock runs
    multiple.max_t(packed[:2], losses, 200, rng)

    def shuffle() -> None:
        row, source = losses[0].astype(np.uint8), np.random.default_rng(1)
        for _ in range(draws):
            source.shuffle(row)

    return Row(
        f"max-T, {units:,} x {candidates}, {draws:,} draws",
        lambda: multiple.max_t(packed, losses, draws, np.random.default_rng(1)),
        "shuffles by NumPy, nothing counted",
        shuffle,
        limit=limit,
    )


def max_t(_: Path) -> Row:
    """Aim: 9,999 draws in 5 s where the shuffles by NumPy take 14."""
    return make_max_t(100_000, 200, 999, 2.8)


def small_max_t(_: Path) -> Row:
    """Aim: 9,999 draws in .3 s where the shuffles by NumPy take .29."""
    return make_max_t(2_000, 500, 9_999, 1.0)


def make_lm_eval(folder: Path, task: str, make: Callable[[random.Random, int], dict]) -> Row:
    """A samples file as a table, beside `json.loads` of its lines."""
    rng, path = random.Random(0), folder / f"samples_{task}_2026-01-01T00-00-00.jsonl"
    path.write_text("".join(json.dumps(make(rng, i)) + "\n" for i in range(5_000)))

    def parse() -> int:
        with path.open("rb") as stream:
            return sum(1 for line in stream if json.loads(line))

    return Row(
        f"lm-eval log, {task}",
        lambda: sum(table.height for table, _ in LmEval().read(path).tables()),
        "json.loads",
        parse,
        limit=0.67,
        turns=5,
    )


def choices(folder: Path) -> Row:
    """Multiple choice under two metrics: two rows a line."""
    return make_lm_eval(folder, "multiple choice", make_sample)


def make_sample(rng: random.Random, i: int) -> dict:
    """A row of multiple choice."""
    words = [" ".join(rng.choices(WORDS, k=n)) for n in (25, 3, 3, 3, 3)]
    question, own = words[0], [f" {word} {j}" for j, word in enumerate(words[1:])]
    pairs = [[str(-9 * rng.random()), "False"] for _ in own]
    arguments = {
        f"gen_args_{k}": {"arg_0": f"Question: {question}\nAnswer:", "arg_1": word}
        for k, word in enumerate(own)
    }
    doc = {"id": f"q{i}", "question": question, "choices": own, "subject": rng.choice(WORDS)}
    scores = {"metrics": ["acc", "acc_norm"], "acc": 1.0, "acc_norm": float(rng.random() < 0.3)}
    return {
        "doc_id": i, "doc": doc, "target": "2", "arguments": arguments,
        "resps": [[pair] for pair in pairs], "filtered_resps": pairs, "filter": "none",
        "doc_hash": "a" * 64, "prompt_hash": "b" * 64, "target_hash": "c" * 64, **scores,
    }  # fmt: skip


def answers(folder: Path) -> Row:
    """Generated answers."""

    def make(rng: random.Random, i: int) -> dict:
        question, answer, response = (" ".join(rng.choices(WORDS, k=n)) for n in (40, 40, 60))
        settings = {"until": ["\n"], "do_sample": False, "temperature": 0.0}
        return {
            "doc_id": i, "doc": {"question": question, "answer": answer, "level": i % 5},
            "target": answer, "arguments": {"gen_args_0": {"arg_0": question, "arg_1": settings}},
            "resps": [[response]], "filtered_resps": ["5"], "filter": "strict-match",
            "metrics": ["exact_match"], "doc_hash": "a" * 64, "prompt_hash": "b" * 64,
            "target_hash": "c" * 64, "exact_match": 1.0,
        }  # fmt: skip

    return make_lm_eval(folder, "answers", make)


def promptfoo(folder: Path) -> Row:
    """Results of one file, two scorers each."""
    rng, path = random.Random(0), folder / "results.json"

    def make(i: int) -> dict:
        question, answer = (" ".join(rng.choices(WORDS, k=n)) for n in (60, 60))
        usage = {"total": 90, "prompt": 60, "completion": 30, "numRequests": 1}
        graded = {"type": "equals", "value": "yes", "metric": "exact"}
        part = {"pass": True, "score": 1, "reason": "Assertion passed", "assertion": graded}
        grading = {"pass": True, "score": 1, "reason": "All passed", "componentResults": [part]}
        return {
            "success": True, "score": 1, "failureReason": 0, "testIdx": i, "latencyMs": 19,
            "prompt": {"raw": question, "label": "{{question}}"}, "provider": {"id": "fake"},
            "vars": {"question": question}, "response": {"output": answer, "tokenUsage": usage},
            "testCase": {"vars": {"question": question}, "assert": [graded]},
            "namedScores": {"exact": 1}, "gradingResult": grading, "tokenUsage": usage,
        }  # fmt: skip

    rows = [make(i) for i in range(5_000)]
    path.write_text(json.dumps({"evalId": "eval-1", "results": {"results": rows}}))
    return Row(
        "promptfoo results",
        lambda: sum(table.height for table, _ in Promptfoo().read(path).tables()),
        "json.loads",
        lambda: json.loads(path.read_bytes()),
        turns=5,
    )


def hashes(_: Path) -> Row:
    """The hash of evidence, beside SHA-256 over as many bytes as it reads."""
    rng, rows = np.random.default_rng(0), 200_000
    table = {"id": [f"q{i:06d}" for i in range(rows)], "error": rng.integers(0, 2, rows)}
    table |= {f"f{i}": rng.random(rows) < 0.3 for i in range(50)}
    table |= {f"c{i}": rng.choice(["de", "en", "fr"], rows) for i in range(5)}
    evidence = Evidence.from_table(pl.DataFrame(table), id="id", outcome="error")
    content = bytes(rows * (8 * (50 + 2 + 2 + 6) + 5 * 2))

    def digest() -> str:
        evidence.__dict__.pop("hash", None)  # it is computed once
        return evidence.hash

    return Row(
        "Evidence.hash, 200,000 x 55", digest, "SHA-256", lambda: hashlib.sha256(content), limit=0.5
    )


def deep(_: Path) -> Row:
    """A search that is bounded, beside the same without its last level."""
    rng = np.random.default_rng(0)
    table, errors = rng.integers(0, 5, (2_000, 20)), rng.random(2_000) < 0.2

    def search(levels: int) -> None:
        SliceLine(alpha=1, max_level=levels).fit(table, errors)

    return Row(
        "SliceLine, alpha 1, level 4", lambda: search(4), "the same, level 3", lambda: search(3)
    )


if __name__ == "__main__":
    main()
