"""Measure what audits say of runs of agents, and print it as Markdown.

    python scripts/measure_agents.py [WORLDS] [SHARED]

Null worlds (runs that fail take longer, and nothing causes failure), planted ones, MINT and
tau-bench, the speed of reading, and of the screen of a long run. WORLDS is the number of null
worlds of each layout, 20 by default; SHARED the folder of the project's shared data.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "workbench"))
from agent_worlds import make_chats, mark_runs, read, read_mint, read_tau_bench

from groundfault import Evidence
from groundfault.transcripts.behaviours import find_behaviours
from groundfault.transcripts.judging import JudgedTranscripts, judge_transcripts
from groundfault.transcripts.steps import tabulate_steps

LEVEL, ROWS = 0.1, 8
LAYOUTS = {
    "200 tasks, one run each": (200, 1, 1),
    "50 tasks x 4 trials": (50, 4, 1),
    "40 tasks x 5 models": (40, 1, 5),
}


def says_anything(told: JudgedTranscripts) -> bool:
    """Return whether any behaviour or announcement is named."""
    named = any(b.p is not None and b.p <= LEVEL for b in told.behaviours)
    return bool(told.announcements) or named


def measure_worlds(worlds: int) -> None:
    """Print how often null worlds say anything, and how often a planted cause is named."""
    print("| layout | null worlds with a claim | cause at turn 2 named |\n|---|--:|--:|")
    for name, (tasks, trials, models) in LAYOUTS.items():
        false = sum(
            says_anything(
                judge_transcripts(
                    read(make_chats(s, tasks=tasks, trials=trials, models=models)), LEVEL
                )
            )
            for s in range(worlds)
        )
        planted, hits = max(5, worlds // 4), 0
        for seed in range(planted):
            table = make_chats(seed, tasks=tasks, trials=trials, models=models, cause=0.6)
            told = judge_transcripts(read(table), LEVEL)
            hits += any("stray" in a.behaviour for a in told.announcements)
        print(f"| {name} | {false} of {worlds} | {hits} of {planted} |", flush=True)


def measure_scanners(worlds: int) -> None:
    """Print how often a scanner of whole runs is named, by chance and where it is right."""
    print("\n| layout, scanner of | null worlds with a claim | scanner named |\n|---|--:|--:|")
    for name, layout in LAYOUTS.items():
        for steps in (False, True):

            def count(number: int, effect: float, layout=layout, steps=steps) -> int:  # type: ignore[no-untyped-def]
                runs = (mark_runs(s, layout, effect, steps=steps) for s in range(number))
                return sum(
                    any(
                        b.whole and b.p is not None and b.p <= LEVEL
                        for b in judge_transcripts(one, LEVEL).behaviours
                    )
                    for one in runs
                )

            planted, what = max(5, worlds // 4), "runs" if steps else "answers"
            rates = f"{count(worlds, 0.0)} of {worlds} | {count(planted, 0.3)} of {planted}"
            print(f"| {name}, {what} | {rates} |", flush=True)


def compare(name: str, evidence: Evidence) -> None:
    """Print behaviours by whole runs, as dashboards count them, beside what landmarks leave."""
    steps = evidence.transcripts
    found = find_behaviours(steps, len(evidence))
    failed = evidence.loss.to_numpy() > 0.5
    told = judge_transcripts(evidence, LEVEL)
    shown = found.first < np.iinfo(np.int32).max
    runs = shown.sum(axis=1)
    gaps = [
        failed[row].mean() - failed[~row].mean() if 0 < row.sum() < len(row) else 0.0
        for row in shown
    ]
    by_name = {behaviour.name: behaviour for behaviour in told.behaviours}
    print(f"\n{name}: {len(failed):,} runs, {failed.mean():.0%} fail\n")
    print("| by whole runs | fail with | fail without | like runs: fail, expected | p |")
    print("|---|--:|--:|--:|--:|")
    for place in np.argsort(gaps)[::-1][:ROWS]:
        row, one = shown[place], by_name.get(found.names[place])
        like = "described only"
        if one is not None and one.p is not None:
            like = f"{one.failed / one.compared:.0%}, {one.expected / one.compared:.0%}"
        p = "" if one is None or one.p is None else f"{one.p:.3f}"
        rates = f"{failed[row].mean():.0%} of {runs[place]:,} | {failed[~row].mean():.0%}"
        print(f"| {found.names[place]} | {rates} | {like} | {p} |")
    print("\n| after turn | announced | fail with | fail without | like runs | p |")
    print("|--:|---|--:|--:|--:|--:|")
    for a in told.announcements:
        rates = f"{a.failed / a.runs:.0%} of {a.runs:,} | {a.rest_failed / a.rest:.0%}"
        print(f"| {a.landmark} | {a.behaviour} | {rates} | {a.expected / a.runs:.0%} | {a.p:.3f} |")
    if not told.announcements:
        print("| | nothing | | | | |")


def measure_speed(runs: int = 2_000, turns: int = 25) -> None:
    """Print the time that steps take, against the time that JSON alone takes."""
    call = {"id": "a", "function": {"name": "look", "arguments": '{"q": 1}'}}
    chat = [{"role": "user", "content": "a question"}]
    for turn in range(turns):
        chat.append({"role": "assistant", "content": f"thought {turn}", "tool_calls": [call]})
        chat.append({"role": "tool", "tool_call_id": "a", "content": f"result {turn} " * 20})
    texts = [json.dumps(chat)] * runs
    ratios = []
    for _ in range(5):
        start = time.process_time()
        kept = [json.loads(text) for text in texts]
        parsed = time.process_time() - start
        del kept
        start = time.process_time()
        tabulate_steps(enumerate(texts))
        took = time.process_time() - start
        ratios.append(took / parsed)
    ratio = sorted(ratios)[2]
    print(f"\n{runs:,} runs of {3 * turns} steps: {took:.1f} CPU s, {ratio:.1f} x json.loads")


def measure_page(steps: int = 10_000) -> None:
    """Print how long a reader waits for the screen of a run of so many steps."""
    import tempfile

    from bench_reports import visit
    from test_runs_screen import open_runs

    with tempfile.TemporaryDirectory() as place:
        client = visit(open_runs(Path(place), steps // 4))
        times = []
        for _ in range(5):
            start, wall = time.process_time(), time.perf_counter()
            html = client.get("/runs", params={"id": "t0"}).text
            times.append((time.perf_counter() - wall, time.process_time() - start))
    wall, cpu = sorted(times)[2]
    shown = html.count("<details data-item")
    print(f"a page of {shown:,} steps: {wall:.2f} s, {cpu:.2f} CPU s (aim 0.3)")


def main() -> None:
    """Print all of it."""
    measure_page()
    worlds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    shared = Path(sys.argv[2] if len(sys.argv) > 2 else "shared")
    measure_speed()
    if (shared / "real" / "mint").is_dir():
        compare("MINT", read_mint(shared))
        compare("tau-bench, airline", read_tau_bench(shared))
    measure_worlds(worlds)
    measure_scanners(worlds)


if __name__ == "__main__":
    main()
