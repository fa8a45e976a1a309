"""Run the six audits of the gallery, and record their first screens in its page.

    python scripts/gallery.py ../shared/data/real [docs/explanation/gallery.md]

The page has a mark ``<!-- audit: NAME -->`` for each; all up to ``<!-- end -->`` is written anew.
Without a page the screens are printed. Tables are made in a temporary folder, and none is kept.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import sys
import tempfile
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

from commands import run_program

ZEROEVAL = "--id example_id --outcome correct --positive-is-good --ignore answer --ignore response"
AUDITS = {
    "code": f"audit code.parquet {ZEROEVAL} --ignore answer_parsed --ignore response_chars",
    "arithmetic": f"audit sums.parquet {ZEROEVAL} --ignore answer_parsed --ignore response_chars",
    "models": "audit models.parquet --id example_id --model-column model --outcome correct "
    "--positive-is-good",
    "release": "compare old.parquet new.parquet --id example_id --outcome failed",
    "agent": "audit runs.parquet --id example_id --model-column model --outcome correct "
    "--positive-is-good",
    "nothing": "compare first.parquet second.parquet --id example_id --outcome failed",
}
MODELS = ("claude-3-haiku-20240307", "gpt-4o-mini-2024-07-18", "gemma-2-9b-it")


def main() -> int:
    """Make the tables, run the commands, and fill the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="the folder `real` of the shared data")
    parser.add_argument("page", type=Path, nargs="?", help="the page to fill")
    parser.add_argument("--only", help="one audit")
    options = parser.parse_args()
    data, page = options.data.resolve(), options.page and options.page.resolve()
    os.environ |= {"COLUMNS": "100", "NO_COLOR": "1", "GROUNDFAULT_LEDGER": "off"}
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        make_tables(data)
        screens = {
            name: show(words) for name, words in AUDITS.items() if options.only in (None, name)
        }
    if page is None:
        print("\n".join(screens.values()))
        return 0
    text = page.read_text(encoding="utf-8")
    for name, screen in screens.items():
        mark = rf"(<!-- audit: {name} -->\n).*?(<!-- end -->)"
        text, found = re.subn(
            mark, lambda part, new=screen: part[1] + new + part[2], text, flags=re.DOTALL
        )
        assert found == 1, f"{page} has no mark of {name}"
    page.write_text(text, encoding="utf-8")
    return 0


def make_tables(data: Path) -> None:
    """Write the six tables into the current folder."""
    single = data / "single_model_audit"
    for name, new in (
        ("crux_Meta-Llama-3-8B-Instruct", "code"),
        ("gsm_Qwen2-7B-Instruct", "sums"),
    ):
        table = pl.read_parquet(single / f"{name}.parquet")
        # columns of one value, and those of other benchmarks, say nothing here
        table.drop("benchmark", "model", "output_chars", strict=False).write_parquet(
            f"{new}.parquet"
        )
    examples = pl.read_parquet(data / "zeroeval" / "examples.parquet")
    answers = pl.read_parquet(data / "zeroeval" / "outcomes.parquet").filter(
        pl.col("model").is_in(MODELS), benchmark="crux"
    )
    examples = examples.filter(benchmark="crux").drop("benchmark", "output_chars")
    examples = examples[[c.name for c in examples if c.n_unique() > 1]]
    answers.select("example_id", "model", "correct").join(examples, on="example_id").write_parquet(
        "models.parquet"
    )
    prompts = pl.read_parquet(data / "smollm2" / "prompts.parquet")
    wrong = pl.read_parquet(data / "smollm2" / "outcomes.parquet")
    worlds = {
        "old": "greedy",
        "new": "no_context_sports",
        "first": "sample1",
        "second": "sample2",
    }
    for new, column in worlds.items():
        outcome = wrong.select("example_id", failed=column).drop_nulls()
        prompts.join(outcome, on="example_id").write_parquet(f"{new}.parquet")
    runs = pl.read_parquet(data / "mint" / "traces_max5.parquet")
    tasks = pl.read_parquet(data / "mint" / "examples.parquet").drop("reference", "metadata")
    runs.join(tasks, on="example_id").write_parquet("runs.parquet")


def show(words: str) -> str:
    """Return a command and its first screen as blocks of Markdown."""
    status, output, errors = run_program(*words.split())
    assert status == 0, errors
    lines = [line.rstrip() for line in output.strip().splitlines()]
    command = re.sub(r" (--(?!positive)\S+)", r" \1", f"groundfault {words}")
    if len(command) > 90:
        cut = command.rindex(" --", 0, 90)
        command = f"{command[:cut]} \\\n    {command[cut + 1 :]}"
    return f"```sh\n{command}\n```\n\n```text\n" + "\n".join(lines) + "\n```\n"


if __name__ == "__main__":
    sys.exit(main())
