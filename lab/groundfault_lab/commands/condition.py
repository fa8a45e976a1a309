"""``condition``: rules tested given several or numeric columns."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from groundfault.base.long_work import Progress
from groundfault.cli import shared
from groundfault.cli.command import Options, command
from groundfault.cli.output import Result
from groundfault.cli.reading import read_candidates, read_evidence
from groundfault.cli.settings import Count, Flag, call, own_options
from groundfault.core.plan import Plan
from groundfault.errors import InputError, PlanError
from groundfault.render.page import Number, Words, tabulate
from groundfault.render.words import p_value
from groundfault.stats import bits, multiple


@command(first="outcome id given candidate declare finders draws json_path")
@shared.evidence_options
@shared.candidate_options
@own_options
@shared.seed_option
@shared.json_option("the tests")
def condition(
    *,
    given: Annotated[tuple[str, ...], Flag("--given")],
    draws: Count = 1_999,
    alpha: float = 0.1,
    progress: Progress,
    options: Options,
) -> Result:
    """Test rules given several or numeric columns.

    Does the rule matter among examples that are alike in length and difficulty? Each rule is drawn
    again with its chance given the columns, and its failures are compared with those of the draws.
    The error level holds for all rules together, if that chance is right: it comes from a logistic
    regression with bends. For one column with few values, use groundfault audit --within.

    Write the rules and the columns down before you look at results. This test uses all rows and is
    not recorded in a ledger.

    \b
    groundfault lab condition results.parquet --id id --outcome failed \\
        --candidate 'long: n_chars > 400' --given difficulty --given topic

    Rule
    ----
    given : COL
        Column that is held fixed; repeatable.
    draws : N
        Number of draws of each rule.
    alpha
        Chance of any false confirmation, by Holm's correction.
    """
    from groundfault.auditing.preparation import prepare
    from groundfault_lab.stats.conditional import describe_columns, judge_given

    if not 0 < alpha < 1:
        raise PlanError(f"alpha must be strictly between 0 and 1, not {alpha}")
    evidence = read_evidence(options)
    candidates, finders = call(read_candidates, options)
    case = prepare(evidence, Plan(seed=options["seed"]), candidates, finders=finders)
    if case.judge.confirmation != "none":
        raise PlanError("a rule was found by looking at outcomes; name rules that were not")
    losses = case.losses()
    if len(losses) > 1:
        raise InputError(f"there are {len(losses)} models; choose one with --model")
    if losses.shape[1] != len(evidence.frame):
        raise InputError(
            f"{len(evidence.frame):,} rows are {losses.shape[1]:,} examples, by id or by input; "
            "keep one row of each"
        )
    if case.marks.valid is not None or any(case.marks.unusable):
        raise InputError("a rule has no value in some rows; count these as off: --missing off")
    known = ~np.isnan(losses[0])
    columns = describe_columns(evidence.frame.filter(known), list(given))
    on = bits.unpack(case.marks.on, case.marks.size)[:, known]
    rows: list[dict[str, Any]] = []
    for number, (candidate, holds) in enumerate(zip(case.library, on, strict=True)):
        progress(f"testing {candidate.name}")
        rng = Plan(seed=options["seed"]).rng("condition", number)
        inside, outside = losses[0][known][holds], losses[0][known][~holds]
        rates = [float(part.mean()) if len(part) else None for part in (inside, outside)]
        p = judge_given(holds, losses[0][known], columns, draws, rng)
        rows.append({"rule": candidate.name, "on": rates[0], "off": rates[1], "p": p})
    adjusted = multiple.holm(np.array([row["p"] for row in rows])).tolist()
    for row, each in zip(rows, adjusted, strict=True):
        row |= {"p_adjusted": each, "confirmed": each <= alpha}
    table = tabulate(
        f"Given {', '.join(given)}",
        rows,
        Words("rule", lambda row: row["rule"]),
        Number("fails, on", lambda row: _share(row["on"])),
        Number("off", lambda row: _share(row["off"])),
        Number("p", lambda row: p_value(row["p"])),
        Number("adjusted", lambda row: p_value(row["p_adjusted"])),
        Words("", lambda row: "confirmed" if row["confirmed"] else ""),
    )
    content = {"given": list(given), "draws": draws, "alpha": alpha, "tests": rows}
    return Result([table], content)


def _share(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.0%}"
