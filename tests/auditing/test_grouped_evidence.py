"""Groups by counts: what an engine makes of them is what memory does."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from lazy_tables import write_parts
from rounding import approximate

import groundfault
from groundfault import Candidate, Evidence, Plan
from groundfault.auditing import grouped_evidence
from groundfault.auditing.grouped_evidence import GroupedEvidence, open_units
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.core.finding import Verdict
from groundfault.engines.polars_files import PolarsCounter
from groundfault.errors import InputError, PlanError

RULES = [
    Candidate("hard", "hard"),
    Candidate("long", "n > 50"),
    Candidate("german, rest dropped", "lang = 'de'", missing="drop"),
    Candidate("german, rest off", "lang = 'de'", missing="off"),
    Candidate("lost", "lang IS NULL"),
    Candidate("late", "turn > 1"),
]
ROLES: dict[str, Any] = {"outcome": "passed", "id": "id", "group": "passage", "status": "status"}
ROLES |= {"positive_is_good": True}
# what counts do not tell, or say otherwise
ELSE = {"hints", "hashes", "manifest", "examples", "units", "grader", "parts"}
ELSE |= {"sample", "averaged", "doubts"}  # of rows, and of hints


def make_rows(sizes: list[int], units: int = 160) -> pl.DataFrame:
    """Groups of some sizes in turn; hard ones fail more, and ``turn`` differs within them."""
    rng = np.random.default_rng(3)
    size = np.resize(sizes, units)
    unit = np.repeat(np.arange(units), size)
    hard = rng.random(units) < 0.4
    rate = rng.beta(1 + 2 * hard, 2)[unit]
    rows = pl.DataFrame(
        {
            "passage": [f"p{u}" for u in unit],
            "hard": hard[unit],
            "n": rng.integers(0, 100, units)[unit],
            "lang": [("de", "en", None)[i] for i in rng.integers(0, 3, units)[unit]],
            "part": np.where(rng.random(units) < 0.5, "discovery", "holdout")[unit],
            "turn": np.concatenate([np.arange(s) for s in size]),
            "passed": rng.random(len(unit)) >= rate,
            "status": np.where(np.arange(len(unit)) % 9, "Scored", "refused"),
        }
    )
    return rows.sample(fraction=1, shuffle=True, seed=1).with_row_index("id")


# the rows of a group pass or fail together: means are 0 or 1, and so are no grades
TABLES = {
    "of one size": make_rows([4]).with_columns(status=pl.lit("scored")),
    "of several sizes": make_rows([1, 2, 3, 6]),
    "alike within": make_rows([1, 2, 5]).with_columns(passed=~pl.col("hard") | (pl.col("n") < 30)),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_parts(tmp_path_factory.mktemp("lazy") / "table", TABLES["of several sizes"])


def read_content(report: groundfault.Report) -> dict[str, Any]:
    """What memory and counts both say of findings and modes, without p-values and sentences."""
    content = {k: v for k, v in report.to_dict().items() if k not in ELSE}
    content["candidates"].pop("effective")
    content["mode_search"] = content["mode_search"] and content["mode_search"]["outcomes"]
    for mode in content["modes"]:
        # examples are of groups, not of rows
        mode.pop("sample")
    for finding in content["findings"]:
        # these rest on p-values, which are shares of random draws
        finding |= dict.fromkeys(("sentence", "estimate", "p", "representative"))
    return content


def pop_p_values(content: dict[str, Any]) -> list[float]:
    """Plain ones; adjusted ones are so many times as far from each other."""
    cells = [
        f[part] or {} for f in content["findings"] for part in ("discovery", "holdout", "full")
    ]
    values = [(cell.pop("p_adjusted", None), cell.pop("p", None)) for cell in cells]
    return [p for _, p in values if p is not None]


@pytest.mark.parametrize(
    ("name", "judge", "engine", "modes"),
    [
        ("of one size", "holm", "polars", False),
        ("of several sizes", "holm", "duckdb", False),
        ("alike within", "split-holm", "polars", False),
        pytest.param("of one size", "split-holm", "duckdb", True, marks=pytest.mark.slow),
        pytest.param("of several sizes", "split-holm", "polars", True, marks=pytest.mark.slow),
        pytest.param("alike within", "holm", "duckdb", True, marks=pytest.mark.slow),
    ],
)
def test_groups_are_those_of_memory(
    name: str, judge: str, engine: str, modes: bool, tmp_path: Path
) -> None:
    place = write_parts(tmp_path / "table", TABLES[name])
    columns = ROLES | ({"split": "part"} if judge == "split-holm" else {"ignore": ["part"]})
    plan = Plan(judge=judge, permutations=1999, min_on=4)
    here, there = (
        read_content(groundfault.audit(evidence, plan, RULES, ledger=None, modes=modes))
        for evidence in (
            Evidence.from_table(place, **columns),
            LazyEvidence.scan(place, engine=engine, **columns),
        )
    )
    p, q = pop_p_values(here), pop_p_values(there)
    assert q == pytest.approx(p, abs=0.05)
    # power rests on null worlds, which are random too
    for one in (here, there):
        one.pop("power"), one.pop("conclusion")
    least, other = here.pop("minimum_detectable_lift"), there.pop("minimum_detectable_lift")
    assert other == pytest.approx(least, abs=0.02)
    assert there == approximate(here)
    verdicts = {finding["name"]: finding["verdict"] for finding in there["findings"]}
    assert verdicts["hard"] == "confirmed"
    assert verdicts["late"] == "untestable"
    assert bool(there["modes"]) == modes


def test_as_many_scans_as_memory_asks_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    lazy = LazyEvidence.scan(folder, **ROLES)
    plan = Plan(judge="holm", permutations=199)
    whole = groundfault.audit(lazy, plan, RULES, ledger=None, modes=False, progress=said.append)
    assert any(re.match("making about 160 groups of 480 rows in 1 scan,", line) for line in said)
    monkeypatch.setattr(grouped_evidence, "_PASS", 20_000)
    said.clear()
    parts = groundfault.audit(lazy, plan, RULES, ledger=None, modes=False, progress=said.append)
    assert any(re.match(r"making about 160 groups of 480 rows in [2-9] scans", x) for x in said)
    assert parts.findings == whole.findings
    assert parts.statuses == {**whole.statuses, "refused": 54}
    assert (parts.unit, parts.n, parts.rows) == ("group", 160, 480)


def test_files_are_removed_also_after_an_error(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lazy = LazyEvidence.scan(folder, **ROLES)
    with open_units(lazy) as units:
        assert isinstance(units, GroupedEvidence)
        assert units.varying == ("id", "turn")
        assert list(tmp_path.iterdir())
        taken = units.take("n > 50").frame
        assert taken["turn"].is_null().all()
        assert (
            taken.height
            == TABLES["of several sizes"].filter(pl.col("n") > 50)["passage"].n_unique()
        )
    assert not list(tmp_path.iterdir())
    with pytest.raises(ZeroDivisionError), open_units(lazy):
        assert 1 / len([path for path in tmp_path.iterdir() if path.is_file()])
    assert not list(tmp_path.iterdir())


def test_what_does_not_fit_is_said_beforehand(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lazy = LazyEvidence.scan(folder, **ROLES)
    monkeypatch.setattr(grouped_evidence, "measure_free_memory", lambda: 10_000)
    with pytest.warns(UserWarning, match="GB of memory, and 0.0 GB are free"), open_units(lazy):
        pass
    monkeypatch.setattr(grouped_evidence, "_OWN", 10**15)
    with pytest.raises(InputError, match="name another folder by the variable TMPDIR"):
        open_units(lazy).__enter__()


def test_each_row_its_own_group_is_no_work(folder: Path) -> None:
    lazy = LazyEvidence.scan(folder, **ROLES | {"group": "id"})
    with open_units(lazy) as units:
        assert units is lazy


def test_a_report_of_groups_verifies_and_a_changed_row_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table, plan = TABLES["of several sizes"], Plan(permutations=199)
    write_parts(Path("table"), table)
    lazy = LazyEvidence.scan("table", engine="duckdb", **ROLES)
    finders = ["categories"]
    report = groundfault.audit(
        lazy, plan, RULES[:1], finders=finders, ledger="book.db", modes=False
    )
    assert (report.unit, report.n, report.judge) == ("group", 160, "holm")
    assert "means of groups are graded" in report.judge_reason
    hints = "; ".join(report.hints)
    assert "in no rule, and candidates that read one are untestable: turn;" in hints
    assert "among groups of similar size" in hints
    report.write("report")
    assert groundfault.verify("report", ledger="book.db").reproduces
    # the rows are known again in memory, as they are and in groups
    evidence = Evidence.from_table("table", **ROLES)
    again = groundfault.audit(
        evidence, plan, RULES[:1], ledger="book.db", reopen="again", modes=False
    )
    assert again.ledger is not None
    assert (again.ledger.times, again.ledger.overlapping) == (2, 1)
    changed = table.with_columns(passed=pl.col("passed") ^ (pl.col("id") == 7))
    write_parts(Path("table"), changed)
    assert not groundfault.verify("report", ledger="book.db").reproduces


class NoGroups:
    """An engine that counts, and makes no groups."""

    name = "abacus"
    table = ""

    def __init__(self, counter: PolarsCounter) -> None:
        self.files, self.counts, self.evaluate = counter.files, counter.counts, counter.evaluate
        self.find_schema = counter.find_schema


def test_an_engine_that_makes_no_groups_is_refused(folder: Path) -> None:
    lazy = LazyEvidence.scan(folder, **ROLES)
    assert isinstance(lazy.counter, PolarsCounter)
    odd = LazyEvidence(NoGroups(lazy.counter), lazy.roles)
    with pytest.raises(InputError, match="the engine abacus makes no groups: make one row of each"):
        groundfault.audit(odd, Plan(judge="holm"), RULES, ledger=None)


@pytest.mark.parametrize(
    ("change", "roles", "words"),
    [
        ({"passage": pl.lit(None, pl.String)}, {}, "'passage' is empty in 480 rows"),
        ({"passage": pl.col("n") / 3}, {}, "ids in 'passage' are Float64"),
        ({"id": pl.lit(1)}, {}, "480 rows share their key"),
        ({"part": pl.col("part").reverse()}, {"split": "part"}, "puts a group into both parts"),
        ({"status": pl.lit("gone")}, {}, "status 'gone'"),
        ({"passed": pl.int_range(pl.len()) / 1e3}, {}, "over 101 values"),
        ({}, {"judge": "max-t"}, "means of groups are graded, and max-t counts"),
        ({}, {"judge": "janus"}, "means of groups are graded, and janus counts"),
    ],
)
def test_what_cannot_be_grouped_is_refused(
    tmp_path: Path, change: dict[str, pl.Expr], roles: dict[str, Any], words: str
) -> None:
    place = write_parts(tmp_path / "table", TABLES["of several sizes"].with_columns(**change))
    plan = Plan(judge=roles.get("judge", "split-holm" if roles else "holm"))
    columns = ROLES | {name: column for name, column in roles.items() if name != "judge"}
    with pytest.raises((InputError, PlanError), match=words):
        groundfault.audit(LazyEvidence.scan(place, **columns), plan, RULES, ledger=None)


@pytest.mark.slow
def test_rows_that_fail_together_keep_the_level(tmp_path: Path) -> None:
    """Two hundred null worlds of groups of 1 to 6 rows, correlated within them by one half."""
    rng, confirmed = np.random.default_rng(8), 0
    rules = [Candidate(f"c{j}", f"c{j}") for j in range(10)]
    for _ in range(200):
        size = rng.integers(1, 7, 120)
        unit = np.repeat(np.arange(120), size)
        marks = rng.random((10, 120)) < np.where(size > 3, 0.3, 0.6)
        table = pl.DataFrame(
            {"id": np.arange(len(unit)), "passage": unit}
            | {"error": rng.random(len(unit)) < rng.beta(0.4, 0.6, 120)[unit]}
            | {f"c{j}": row[unit] for j, row in enumerate(marks)}
        )
        table.write_parquet(tmp_path / "world.parquet")
        lazy = LazyEvidence.scan(
            tmp_path / "world.parquet", outcome="error", id="id", group="passage"
        )
        plan = Plan(judge="holm", permutations=999)
        report = groundfault.audit(lazy, plan, rules, ledger=None, modes=False)
        confirmed += any(
            f.verdict in (Verdict.CONFIRMED, Verdict.TOO_SMALL) for f in report.findings
        )
    # 20 are expected at most; that as many as 33 are confirmed has a chance of 0.003
    assert confirmed <= 32
    assert confirmed >= 5
