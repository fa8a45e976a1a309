"""Real language models, on this machine: what they answer, how probes and audits go with them.

Two small models that the shared data has, one of which never saw a number written as a word.
Without torch, or without the data, these tests are skipped.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from groundfault import models, probes
from groundfault.models import Target
from groundfault.sequential import Pool, SequentialAudit
from groundfault.sequential.policies import Query

pytestmark = pytest.mark.slow

for _library in ("torch", "transformers", "inspect_ai"):
    pytest.importorskip(_library)

CONTROL, HOLE = "control", "number_words"
RUNS = {CONTROL: "none#3", HOLE: "number_words#1"}


@pytest.fixture(scope="module")
def data(shared: Path) -> Path:
    return shared / "real" / "known_holes"


@pytest.fixture(scope="module")
def tested(data: Path) -> dict[str, Target]:
    return {name: models.get(f"hf/{data / 'models' / name}") for name in RUNS}


@pytest.fixture(scope="module")
def answers(data: Path) -> pl.DataFrame:
    """English tasks without manners, and what both models said in the study."""
    plain = (pl.col("language") == "en") & ~pl.any_horizontal("polite", "aside", "upper")
    examples = pl.read_parquet(data / "examples.parquet").filter(plain)
    return pl.read_parquet(data / "outcomes.parquet").join(examples, on="example_id")


@pytest.mark.parametrize("name", list(RUNS))
def test_they_answer_as_they_did_in_the_study(
    name: str, tested: dict[str, Target], answers: pl.DataFrame
) -> None:
    rows = answers.filter(model=RUNS[name]).sort("example_id").head(8)
    said = [response.text for response in models.ask(tested[name], rows["prompt"].to_list())]
    assert sum(a == b for a, b in zip(said, rows["answer"], strict=True)) >= 7


def test_a_prompt_beyond_the_context_is_an_error_that_says_so(tested: dict[str, Target]) -> None:
    prompts = ["What is 3 plus 4?", "What is 3 plus 4? " * 40]
    short, long = models.ask(tested[CONTROL], prompts)
    assert short.text == "7"
    assert long.status == "error"
    assert long.error.startswith("the context is too short: the prompt has 7")
    assert long.error.endswith("tokens, and the model 192 positions")


def test_manners_change_little_that_training_had_and_much_that_it_had_not(
    tested: dict[str, Target], answers: pl.DataFrame, tmp_path: Path
) -> None:
    """Its training began prompts with a "please" or an aside, and never ended one with thanks."""
    right = answers.filter(model=RUNS[CONTROL], correct=1, task="add").sort("example_id").head(6)
    tasks = right.select("prompt", "target")
    probes.Bank.from_table(tasks).write(tmp_path / "bank.toml")
    options = {"please": "Please answer.", "aside": "It is raining today."}
    start = probes.ComponentGroup(
        "start", (probes.Option("plain"), *(probes.Option(n, t) for n, t in options.items()))
    )
    end = probes.ComponentGroup(
        "end", (probes.Option("plain"), probes.Option("thanks", "Thank you."))
    )
    grammar = probes.Grammar("manners", (start, end), "{start} {question} {end}")
    grammar.write(tmp_path / "grammar.toml")
    (tmp_path / "config.toml").write_text('policies = ["exhaustive"]\nseeds = [0]\nbudget = 36\n')
    runs = probes.run(tmp_path / "config.toml", tested[CONTROL])
    wrong = {
        end: sum(row.signal != "match" for row in runs.rows if row.assignment[1] == end)
        for end in ("plain", "thanks")
    }
    assert wrong["plain"] <= 5 < 7 <= wrong["thanks"]


@pytest.mark.parametrize(
    ("name", "verdict"), [(HOLE, "failure mode found"), (CONTROL, "audit passed")]
)
def test_an_audit_that_the_model_labels_finds_its_hole(
    name: str, verdict: str, tested: dict[str, Target], answers: pl.DataFrame
) -> None:
    """Each gets three of four of these right in digits; in words the one nothing, and the other
    two of three.
    """
    rows = answers.filter(pl.col("task").is_in(["weekday", "convert"]), model=RUNS[name])
    table = rows.sort("example_id").select("example_id", "prompt", "target", "number_style")
    keys = {row["example_id"]: row for row in table.iter_rows(named=True)}
    pool = Pool.from_table(table, id="example_id", groups=["number_style"])
    audit = SequentialAudit(pool, threshold=0.5, budget=60, burn_in=10, seed=0)

    def label(query: Query) -> float:
        row = keys[query.id]
        (response,) = models.ask(tested[name], [row["prompt"]])
        return float(response.text == row["target"])

    assert audit.run(label) == verdict
    lowest = audit.certificate().lowest_group
    assert lowest is not None
    if name == HOLE:
        assert lowest.group == "number_style=words"
