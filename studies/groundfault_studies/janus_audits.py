"""What the Janus study audits: a reconstruction of the paper's controlled docs, simulations, and
real models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from groundfault import models
from groundfault.auditing.flow import audit
from groundfault.auditing.preparation import prepare
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report import Report
from groundfault.base.long_work import Progress
from groundfault.core.candidate import Library
from groundfault.core.evidence import Evidence
from groundfault.core.plan import AUTO, Plan
from groundfault.core.units import Units
from groundfault.errors import InputError
from groundfault.readers.table import read_table
from groundfault_studies import controlled_docs
from groundfault_studies.controlled_docs import Packet

FINDERS = ("declared", "thresholds", "categories")
MODELS = ("claude-3-haiku-20240307", "gpt-3.5-turbo-0125", "gemma-2-2b-it")
"""The first is the nearest relative of the paper's Claude Haiku 4.5 among the data; the others err
more.
"""

SCRIPTED = "scripted reader"
_ROWS = 40  # of a table, as in the packets of the script
_TOKENS = 64  # of an answer, which is one code
USUAL = Plan(judge="janus")
# support as the paper asks for it on LongBench v2: three on the slice in each part, eight in both
# together
SMALL = Plan(judge="janus", min_on=3, min_off=3, min_on_total=8)
# paper-sized samples of real outcomes with an error rate near the paper's: benchmark, model,
# examples
SAMPLES = (("gsm", "gemma-2-2b-it", 150), ("crux", "claude-3-haiku-20240307", 115))

_ANSWERS = ("answer", "answer_parsed", "response", "response_chars")
_KEYS = (
    "prompt",
    "question",
    "answer",
    "badge",
    "name",
    "division",
    "project",
    "vendor",
    "subsidiary",
    "returned",
)


@dataclass(frozen=True, eq=False)
class JanusAudit:
    """Evidence with a frozen library, judged by several rules.

    Attributes
    ----------
    label : str
    evidence : Evidence
    library : Library
    plan : Plan
        Everything but the judge.
    beside : str
        The audit of the paper that it is a reconstruction or a simulation of; empty for other data.
    """

    label: str
    evidence: Evidence
    library: Library
    plan: Plan = USUAL
    beside: str = ""

    @classmethod
    def of(
        cls,
        label: str,
        evidence: Evidence,
        finders: Sequence[Any] = FINDERS,
        plan: Plan = USUAL,
        beside: str = "",
    ) -> JanusAudit:
        """Freeze the library that finders propose."""
        return cls(label, evidence, prepare(evidence, plan, finders=finders).library, plan, beside)

    @cached_property
    def papers_rule(self) -> Report:
        """Procedure A with the exact floor, and the paper's holdout gate."""
        return self._by("janus-a")

    @cached_property
    def exact_rule(self) -> Report:
        """Judge ``janus``: the same with duplicates counted once, and an exact holdout p-value."""
        return self._by("janus")

    @cached_property
    def default_rule(self) -> Report:
        """The judge of an audit that names none: ``max-t`` on all examples, as the library is
        fixed, or ``split-holm`` where a column says what is held out.
        """
        return self._by(AUTO)

    @cached_property
    def lite(self) -> Report:
        """The paper's ablation, Janus-lite, with the exact floor."""
        return self._by("janus-lite")

    def case(self, judge: str = "janus-a", **settings: Any) -> PreparedAudit:
        """The audit made ready for one judge."""
        return prepare(self.evidence, replace(self.plan, judge=judge, **settings), self.library)

    @cached_property
    def units(self) -> Units:
        """All units, for splits of one's own."""
        case = self.case()
        return Units.of(case.marks, case.losses())

    @property
    def example_count(self) -> int:
        """Examples with an outcome."""
        return self.evidence.status_counts["scored"]

    def _by(self, judge: str) -> Report:
        plan = replace(self.plan, judge=judge)
        return audit(self.evidence, plan, self.library, modes=False, ledger=None)


def reconstruction(folder: Path) -> JanusAudit:
    """Controlled docs with the rates, counts and lifts that the paper prints; packets and split are
    not the paper's.
    """
    label = "Controlled docs, reconstructed"
    return JanusAudit.of(
        label, _golden(folder / "table1_reconstruction.csv"), [_flags()], beside="Controlled docs"
    )


def null_audit(folder: Path) -> JanusAudit:
    """Candidates of LongBench v2's number and size that have nothing to do with the errors."""
    return JanusAudit.of(
        "Simulated null, 115 x 34", _golden(folder / "null_115x34.csv"), [_flags()], SMALL
    )


def scripted_audit(seed: int) -> tuple[JanusAudit, list[Packet], list[str]]:
    """Generated packets, answered by a script that stops early on long chains; and what each answer
    returned.
    """
    packets = controlled_docs.generate(seed=seed)
    answers = grade_answers(packets, np.random.default_rng([seed, 1]))
    wrong = [word != "correct" for word in answers]
    frame = controlled_docs.to_frame(packets).with_columns(
        error=pl.Series(wrong), returned=pl.Series(answers)
    )
    evidence = Evidence.from_table(frame, id="item_id", outcome="error", ignore=_KEYS)
    audited = JanusAudit(f"Controlled docs, {SCRIPTED}", evidence, controlled_docs.library())
    return audited, packets, answers


def ask_packets(
    model: str, sizes: Sequence[int] | None, keep: Path | None, progress: Progress
) -> JanusAudit:
    """Generated packets, answered by a model; an answer that cannot be read is not scored.

    Parameters
    ----------
    model : str
        As `groundfault.models.get` takes it.
    sizes : sequence of int, optional
        Rows of each table, one number.
    keep : path, optional
        The calls are recorded beside it.
    progress : callable

    Raises
    ------
    InputError
        If the model gives no answer that can be read.
    """
    packets = controlled_docs.generate(rows=sizes[0] if sizes else _ROWS)
    record = None if keep is None else keep.with_name("janus.calls.db")
    prompts = [packet.prompt for packet in packets]
    responses = models.ask(
        model, prompts, temperature=0, max_tokens=_TOKENS, record=record, progress=progress
    )
    words = [
        controlled_docs.grade(packet, response.text or "")
        for packet, response in zip(packets, responses, strict=True)
    ]
    if set(words) == {"malformed"}:
        raise InputError(f"no answer of {model} can be read; its first is {responses[0].text!r}")
    errors = [None if word == "malformed" else word != "correct" for word in words]
    frame = controlled_docs.to_frame(packets).with_columns(
        error=pl.Series(errors), returned=pl.Series(words)
    )
    library = controlled_docs.library()
    # the factors were set before the answers, so one that tells all errors is no leak
    factors = dict.fromkeys(column for candidate in library for column in candidate.columns)
    # prompts tell packets of the same factors apart: equal rows would count as copies of one
    ignore = [name for name in _KEYS if name != "prompt"]
    columns: Any = {"ignore": ignore, "allow_leakage": tuple(factors)}
    evidence = Evidence.from_table(frame, id="item_id", outcome="error", **columns)
    return JanusAudit(f"Controlled docs, {model}", evidence, library)


def grade_answers(packets: Sequence[Packet], rng: np.random.Generator) -> list[str]:
    """What the scripted reader returned to each packet, as `controlled_docs.grade` puts it."""
    return [str(controlled_docs.grade(p, controlled_docs.scripted_answer(p, rng))) for p in packets]


def real_audits(folder: Path) -> Iterator[JanusAudit]:
    """Real models: some on both benchmarks of the matrix, samples of the paper's size, and the
    single-model files.
    """
    matrix = folder / "zeroeval"
    names = ("examples", "outcomes", "known_grader_artifacts_crux")
    examples, outcomes, artefacts = (read_table(matrix / f"{name}.parquet")[0] for name in names)
    artefacts = artefacts.with_columns(artefact=True)

    def join_examples(benchmark: str, model: str) -> pl.DataFrame:
        rows = outcomes.filter(pl.col("benchmark") == benchmark, pl.col("model") == model)
        table = rows.join(examples.drop("benchmark"), on="example_id", validate="1:1")
        return table.select(column for column in table if column.null_count() < table.height)

    def make_audit(frame: pl.DataFrame, label: str, plan: Plan = USUAL) -> JanusAudit:
        frame = frame.join(artefacts, on=["example_id", "model"], how="left")
        status = pl.when("artefact").then(pl.lit("artefact")).when(pl.col("answer_parsed") == 0)
        frame = frame.with_columns(
            status=status.then(pl.lit("unparsed")).otherwise(pl.lit("scored"))
        )
        evidence = Evidence.from_table(
            frame.drop("artefact"),
            id="example_id",
            outcome="correct",
            status="status",
            positive_is_good=True,
            ignore=[column for column in _ANSWERS if column in frame.columns],
        )
        return JanusAudit.of(label, evidence, plan=plan)

    for benchmark, model, size in SAMPLES:
        whole = join_examples(benchmark, model).sort("example_id")
        rows = np.sort(np.random.default_rng(size).choice(whole.height, size, replace=False))
        yield make_audit(whole[rows], f"{benchmark} {size} of {whole.height:,}: {model}", SMALL)
    for model in MODELS:
        for benchmark in ("gsm", "crux"):
            yield make_audit(join_examples(benchmark, model), f"{benchmark}: {model}")
    for path in sorted((folder / "single_model_audit").glob("*.parquet")):
        frame = read_table(path)[0]
        yield make_audit(frame, f"{frame['benchmark'][0]}: {frame['model'][0]}")


def _golden(path: Path) -> Evidence:
    return Evidence.from_table(path, id="item_id", outcome="error", split="split")


def _flags() -> Any:
    from groundfault.finders.columns import Declared

    return Declared(("d__*",))
