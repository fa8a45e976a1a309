"""Server time and memory of the workbench on a table of a million rows.

Run it by hand: ``python benchmarks/workbench.py [rows]``. The judge holds nothing out, so that all
rows may be shown. It prints the 95th percentile of jumps, filters and rules in milliseconds, the
largest response in kB and the memory of the server in MB, beside what they may be, and exits with
status 1 if one is more."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from urllib.parse import urlencode

import httpx
import numpy as np
import polars as pl

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.workbench.auth import ENTRY, SECRET

LIMITS = {"jump": 100.0, "filter": 500.0, "rule": 1000.0}
# the masks of a rule take a bit a row each, before they are compressed
LARGEST, MEMORY = 700.0, 450.0
REPEATS = 20


def make_table(rows: int) -> pl.DataFrame:
    """Prompts of eight words, columns to filter by, and failures that two of them explain."""
    rng = np.random.default_rng(0)
    lexicon = np.array(
        "why not what how many apples are there if one takes three from basket of green and red "
        "fruit sum list count word letter number".split()
    )
    words = {f"w{i}": lexicon[rng.integers(0, len(lexicon), rows)] for i in range(8)}
    lang, n_words = rng.choice(["de", "en", "fr"], rows), rng.integers(5, 40, rows)
    hard = (lang == "de") & (n_words > 25)
    columns = {
        "id": [f"e{i:07}" for i in range(rows)],
        "lang": lang,
        "n_words": n_words,
        "score": rng.random(rows).round(4),
        "task": rng.choice(["add", "sort", "count", "spell"], rows),
        "prompt": pl.DataFrame(words).select(pl.concat_str(pl.all(), separator=" ")).to_series(),
        "answer": rng.integers(0, 100, rows).astype(str),
        "target": rng.integers(0, 100, rows).astype(str),
        "error": (rng.random(rows) < np.where(hard, 0.6, 0.1)).astype(int),
    }
    return pl.DataFrame(columns)


def write_report(place: Path, rows: int) -> None:
    make_table(rows).write_parquet(place / "answers.parquet")
    evidence = Evidence.from_table(place / "answers.parquet", id="id", outcome="error")
    candidates = [Candidate("german", "lang = 'de'"), Candidate("long", "n_words > 25")]
    plan, ledger = Plan(judge="holm"), place / "ledger.db"
    groundfault.audit(evidence, plan, candidates, ledger=ledger, modes=False).write(
        place / "report"
    )


def list_requests(rows: int) -> dict[str, list[tuple[str, str]]]:
    """Rules and filters to count, and what the page then asks for; no two alike."""
    rng = np.random.default_rng(1)
    jumps = [
        ("", urlencode({"row": rng.integers(0, rows, 50).tolist()}, True)) for _ in range(REPEATS)
    ]
    filters = [
        (urlencode({"where": f"n_words = {5 + i} AND task <> 'add'"}), urlencode({"words": text}))
        for i, text in enumerate(["", "apples are", "", "three from"] * 5)
    ]
    texts = ["why", "apples.*red", "\\bsum\\b", "(one|two)", "^what"]
    rules = [
        (urlencode({"rule": f"n_words > {10 + i} AND prompt ~ '{text}' AND lang = 'de'"}), "")
        for i, text in enumerate(texts * 4)
    ]
    return {"jump": jumps, "filter": filters, "rule": rules}


PATHS = {"jump": "values?column=0&column=1&", "filter": "mask?", "rule": "rule?"}
FORM = {"content-type": "application/x-www-form-urlencoded"}


def measure(address: str, pid: int, rows: int) -> dict[str, float]:
    """Milliseconds at the 95th percentile of each kind, kB and MB."""
    results, largest = {}, 0
    home, _, token = address.partition("/#token=")
    with httpx.Client(timeout=300, follow_redirects=True, headers={"origin": home}) as client:
        client.headers[SECRET] = client.post(f"{home}{ENTRY}", headers={SECRET: token}).text
        begin = time.perf_counter()
        for path in ("examples", "data/report", "data/block/losses", "data/rule"):
            client.get(f"{home}/{path}").raise_for_status()
        results["first rows, s"] = time.perf_counter() - begin
        for kind, requests in list_requests(rows).items():
            times = []
            for counted, asked in requests:
                begin = time.perf_counter()
                if counted:
                    page = client.post(f"{home}/examples", content=counted, headers=FORM)
                    page.raise_for_status()
                answer = client.get(f"{home}/data/{PATHS[kind]}{counted}&{asked}")
                times.append(1000 * (time.perf_counter() - begin))
                answer.raise_for_status()
                largest = max(largest, len(answer.content))
            results[kind] = float(np.quantile(times, 0.95))
    status = Path(f"/proc/{pid}/status").read_text()
    peak = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return results | {
        "largest response, kB": largest / 1000,
        "memory, MB": int(peak.split()[1]) / 1e3,
    }


def main() -> int:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_report(place, rows)
        command = [sys.executable, "-m", "groundfault", "open", "report", "--no-browser"]
        with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                results = measure(server.stdout.readline().strip(), server.pid, rows)
            finally:
                server.terminate()
    limits = LIMITS | {"largest response, kB": LARGEST, "memory, MB": MEMORY}
    print(json.dumps({name: round(value, 1) for name, value in results.items()}, indent=1))
    over = [name for name, limit in limits.items() if results[name] > limit]
    print("over the limit: " + ", ".join(over) if over else "all within their limits")
    return int(bool(over))


if __name__ == "__main__":
    sys.exit(main())
