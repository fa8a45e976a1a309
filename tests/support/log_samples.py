"""Small logs of every reader: the first rows of real ones, or synthetic ones."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import reader_samples

from groundfault import readers

REAL = {
    "inspect": [
        "inspect/mmlu-summary-choices.eval",
        "inspect/eee_data_cyse2_vuln_exploit_challenges.json",
    ],
    "helm": ["helm/mmlu-subject=philosophy,method=multiple_choice_joint,model=openai_gpt2"],
    "promptfoo": ["promptfoo/out.json", "promptfoo/out.jsonl"],
    "lm_eval": ["lm_eval/own_tinygpt2/samples_add_mc_2026-11-21T22-31-09.272605.jsonl"],
    "deepeval": ["deepeval/test_run_sample.json"],
    "swebench": ["swebench_pro/gpt-4o-paper.eval_results.json"],
    "evalplus": ["evalplus/Meta-Llama-3-8B-Instruct_evalperf_results.brief.json"],
    "tau_bench": ["taubench/gpt-4o-airline_first60.json"],
    "mint": ["mint/gpt-4-0613_max5_gsm8k.results.jsonl"],
    "zero_eval": ["zeroeval/crux_gpt-4o-2024-08-06_first400.json"],
    "gsm8k": ["gsm8k_openai/example_model_solutions_first700.jsonl"],
}
# rows that are kept of a list, and of a mapping of many alike
FEW = 3


def make_samples(folder: Path) -> dict[str, list[Path]]:
    """Samples of the formats without a real file."""
    table = folder / "evidence.parquet"
    pl.DataFrame(
        {"example_id": ["a", "b"], "value": [1.0, 0.0], "level": ["x", "y"]}
    ).write_parquet(table)
    samples = {name: [path] for name, path in reader_samples.all_samples(folder).items()}
    exports = [
        reader_samples.write_csv(folder / "runs.csv", reader_samples.phoenix_csv()),
        reader_samples.write_csv(folder / "scores.csv", reader_samples.LANGFUSE),
        reader_samples.write_csv(folder / "labels.csv", reader_samples.LABEL_STUDIO_MIN),
    ]
    for name, path in zip(("phoenix", "langfuse", "label_studio"), exports, strict=True):
        samples[name].append(path)
    return samples | {"table": [table], "every_eval_ever": [reader_samples.every_eval_ever(folder)]}


@pytest.fixture(scope="module", params=readers.known())
def sample(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[Path]]:
    """The name of a reader, and small logs that it reads."""
    name: str = request.param
    folder = tmp_path_factory.mktemp(name)
    if name not in REAL:
        samples = make_samples(folder)
        assert name in samples, (
            f"no sample of the reader {name!r}: add one to tests/support/reader_samples.py"
        )
        return name, samples[name]
    shared: Path = request.getfixturevalue("shared")
    return name, [small(shared / "real/native_logs" / place, folder) for place in REAL[name]]


def small(path: Path, folder: Path) -> Path:
    """A copy of a log with its first few rows."""
    copy = folder / path.name
    if path.is_dir():
        shutil.copytree(path, copy)
        for part in copy.iterdir():
            part.chmod(0o644)
            part.write_text(json.dumps(shorten(json.loads(part.read_text()))))
    elif path.suffix == ".jsonl":
        copy.write_text("\n".join(path.read_text().splitlines()[:FEW]) + "\n")
    elif path.suffix == ".json":
        copy.write_text(json.dumps(shorten(json.loads(path.read_text()))))
    else:
        shutil.copyfile(path, copy)
    return copy


def shorten(content: Any) -> Any:
    if isinstance(content, list):
        return [shorten(each) for each in content[:FEW]]
    if isinstance(content, dict):
        items = list(content.items())[: FEW if len(content) > 60 else None]
        return {name: shorten(each) for name, each in items}
    return content
