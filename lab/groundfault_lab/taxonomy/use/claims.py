"""Claims: whether models that a taxonomy was not fitted to fail more often in its clusters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl
from msgspec import structs

from groundfault.auditing.report import Report
from groundfault.auditing.report_schema import Derivation, Manifest
from groundfault.base.long_work import Progress
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.errors import InputError
from groundfault_lab.stats import irt
from groundfault_lab.taxonomy.fitting.matrix import Matrix
from groundfault_lab.taxonomy.fitting.taxonomy import ANSWER, Taxonomy

if TYPE_CHECKING:
    from groundfault.base.ledgers import LedgerChoice

Outcome = Literal["failures", "excess"]

_EXCESS = (
    "the loss is (1 + failed - expected) / 2, where ability and difficulty say what is expected: "
    "read errors as failures beyond that, 0.5 as none, and a lift as half of the excess"
)
# losses are hashed, and exponentials differ in the last bit between processors: the grid is so
# coarse that hardly a loss is that near to where rounding turns
_DECIMALS = 6


def add_answers(evidence: Evidence, matrix: Matrix) -> Evidence:
    """Add a column of answers for each model of a matrix to evidence.

    An answer is 1 for a pass, 0 for a failure, and -1 for none.

    Parameters
    ----------
    evidence : Evidence
        Of other models.
    matrix : Matrix
        With the answers of the models whose columns are added.

    Raises
    ------
    InputError
        If an example is none of the matrix's, or a model of the evidence is one of the matrix's.
    """
    # a cluster of a model's own failures holds failures of it by construction
    overlap = [name for name in evidence.models if name in matrix.models]
    if overlap:
        raise InputError(
            f"model {overlap[0]!r} is one that the clusters were made from: claims about it would "
            "be circular; fit the taxonomy without it"
        )
    rows = matrix.find_rows(evidence)
    if (rows < 0).any():
        strange = evidence.frame[evidence.roles.id or ""][int((rows < 0).argmax())]
        raise InputError(
            f"{(rows < 0).sum()} rows are of examples that the matrix does not have, such as "
            f"{str(strange)!r}"
        )
    # rules compare numbers, and have no NULL
    answers = np.nan_to_num(matrix.values, nan=-1.0)
    columns = {ANSWER + model: answers[rows, j] for j, model in enumerate(matrix.models)}
    frame = evidence.frame.with_columns(**{k: pl.Series(v) for k, v in columns.items()})
    # leaves read attributes, which may have come from a table of examples
    lacking = [name for name in matrix.attributes.columns if name not in frame.columns]
    return replace(evidence, frame=frame.hstack(matrix.attributes[rows].select(lacking)))


def judge_claims(
    taxonomy: Taxonomy,
    evidence: Evidence,
    models: Sequence[str],
    plan: Plan | None = None,
    *,
    outcome: Outcome = "failures",
    unstable: bool = False,
    ledger: LedgerChoice = True,
    reopen: str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Judge for each held-out model whether it fails more, or less, in each cluster.

    Parameters
    ----------
    taxonomy : Taxonomy
        Fitted without these models.
    evidence : Evidence
        With the answers of these models.
    models : sequence of str
    plan : Plan, optional
        Rule, level and split by example; its holdout axis becomes ``models``, with these models.
    outcome : {"failures", "excess"}
        What is compared: failures; or failures beyond those that the model's ability and the
        example's difficulty lead one to expect. The latter is the loss (1 + failed - expected) / 2,
        so a lift is half of the excess; it is rounded to six decimals.
    unstable : bool
        Clusters that are not published, too.
    ledger, reopen, progress : optional
        As for `groundfault.audit`.

    Notes
    -----
    The plan's holdout axis is the model: clusters are made of other models' answers, so that every
    answer of a held-out one is new to them. The judge then splits the examples. With ``excess``,
    the ability of each model and the item curves are estimated from all of its answers and from the
    models fitted.

    Raises
    ------
    InputError
        If a model was seen by the taxonomy, or there is no cluster to judge.
    """
    # here, so that fitting a taxonomy does not import the audit
    from groundfault.auditing.flow import audit

    candidates = taxonomy.candidates(unstable=unstable)
    if not candidates:
        raise InputError(f"there is no cluster to judge. {taxonomy.verdict}")
    part = select_answers(taxonomy, evidence, models, outcome)
    # the axis is recorded in the manifest and the ledger, so a second opening is noticed
    plan = replace(plan or Plan(), holdout_axis="models", holdout_models=tuple(models))
    report = audit(
        part,
        plan,
        candidates,
        finders=[],
        ledger=ledger,
        reopen=reopen,
        # the columns are other models' answers, not attributes of the examples
        modes=False,
        progress=progress,
    )
    settings: dict[str, str] = {"outcome": outcome}
    if outcome == "excess":
        settings["decimals"] = str(_DECIMALS)
    return mark_derivation(report, Derivation(kind="taxonomy", settings=settings))


def mark_derivation(report: Report, derivation: Derivation) -> Report:
    """Mark a report as one of a taxonomy's clusters, and say what its losses are."""
    return structs.replace(
        report,
        manifest=structs.replace(report.manifest, derivation=derivation),
        hints=(*report.hints, _EXCESS) if is_excess(derivation) else report.hints,
    )


def repeat_claims(
    evidence: Evidence, manifest: Manifest, directory: Path, rerun: Callable[[Evidence], Report]
) -> Report:
    """Audit the evidence of claims again, for `groundfault.auditing.verification`.

    The report's directory is below that of its taxonomy.
    """
    derivation = manifest.derivation
    assert derivation is not None
    outcome: Outcome = "excess" if is_excess(derivation) else "failures"
    # claims are written to a folder inside the taxonomy's
    taxonomy = Taxonomy.load(directory.resolve().parent)
    part = select_answers(
        taxonomy,
        evidence,
        manifest.models or (),
        outcome,
        # reports of 0.1.0 are of losses to the last bit, which other processors do not make again,
        # and know the outcomes by these
        rounded="decimals" in derivation.settings,
    )
    return mark_derivation(rerun(part), derivation)


def is_excess(derivation: Derivation) -> bool:
    """Tell whether claims are about failures beyond ability and difficulty."""
    return derivation.settings["outcome"] == "excess"


def select_answers(
    taxonomy: Taxonomy,
    evidence: Evidence,
    models: Sequence[str],
    outcome: Outcome = "failures",
    *,
    rounded: bool = True,
) -> Evidence:
    """Select answers of held-out models to the taxonomy's examples; add its models' answers.

    Raises
    ------
    InputError
        If a model was seen by the taxonomy, or answered none of its examples.
    """
    results = evidence.select_model(*models)
    inside = taxonomy.matrix.find_rows(results) >= 0
    if not inside.any():
        raise InputError(
            "no example of the taxonomy was answered by these models: the ids do not match"
        )
    part = add_answers(results.take(inside), taxonomy.matrix)
    return _replace_losses_by_excess(part, taxonomy, rounded) if outcome == "excess" else part


def _replace_losses_by_excess(evidence: Evidence, taxonomy: Taxonomy, rounded: bool) -> Evidence:
    """Make losses one half where a model does as its ability and the difficulty predict."""
    matrix = taxonomy.matrix
    item_fit = irt.fit(matrix.passed, matrix.trials, parameters=taxonomy.settings.parameters)
    # items are fixed at the fit to other models; only the ability is estimated here
    curve = irt.compute_curves(item_fit)
    rows = matrix.find_rows(evidence)
    names = evidence.frame[evidence.roles.model or ""].cast(pl.String)
    loss = evidence.loss.fill_null(0.0).to_numpy()
    is_scored = evidence.loss.is_not_null().to_numpy()
    expectation = np.zeros(len(evidence))
    for model in evidence.models:
        mine = (names == model).to_numpy()
        scored = mine & is_scored
        passes, trials = np.zeros((2, len(matrix), 1), dtype=np.int64)
        np.add.at(trials[:, 0], rows[scored], 1)
        np.add.at(passes[:, 0], rows[scored], (loss[scored] < 0.5).astype(np.int64))
        ability, _ = irt.compute_moments(irt.compute_log_posterior(passes, trials, curve))
        expectation[mine] = 1 - item_fit.take(rows[mine]).probability(ability)[:, 0]
    # from [-1, 1] to [0, 1], as a loss has to be; a lift is then half of the excess
    shifted: Any = np.where(is_scored, (1 + loss - expectation) / 2, np.nan)
    if rounded:
        shifted = shifted.round(_DECIMALS)
    excess = pl.Series("loss", shifted).fill_nan(None)
    # a ledger knows these outcomes by the failures themselves: they are looked at, however counted
    return replace(evidence, loss=excess, raw_loss=evidence.loss if rounded else None)
