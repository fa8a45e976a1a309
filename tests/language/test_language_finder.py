"""The finder language and ``explain``: candidates that apply anywhere, a planted failure found,
null worlds not.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from click.testing import CliRunner

import groundfault
from groundfault.core.candidate import Candidate, FittedColumn, Library
from groundfault.core.evidence import Evidence
from groundfault.core.finding import Verdict
from groundfault.core.plan import Plan
from groundfault.errors import InputError, MissingExtraError, PlanError, RuleError

pytest.importorskip("spacy", reason="needs the extra: pip install 'groundfault-lab[language]'")

from groundfault.cli.audit import audit as audit_command
from groundfault_lab.commands.explain import explain as explain_command
from groundfault_lab.language import load_pipeline, select_features
from groundfault_lab.language.explain import explain
from groundfault_lab.language.finder import Language, LanguageColumn
from groundfault_lab.testing import check_finder


def _survives_json() -> bool:
    column = LanguageColumn.of("question", "negation", "blank")
    try:
        return FittedColumn.from_dict(column.to_dict()) == column
    except RuleError:
        return False


needs_parser = pytest.mark.skipif(
    not _survives_json(), reason="FittedColumn.from_dict does not know language columns"
)
PLANTED = "question has a negation"


@cache
def find_negated(texts: tuple[str, ...]) -> Any:
    """Whether each text has a negation; read once for all tests."""
    return load_pipeline("blank").measure(list(texts), select_features(["negation"]))[:, 0] > 0


@pytest.fixture(scope="module")
def questions(shared: Path) -> list[str]:
    """Real questions, one in six with a negation."""
    texts = pl.read_parquet(shared / "real" / "gsm8k_openai" / "examples.parquet")[
        "question"
    ].to_list()
    negated = find_negated(tuple(texts))
    return [t for t, n in zip(texts, negated, strict=True) if n] + [
        t for t, n in zip(texts, negated, strict=True) if not n
    ][: 5 * int(negated.sum())]


def evidence(texts: list[str], rates: Any, seed: int) -> Evidence:
    wrong = np.random.default_rng(seed).random(len(texts)) < rates
    table = pl.DataFrame(
        {
            "id": [f"q{i:04d}" for i in range(len(texts))],
            "question": texts,
            "error": wrong.astype(int),
        }
    )
    return Evidence.from_table(
        table.with_columns(failed=pl.col("error") == 1),
        id="id",
        outcome="error",
        post_outcome=["failed"],
    )


def planted(texts: list[str], seed: int) -> Evidence:
    return evidence(texts, np.where(find_negated(tuple(texts)), 0.75, 0.15), seed)


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2))])
def test_a_planted_failure_is_found_and_confirmed(questions: list[str], seed: int) -> None:
    finder, data = Language(pipeline="blank"), planted(questions, seed)
    assert groundfault.audit(data, finders=[finder], modes=False).weaknesses[0].name == PLANTED
    report = groundfault.audit(data, Plan(judge="janus"), finders=[finder], modes=False)
    findings = {f.name: f for f in report.findings}
    assert findings[PLANTED].verdict is Verdict.CONFIRMED
    assert findings[PLANTED].representative is None
    others = [f for f in report.findings if f.verdict is Verdict.CONFIRMED and f.name != PLANTED]
    assert all(f.representative == PLANTED for f in others)


@pytest.mark.slow
def test_a_planted_failure_is_confirmed_in_a_hundred_seeds(questions: list[str]) -> None:
    """Of 100: named first in 95, and its proxies all under it in 95."""
    finder = Language(pipeline="blank")
    plan = Plan(judge="janus")
    reports = [
        groundfault.audit(planted(questions, seed), plan, finders=[finder], modes=False)
        for seed in range(100)
    ]
    leads = [{f.name: f.representative for f in report.confirmed} for report in reports]
    assert sum(PLANTED in reasons and reasons[PLANTED] is None for reasons in leads) >= 95
    assert (
        sum(
            all(reasons[name] == PLANTED for name in reasons if name != PLANTED)
            for reasons in leads
        )
        >= 95
    )


@pytest.mark.slow
def test_a_planted_failure_is_explained_in_a_hundred_seeds(questions: list[str]) -> None:
    errors = Candidate("errors", "failed", missing="drop")
    explanations = [
        explain(planted(questions, s), [errors], "question", pipeline="blank", permutations=99)
        for s in range(100)
    ]
    assert (
        sum(
            [m.feature for m in one.slices[0].select_marks()][:1] == ["negation"]
            for one in explanations
        )
        >= 95
    )


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in (1, 2))])
def test_a_planted_failure_is_explained(questions: list[str], seed: int) -> None:
    errors = Candidate("errors", "failed", missing="drop")
    explanation = explain(
        planted(questions, seed), [errors], "question", pipeline="blank", permutations=499
    )
    best, *_ = explanation.slices[0].select_marks()
    assert best.feature == "negation"
    assert best.inside > 2 * best.outside
    assert best.p == best.adjusted == 1 / 500
    assert explanation.slices[0].wrong == explanation.slices[0].size == explanation.wrong
    assert best.homogeneity == pytest.approx(best.inside)
    assert best.completeness == 1


def test_nothing_is_confirmed_where_nothing_is_so(questions: list[str]) -> None:
    seeds = 10
    finder = Language(pipeline="blank")
    reports = [
        groundfault.audit(evidence(questions[30:230], 0.3, seed), finders=[finder], modes=False)
        for seed in range(seeds)
    ]
    hits = sum(any(f.verdict is Verdict.CONFIRMED for f in report.findings) for report in reports)
    assert hits <= 0.1 * seeds + 3 * np.sqrt(0.09 * seeds)


@pytest.mark.slow
@pytest.mark.parametrize(
    "judge", ["janus", "split-holm", "max-t", "holm", "bh", "by", "multisplit-e"]
)
def test_no_judge_confirms_a_feature_beyond_its_level(questions: list[str], judge: str) -> None:
    """In null worlds of real questions, whose features go together as they do, all but few reports
    are empty.
    """
    seeds, level = 40, 0.1
    library = list(Language(pipeline="blank").propose(evidence(questions, 0.3, 0)))
    assert len(library) > 10
    plan = Plan(judge=judge, permutations=199)
    reports = [
        groundfault.audit(evidence(questions, 0.3, s), plan, candidates=library)
        for s in range(100, 100 + seeds)
    ]
    hits = sum(bool(report.confirmed) for report in reports)
    assert hits <= level * seeds + 3 * np.sqrt(level * (1 - level) * seeds)


@needs_parser
def test_a_frozen_library_is_judged_on_texts_that_have_drifted(questions: list[str]) -> None:
    """Longer, of another language, of code: fewer features are there, and what is not is
    untestable.
    """
    library = Library.from_json(
        Library.of(Language(pipeline="blank").propose(planted(questions, 0))).to_json()
    )
    odd = ["Почему нет?", "return x != 1", "😀" * 9, "", "Wer nicht wagt, der nicht gewinnt. " * 40]
    texts = [f"{odd[i % 5]} {i}" for i in range(200)]
    report = groundfault.audit(evidence(texts, 0.3, 0), candidates=list(library))
    findings = {f.name: f for f in report.findings}
    assert len(findings) == len(library)
    assert findings[PLANTED].verdict is Verdict.UNTESTABLE
    assert findings[PLANTED].reason.startswith("min_on")
    assert any(f.verdict is not Verdict.UNTESTABLE for f in report.findings)


@needs_parser
def test_the_finder_keeps_the_rules_of_finders(questions: list[str]) -> None:
    library = check_finder(Language(pipeline="blank"), planted(questions[:150], 0))
    assert PLANTED in [c.name for c in library]


def test_what_the_pipeline_cannot_tell_is_said(questions: list[str], tmp_path: Path) -> None:
    table = tmp_path / "q.csv"
    pl.DataFrame({"question": questions[:60], "error": [1, 0] * 30}).write_csv(table)
    arguments = [str(table), "--outcome", "error", "--no-ledger", "--finders", "language:blank"]
    output = CliRunner().invoke(audit_command, arguments, catch_exceptions=False).stderr
    assert (
        "note: people, organisations, locations, products not available: needs a pipeline that "
        "names" in output
    )
    assert output.count("toxicity not available") == 1
    with pytest.warns(
        UserWarning, match="^voice not available: needs a pipeline with a tagger and a dependency"
    ):
        list(Language(sets=("negation", "voice"), pipeline="blank").propose(planted(questions, 0)))


@needs_parser
def test_a_frozen_library_applies_to_other_texts(questions: list[str]) -> None:
    candidates = list(
        Language(pipeline="blank", sets=("negation", "length")).propose(planted(questions, 0))
    )
    library = Library.from_json(Library.of(candidates).to_json())
    assert list(library) == candidates
    column = next(c.fitted_column for c in library if c.name == PLANTED)
    assert column is not None
    frame = pl.DataFrame({"question": ["Why not?", None, "", "So?"]})
    assert column.apply(frame).to_list() == [1.0, None, 0.0, 0.0]


def test_the_finder_with_a_parser(shared: Path) -> None:
    texts = [
        "The book that I read was sold.",
        "Kim sells books.",
        "Birds sing.",
        "They had left before noon.",
    ] * 12
    finder = Language(pipeline=str(shared / "spacy_ud_ewt"), columns=("question",))
    names = [c.name for c in finder.propose(evidence(texts, 0.3, 0))]
    assert "question has a verb in the perfect" in names  # one text in four
    assert any(name.startswith("question has a dependency longer than 0.") for name in names)
    assert not any(
        "passive" in name for name in names
    )  # it marks the same texts as an earlier candidate


def test_what_the_finder_refuses(questions: list[str]) -> None:
    data = planted(questions[:40], 0)
    with pytest.raises(PlanError, match="no linguistic feature or set 'mood'"):
        list(Language(pipeline="blank", sets=("mood",)).propose(data))
    with pytest.raises(MissingExtraError, match="spacy download en_no_such"):
        list(Language(pipeline="en_no_such").propose(data))
    with pytest.raises(InputError, match="no attribute is named"):
        list(Language(pipeline="blank", columns=("answer",)).propose(data))
    numbers = Evidence.from_table(
        pl.DataFrame({"n": [1.5, 2.5] * 9, "error": [0, 1] * 9}), outcome="error"
    )
    assert list(Language(pipeline="en_no_such").propose(numbers)) == []


def test_what_is_no_language_column_is_refused() -> None:
    with pytest.raises(RuleError, match="no linguistic feature of a text alone"):
        LanguageColumn.of("question", "word_frequency", "blank")
    with pytest.raises(RuleError, match="of one column of texts, not 2"):
        LanguageColumn("language", "language", ("a", "b"), {}, "negation", "blank")
    column = LanguageColumn.of("question", "voice", "blank")
    with pytest.raises(InputError, match="voice is not available: needs a pipeline"):
        column.apply(pl.DataFrame({"question": ["So?"]}))
    with pytest.raises(InputError, match="holds Int64, not text"):
        LanguageColumn.of("question", "negation", "blank").apply(pl.DataFrame({"question": [1]}))


# ------------------------------------------------------------------------------------------ explain


def test_slices_too_small_are_passed_over_and_several_models_refused(questions: list[str]) -> None:
    data = planted(questions, 0)
    few = Candidate("few", "id <= 'q0003'", missing="drop")
    assert explain(data, [few], "question", pipeline="blank", permutations=99).slices == ()
    with pytest.raises(InputError, match="no attribute is named"):
        explain(data, [few], "answer", pipeline="blank")
    frame = data.frame.select("id", "question", "error")
    two = pl.concat([frame.with_columns(model=pl.lit(m)) for m in "ab"])
    with pytest.raises(InputError, match="there are 2 models"):
        explain(
            Evidence.from_table(two, id="id", outcome="error", model="model"),
            [few],
            "question",
            pipeline="blank",
        )


def test_no_feature_of_a_slice_of_chance_is_called_a_mark(questions: list[str]) -> None:
    data = planted(questions, 0)
    long = Candidate("long", "LENGTH(question) > 250")
    alone = explain(data, [long], "question", pipeline="blank", permutations=99)
    assert alone.slices[0].p is None
    assert "was not computed" in alone.caveat
    assert alone.select_marks()
    judged = explain(
        data,
        [long],
        "question",
        pipeline="blank",
        permutations=99,
        chances={"long": 0.4},
        searches=19,
    )
    assert judged.slices[0].p == 0.4
    assert min(m.adjusted for m in judged.slices[0].marks) == 0.4
    assert judged.select_marks() == ()
    features = [[m.feature for m in e.select_marks(corrected=False)] for e in (alone, judged)]
    assert features[0] == features[1]
    content = judged.to_dict()
    assert next(iter(content)) == "caveat"
    assert content["caveat"].startswith("this is what chance gives: 7 of 19 searches")


def test_the_command_says_first_what_chance_gives(questions: list[str], tmp_path: Path) -> None:
    """On shuffled outcomes no small p-value stands without its slice's own."""
    frame = evidence(questions, 0.3, 1).frame.select("id", "question", "error")
    long = pl.col("question").str.len_chars() > 300
    frame.with_columns(long=long).write_parquet(tmp_path / "r.parquet")
    words = [str(tmp_path / "r.parquet"), *"--id id --outcome error --text question".split()]
    words += "--pipeline blank --permutations 199 --finder declared --searches 19".split()
    output = CliRunner().invoke(explain_command, words, catch_exceptions=False).output
    assert output.startswith("This is what chance gives: ")
    assert "of them errors (p = " in output
    assert ": what chance gives)" in output
    assert "before correction, which chance gives too:" in output
    assert "corrected: no feature marks a slice" in output


def test_the_command(questions: list[str], tmp_path: Path) -> None:
    data = planted(questions, 0)
    path = tmp_path / "results.parquet"
    frame = data.frame.select("id", "question", "error")
    frame.with_columns(long=pl.col("question").str.len_chars() > 300).write_parquet(path)
    args = [path, "--id", "id", "--outcome", "error", "--text", "question", "--pipeline", "blank"]
    args += ["--permutations", "199", "--json", tmp_path / "said.json"]
    first = CliRunner().invoke(
        explain_command, [str(a) for a in [*args, "--finder", "declared"]], catch_exceptions=False
    )
    assert first.stdout.startswith("This is what chance gives: ")
    assert "discovery examples" in first.output
    assert "words: " in first.output
    assert "as in the paper: " in first.output
    assert "Nothing is confirmed" in first.output
    assert "To judge features: groundfault audit --finders language:blank." in first.output
    content = json.loads((tmp_path / "said.json").read_text())
    assert content["slices"][0]["marks"][0]["feature"] == "length"
    assert content["lacking"]["voice"].startswith("not available: needs")
    few = [*args, "--finder", "edisa", "--permutations", "99"]
    second = CliRunner().invoke(explain_command, [str(a) for a in few])
    assert second.exit_code == 0
    assert second.stdout.startswith("0 slices") == (
        "another finder (--finder sliceline)" in second.stdout
    )
    with pytest.raises(PlanError, match="not of the form NAME=VALUE"):
        CliRunner().invoke(
            explain_command, [str(a) for a in [*args, "--set", "pca"]], catch_exceptions=False
        )
