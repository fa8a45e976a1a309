"""Run the twenty first tasks of a new user, and write the table of them in docs/contributing.md.

    python scripts/first_tasks.py           # runs them, and rewrites the table
    python scripts/first_tasks.py --check   # runs them, and exits with 1 if one is not right

Every log and table is made here from a seed, in the layout of its tool. A task is right if its last
command ends with the status that is expected and prints what is expected, in ten seconds of
processor time and with 12 lines and 80 words or fewer before the list; a traceback is never right.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

PAGE = Path(__file__).resolve().parents[1] / "docs" / "contributing.md"
START, END = "<!-- first tasks: written by scripts/first_tasks.py -->\n", "<!-- end -->\n"
ROWS = 2_000
MOST_SECONDS, MOST_WORDS, MOST_LINES = 10.0, 80, 12
"""Longer than a command that a person waits for without a doubt; a paragraph; half a terminal."""
RNG = np.random.default_rng(7)


@dataclass(frozen=True)
class Task:
    """What somebody does first, the commands, and what the last one has to print."""

    name: str
    commands: tuple[str, ...]
    expected: str
    status: int = 0


TASKS = (
    Task("the demo", ("demo",), r"1\. number_style is words"),
    Task("one Inspect log", ("audit inspect.json",), r"1\. lang is de"),
    Task("a folder of lm-eval", ("audit lm_eval",), r"1\. (doc_)?subject is law"),
    Task("a promptfoo file", ("audit promptfoo.json",), r"1\. (vars_)?lang is de"),
    Task("SWE-bench results", ("audit swebench.json",), r"1\. repo\w* is astropy"),
    Task("a CSV in Chinese", ("audit zh.csv --outcome error",), r"1\. prompt has .退还"),
    Task("dates", ("audit dates.csv --outcome error",), r"1\. created\.(month|day)"),
    Task("e-mail addresses", ("audit mails.csv --outcome error",), r"1\. mail has a plus sign"),
    Task("a perfect run", ("audit perfect.csv --outcome error",), "2,000 of 2,000 passed"),
    Task("nothing to find", ("audit null.csv --outcome error",), "found four times in five"),
    Task("a log with one sample", ("audit one.json",), "Examples 1"),
    Task(
        "five models",
        ("audit five.csv --id id --model-column model --outcome error",),
        "only m3",
    ),
    Task(
        "ten models",
        ("audit ten.csv --id id --model-column model --outcome error",),
        "Rules by model",
    ),
    Task(
        "two versions",
        ("audit old=old.csv new=new.csv --compare old new --id id --outcome error",),
        "new fails more often.*\n(.*\n)*1. lang is de",
    ),
    Task(
        "two versions in CI",
        (
            "audit old=old.csv new=new.csv --compare old new --id id --outcome error --out change",
            "gate change",
        ),
        "Gate failed",
        1,
    ),
    Task(
        "five runs of one eval",
        ("audit run0.csv run1.csv run2.csv run3.csv run4.csv --repeats --id id --outcome error",),
        r"1\. lang is de",
    ),
    Task(
        "grades A, B and C",
        ("audit abc.csv --outcome grade", "audit abc.csv --outcome grade --passes A"),
        r"1\. lang is de",
    ),
    Task(
        "scores from 1 to 5",
        ("audit scores.csv --outcome score", "audit scores.csv --outcome score --scale 1 5"),
        r"1\. lang is de",
    ),
    Task("a slip of the pen", ("audit table.csv --outcome eror",), "did you mean 'error'", 2),
    Task(
        "examples of a rule, from a report elsewhere",
        (
            "audit logs/inspect.json --out elsewhere/report",
            "show elsewhere/report 1 --passing -n 1",
        ),
        "inside the rule, and right",
    ),
)


def main() -> int:
    """Run every task, and write or check the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument("--only", default="", help="tasks whose name has this in it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        make_files(place)
        rows = [run(task, place) for task in TASKS if options.only in task.name]
    lines = [
        "| task | commands | seconds | words before the list | right |",
        "|---|---|--:|--:|---|",
        *("| {} | {} | {:.1f} | {} | {} |".format(*row) for row in rows),
    ]
    print("\n".join(lines))
    if not options.check and not options.only:
        text = PAGE.read_text(encoding="utf-8")
        before, after = text.partition(START)[0], text.partition(END)[2]
        PAGE.write_text(f"{before}{START}\n{chr(10).join(lines)}\n\n{END}{after}", encoding="utf-8")
    return int(any(row[-1] != "yes" for row in rows))


def run(task: Task, place: Path) -> tuple[str, str, float, int, str]:
    """Run the commands of a task; only the last may end as it likes."""
    environment = os.environ | {"COLUMNS": "80", "NO_COLOR": "1", "GROUNDFAULT_LEDGER": "off"}
    seconds, words, lines, faults, typed = 0.0, 0, 0, list[str](), []
    for command in task.commands:
        start = read_processor_seconds()
        done = subprocess.run(
            [sys.executable, "-m", "groundfault", *command.split()],
            cwd=place, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        seconds = max(seconds, read_processor_seconds() - start)
        said = done.stdout + done.stderr
        before = cut_list(said)
        words, lines = max(words, len(before.split())), max(lines, before.count("\n"))
        typed.append(f"`groundfault {command}`")
        if "Traceback" in said:
            faults.append("traceback")
    if done.returncode != task.status:
        faults.append(f"status {done.returncode}")
    if not re.search(task.expected, said):
        faults.append(f"no {task.expected!r}")
        print(said, file=sys.stderr)
    faults += ["slow"] * (seconds > MOST_SECONDS) + ["wordy"] * (words > MOST_WORDS)
    faults += ["long"] * (lines > MOST_LINES)
    return task.name, ", ".join(typed), seconds, words, "; ".join(faults) or "yes"


def read_processor_seconds() -> float:
    """Return the processor time of all commands so far: other work on the machine leaves it be."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def cut_list(said: str) -> str:
    """Return the text before a list, a table of models or an example; of an error, all."""
    head = r"^(?:For example|A failure:|1\. |Rules by model|v?\w+ fails (?:more|less) often$)"
    return re.split(head, said, flags=re.M)[0]


def make_files(place: Path) -> None:
    """Write the logs and tables: German fails in 60 %, and everything else in 10 %."""
    table = make_table()
    table.write_csv(place / "table.csv")
    write_logs(place, table)
    write_columns(place)
    write_models(place)
    quiet = table.drop("error").with_columns(error=pl.Series(RNG.random(ROWS) < 0.2).cast(pl.Int8))
    quiet.write_csv(place / "null.csv")
    quiet.with_columns(error=pl.lit(0)).write_csv(place / "perfect.csv")
    is_wrong = table["error"].to_numpy() == 1
    grades = np.where(is_wrong, RNG.choice(["B", "C"], ROWS), "A")
    table.drop("error").with_columns(grade=grades).write_csv(place / "abc.csv")
    scores = np.where(is_wrong, RNG.integers(1, 3, ROWS), RNG.integers(4, 6, ROWS))
    table.drop("error").with_columns(score=scores).write_csv(place / "scores.csv")


def make_table(high: float = 0.6, lang: str = "de", low: float = 0.1) -> pl.DataFrame:
    """Make examples in four languages, of which one fails more often."""
    languages = np.array(["de", "en", "fr", "es"])[np.arange(ROWS) % 4]
    topics = RNG.choice(["tax", "travel", "sport", "code"], ROWS)
    numbers = RNG.permutation(ROWS)
    prompts = [
        f"A question on {t}, with the number {n}." for t, n in zip(topics, numbers, strict=True)
    ]
    error = RNG.random(ROWS) < np.where(languages == lang, high, low)
    columns = {"id": [f"q{i}" for i in range(ROWS)], "prompt": prompts, "lang": languages}
    return pl.DataFrame({**columns, "topic": topics, "error": error.astype(int)})


def write_logs(place: Path, table: pl.DataFrame) -> None:
    """Write logs of Inspect, lm-eval, promptfoo and SWE-bench."""
    rows = list(table.iter_rows(named=True))
    for path in (place / "inspect.json", place / "logs" / "inspect.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(make_inspect_log(rows)))
    (place / "one.json").write_text(json.dumps(make_inspect_log(rows[:1])))
    folder = place / "lm_eval" / "model"
    folder.mkdir(parents=True)
    subject = ["law", "art", "biology", "history"]
    lines = [
        {
            "doc_id": i,
            "doc": {"question": row["prompt"], "subject": subject[i % 4]},
            "target": "yes",
            "arguments": {"gen_args_0": {"arg_0": row["prompt"], "arg_1": {}}},
            "resps": [["yes"]],
            "filtered_resps": ["no" if row["error"] else "yes"],
            "filter": "none",
            "metrics": ["exact_match"],
            "exact_match": 1.0 - row["error"],
        }
        for i, row in enumerate(rows)
    ]
    samples = folder / "samples_qa_2026-11-20T10-00-00.000000.jsonl"
    samples.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    results = [
        {
            "success": not row["error"],
            "score": 1 - row["error"],
            "prompt": {"raw": row["prompt"], "label": "{{prompt}}"},
            "provider": {"id": "openai:model"},
            "response": {"output": "no" if row["error"] else "yes"},
            "testIdx": i,
            "promptIdx": 0,
            "vars": {"question": row["prompt"], "lang": row["lang"]},
            "testCase": {"vars": {"question": row["prompt"], "lang": row["lang"]}},
            "gradingResult": {"pass": not row["error"], "score": 1 - row["error"]},
            "failureReason": row["error"],
            "namedScores": {},
        }
        for i, row in enumerate(rows)
    ]
    promptfoo = {"evalId": "eval-1", "results": {"version": 3, "results": results}, "config": {}}
    (place / "promptfoo.json").write_text(json.dumps(promptfoo))
    repositories = ["astropy__astropy", "django__django", "sympy__sympy", "psf__requests"]
    solved = {f"{repositories[i % 4]}-{i}": not row["error"] for i, row in enumerate(rows)}
    (place / "swebench.json").write_text(
        json.dumps(
            {
                "total_instances": ROWS,
                "submitted_ids": list(solved),
                "completed_ids": list(solved),
                "resolved_ids": [name for name, passed in solved.items() if passed],
                "unresolved_ids": [name for name, passed in solved.items() if not passed],
                "empty_patch_ids": [],
                "error_ids": [],
                "incomplete_ids": [],
                "schema_version": 2,
            }
        )
    )


def make_inspect_log(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Make a log of Inspect, with metadata of each sample."""
    samples = [
        {
            "id": row["id"],
            "epoch": 1,
            "input": row["prompt"],
            "target": "yes",
            "metadata": {"lang": row["lang"], "topic": row["topic"]},
            "messages": [],
            "output": {"choices": [{"message": {"role": "assistant", "content": "yes"}}]},
            "scores": {"match": {"value": "I" if row["error"] else "C", "answer": "yes"}},
        }
        for row in rows
    ]
    task = {
        "task": "qa",
        "task_id": "t",
        "run_id": "r",
        "created": "2026-11-20T10:00:00+00:00",
        "model": "openai/model",
        "dataset": {},
        "config": {},
    }
    header = {
        "version": 2,
        "status": "success",
        "eval": task,
        "plan": {},
        "results": {},
        "stats": {},
    }
    return header | {"samples": samples}


def write_columns(place: Path) -> None:
    """Write tables whose failures go with a word of Chinese, a date, or a part of an address."""
    refunds = RNG.random(ROWS) < 0.3
    verbs = np.where(refunds, "退还", "查询")
    error = RNG.random(ROWS) < np.where(refunds, 0.7, 0.1)
    starts = RNG.choice(["请", "我想", "怎么", "帮我"], ROWS)
    things = RNG.choice(["订单", "会员", "运费", "押金"], ROWS)
    prompts = [
        f"{a}{b}{c}{i}" for i, (a, b, c) in enumerate(zip(starts, verbs, things, strict=True))
    ]
    pl.DataFrame({"prompt": prompts, "error": error.astype(int)}).write_csv(place / "zh.csv")
    start = np.datetime64("2026-01-01")
    created = start + RNG.integers(0, 240, ROWS).astype("timedelta64[D]")
    error = RNG.random(ROWS) < np.where(created >= np.datetime64("2026-05-01"), 0.6, 0.1)
    table = pl.DataFrame({"created": created, "error": error.astype(int)})
    table.write_csv(place / "dates.csv")
    plus = np.arange(ROWS) % 5 == 0
    mails = [f"user{i}{'+news' if p else ''}@example.org" for i, p in enumerate(plus)]
    error = RNG.random(ROWS) < np.where(plus, 1.0, 0.05)
    pl.DataFrame({"mail": mails, "error": error.astype(int)}).write_csv(place / "mails.csv")


def write_models(place: Path) -> None:
    """Write answers of five and of ten models, of two versions, and of five runs."""
    first = make_table()
    for name, count in (("five", 5), ("ten", 10)):
        models = []
        for number in range(count):
            # every model answers the same prompts, and m3 fails on taxes too
            more = (first["topic"] == "tax") & pl.Series(RNG.random(ROWS) < 0.5) & (number == 3)
            error = (make_table(0.4 + 0.05 * (number % 5))["error"] == 1) | more
            columns = {"error": error.cast(pl.Int8), "model": pl.lit(f"m{number}")}
            models.append(first.with_columns(**columns))
        pl.concat(models).write_csv(place / f"{name}.csv")
    for name, rate in (("old", 0.2), ("new", 0.6)):
        first.with_columns(make_table(rate)["error"]).write_csv(place / f"{name}.csv")
    for number in range(5):
        again = make_table()["error"]
        first.with_columns(again).write_csv(place / f"run{number}.csv")


if __name__ == "__main__":
    sys.exit(main())
