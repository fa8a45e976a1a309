"""``groundfault lab improve``: a table in, a ranked list out, with its worth beside confidence."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner, Result

from groundfault.cli.main import cli
from groundfault.errors import InputError, PlanError

SMALL = ("--set", "n_slices=6", "--set", "embedding_weight=1")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str]]:
    """240 predictions, the last 80 without a label: wrong, and sure of it, in a cluster of their
    own; with the names of those without a label that are wrong.
    """
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(240, 2)), rng.integers(0, 2, 240)
    wrong = rng.random(240) < 0.2
    z[wrong, 0] += 5
    p = np.where((y == 1) ^ wrong, 0.9, 0.1) + rng.uniform(-0.05, 0.05, 240)
    labels = [["no", "yes"][c] if i < 160 else None for i, c in enumerate(y)]
    frame = pl.DataFrame(
        {
            "id": [f"q{i}" for i in range(240)],
            "label": labels,
            "question": [f"topic{'ab'[int(w)]} number {i % 7} asks" for i, w in enumerate(wrong)],
            "embedding_0": z[:, 0],
            "embedding_1": z[:, 1],
            "probability_no": 1 - p,
            "probability_yes": p,
        }
    )
    path = tmp_path_factory.mktemp("improve") / "predictions.csv"
    frame.write_csv(path)
    return path, {f"q{i}" for i in np.flatnonzero(wrong) if i >= 160}


def run(path: Path, *words: str) -> Result:
    arguments = ["lab", "improve", str(path), "--label", "label", "--id", "id", *SMALL, *words]
    return CliRunner().invoke(cli, arguments, catch_exceptions=False)


@pytest.mark.parametrize("act", ["leave-out", "relabel", "label-next"])
def test_the_list_names_the_examples_that_are_wrong(
    table: tuple[Path, set[str]], tmp_path: Path, act: str
) -> None:
    path, wrong = table
    result = run(path, "--act", act, "--json", "-", "--out", str(tmp_path / "list.csv"))
    content = json.loads(result.output)
    names = [row["id"] for row in content["rows"]]
    assert (content["labelled"], content["fresh"], content["left_out"]) == (160, 80, 0)
    first = names[: len(wrong)]
    assert len(set(first) & wrong) >= 0.8 * len(wrong)
    assert pl.read_csv(tmp_path / "list.csv")["id"].to_list() == names
    if act == "label-next":
        assert len(names) == 80
        assert content["check"] is None
    else:
        assert len(names) < 80
        # its confidence is the same everywhere, and says nothing of errors
        assert content["check"]["p_against_confidence"] < 0.01
        assert content["check"]["accuracy_after"] > content["check"]["accuracy_before"] + 0.1
    if act == "relabel":
        assert all(row["suggested"] != row["predicted"] for row in content["rows"])


def test_fusion_ranks_too(table: tuple[Path, set[str]]) -> None:
    """A rule that proposes no slices to an audit can be named here, and set."""
    arguments = ["lab", "improve", str(table[0]), "--label", "label", "--id", "id", "--json", "-"]
    fused = ["--finder", "fusion", "--set", "n_slices=6", "--set", "count=f1"]
    result = CliRunner().invoke(cli, [*arguments, *fused], catch_exceptions=False)
    names = {row["id"] for row in json.loads(result.output)["rows"]}
    assert len(names & table[1]) >= 0.8 * len(table[1])
    with pytest.raises(PlanError, match="it has n_slices, count, random_state"):
        CliRunner().invoke(cli, [*arguments, *fused[:2], "--set", "k=3"], catch_exceptions=False)


def test_the_worth_of_the_list_stands_before_it(table: tuple[Path, set[str]]) -> None:
    result = run(table[0], "-k", "3")
    assert result.output.index("measured on the other half") < result.output.index("suspicion")
    assert result.output.count("\n   ") == 3


def test_texts_are_embedded_where_the_table_has_no_embedding(
    table: tuple[Path, set[str]], tmp_path: Path
) -> None:
    path, wrong = table
    plain = tmp_path / "texts.parquet"
    pl.read_csv(path).drop("embedding_0", "embedding_1").write_parquet(plain)
    with pytest.raises(InputError, match=r"matches, 'embedding.*texts to embed \(--text\)"):
        run(plain)
    content = json.loads(run(plain, "--text", "question", "--json", "-").output)
    assert {row["id"] for row in content["rows"]} == wrong


def test_a_list_no_better_than_chance_is_said_to_be_none(
    table: tuple[Path, set[str]], tmp_path: Path
) -> None:
    frame = pl.read_csv(table[0])
    shuffled = tmp_path / "noise.parquet"
    order = np.random.default_rng(1).permutation(frame.height)
    frame.with_columns(frame["embedding_0"].gather(order)).write_parquet(shuffled)
    worth = json.loads(run(shuffled, "--json", "-").output)["worth"]
    assert worth.endswith("Nothing here shows that the slices beat the model's own confidence.")


def test_what_cannot_be_ranked_is_an_error(table: tuple[Path, set[str]], tmp_path: Path) -> None:
    frame = pl.read_csv(table[0])
    for name, part, words, message in (
        ("few", frame[100:], (), "60 examples have a label"),
        ("names", frame, ("--text", "prompt"), "no column 'prompt'"),
        ("chances", frame, ("--probability", "p_*"), r"each class \(--probability\)"),
        ("class", frame.with_columns(pl.lit("maybe").alias("label")), (), "none of the classes"),
    ):
        part.write_parquet(tmp_path / f"{name}.parquet")
        with pytest.raises(InputError, match=message):
            run(tmp_path / f"{name}.parquet", *words)
    with pytest.raises(PlanError, match="cannot be applied to examples without a label"):
        CliRunner().invoke(
            cli,
            ["lab", "improve", str(table[0]), "--label", "label", "--finder", "sliceline"],
            catch_exceptions=False,
        )
    for setting, message in (
        ("n_slices=abc", r"cannot have n_slices='abc': Expected `int`"),
        ("random_state=1.5", r"cannot have random_state=1.5: Expected `int`"),
        ("slices=3", "has no setting 'slices'"),
    ):
        with pytest.raises(PlanError, match=message):
            run(table[0], "--set", setting)


def test_without_fresh_examples_only_the_check_is_shown(
    table: tuple[Path, set[str]], tmp_path: Path
) -> None:
    frame = pl.read_csv(table[0]).with_columns(
        embedding_0=pl.when(pl.col("id") == "q3").then(None).otherwise("embedding_0")
    )
    frame[:160].write_parquet(tmp_path / "labelled.parquet")
    output = " ".join(run(tmp_path / "labelled.parquet").output.split())
    assert "half of the 159 labelled examples" in output
    assert "Every example has a label in 'label', so there is none to rank. 1 row" in output
