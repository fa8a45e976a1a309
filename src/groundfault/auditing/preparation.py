"""Prepare an audit: freeze candidates, resolve the plan, and refuse inputs that cannot be judged.

Only counts are known of evidence in an engine. `require_counts_enough` is the single place that
refuses requests that need rows.

Copies, examples that repeat others under new ids, then count as one unit. A copy adds no
information: an audit that counts it as a separate example would find chance effects significant.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from functools import reduce

import numpy as np
import polars as pl
from numpy.typing import NDArray

from groundfault import judges
from groundfault.auditing.counted_audit import JOINT_JUDGE, MAX_JOINT, CountedAudit
from groundfault.auditing.counting import GRADED_JUDGES, MAX_DEALT, is_graded
from groundfault.auditing.lazy_evidence import LazyEvidence
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.base.arrays import Floats, Places
from groundfault.base.long_work import Progress
from groundfault.core.candidate import Candidate, Library
from groundfault.core.column_meaning import describes_answer, holds_question, names_a_thing
from groundfault.core.columns import Column, Kind, list_examples, profile_examples
from groundfault.core.evidence import Evidence
from groundfault.core.judge import Judge
from groundfault.core.plan import Plan
from groundfault.core.roles import Roles, list_parts
from groundfault.core.units import average_losses
from groundfault.errors import InputError, PlanError, RuleError, attempt
from groundfault.finders import DEFAULT, Finder, get
from groundfault.judges import choose_judge
from groundfault.stats.near_duplicates import find_near_duplicates, normalise_text

JUDGES = ("holm", "bh", "by", "split-holm", "janus", "janus-a", "janus-lite")
"""Judges that read only contingency tables."""
_MAX_PATTERNS = 1000
"""Combinations of candidates among the rows of the sample, beyond which all rows have too many."""
MOST_TEXTS = 2000
"""Most distinct texts for the search of near duplicates; exact ones are found among any number."""
# fewest distinct rows that all occur an even number of times: not chance
_MIN_ROWS = 12
# values of copies agree in each column, given all others; coincidences seldom do: nearly always,
# or in a good part of the cases and far more often than any two values of the column
_ALWAYS = 0.9
_OFTEN = 0.3  # the good part of the cases
_TIMES = 50  # far more often than by chance
_AGREEING = 0.95  # copies may differ in a slip of entry
# coincidences that independent columns would give, to one that there is
_EXPECTED = 0.05
# examples of one cluster on average: more are a design, or a table of few columns
_MEAN_SIZE = 10
_MIN_WORDS = 3  # shorter texts, such as "yes", are equal without being copies
# characters that two near duplicates share, in order
_ALIKE = 0.95


def prepare(
    evidence: Evidence | LazyEvidence,
    plan: Plan | None = None,
    candidates: Iterable[Candidate] | None = None,
    *,
    finders: Sequence[str | Finder] | None = None,
    compare: tuple[str, str] | None = None,
    progress: Progress | None = None,
) -> PreparedAudit:
    """Freeze everything that is decided before the holdout is read, and check it.

    Parameters
    ----------
    evidence : Evidence or LazyEvidence
        In lazy evidence each row is a unit. Finders and leak checks see a sample of about 20,000
        discovery rows, drawn by the plan's seed and the rows' ids. The engine and polars both
        evaluate every candidate on this sample.
    plan : Plan, optional
    candidates : iterable of Candidate, optional
        Candidates to judge. Without candidates and finders, the default finders propose.
    finders : sequence of finder or str, optional
        Finders that propose further candidates from the discovery units. With a judge without a
        holdout they see all units, but no outcomes.
    compare : pair of str, optional
        Two models to compare on the examples both answered.
    progress : callable, optional
        Called with a message before each finder.

    Raises
    ------
    InputError
        If all models are held out, or two compared models share no example.
    PlanError
        If a judge or finder is unknown, or needs rows that an engine does not give.
    """
    by_default = candidates is None and finders is None
    finders, declarations = list_finders(candidates, finders), list(candidates or ())
    start: PreparedAudit
    if isinstance(evidence, LazyEvidence):
        needs = evidence, plan, declarations, finders
        start = _start_counting(evidence, *require_counts_enough(*needs, compare=compare))
    else:
        mining = any(map(looks_at_outcomes, finders))
        start = start_audit(evidence, plan, compare=compare, candidates=declarations, mining=mining)
    if finders and start.plan.holdout_axis == "models" and start.discovery_evidence is None:
        raise InputError(
            "all models are held out, so no model is left to find candidates in: name "
            "candidates, or leave some models for discovery"
        )
    proposals = start.propose(finders, declarations, progress=progress, leave_out=True)
    library = Library.of([*declarations, *proposals])
    for candidate in library:
        require_cause(start, candidate)
    own_rules = () if by_default else tuple(c.name for c in library)
    audit = start.with_library(library, own_rules)
    if isinstance(audit, CountedAudit):
        return _settle_counting(audit)
    _require_fresh_holdout(start, library)
    return audit


def start_audit(
    evidence: Evidence,
    plan: Plan | None = None,
    *,
    compare: tuple[str, str] | None = None,
    candidates: Sequence[Candidate] = (),
    mining: bool = True,
) -> PreparedAudit:
    """Prepare everything but the candidates.

    Parameters
    ----------
    evidence, plan, compare
        As in `prepare`.
    candidates : sequence of Candidate
        Named candidates.
    mining : bool
        Whether a finder will look at outcomes; the judge ``auto`` then has a holdout.

    Raises
    ------
    InputError, PlanError
        As `prepare`.
    """
    plan, failures, discovery = plan or Plan(), list[str](), None
    for one in candidates:
        if not isinstance(one, Candidate):
            raise InputError(f"a candidate is a Candidate(name, rule), not {one!r:.60}")
    evidence = attempt(failures, "the search for copies", evidence, join_copies, evidence)
    if plan.holdout_axis == "models":
        if compare:
            raise PlanError("a comparison needs both of its models: hold out another axis")
        names, holdout = plan.split_models(evidence)
        plan = replace(plan, holdout_models=holdout)  # so that the seal covers the drawn models
        discovery = evidence.select_model(*names) if names else None
        evidence = evidence.select_model(*holdout)
    if compare:
        evidence = evidence.select_model(*compare)
        if len(set(compare)) < 2:
            raise PlanError("compare needs two different models")
        if plan.effect != "risk_difference":
            raise PlanError("a comparison is of differences: leave the effect (--effect) out")
        if plan.within:
            raise PlanError(
                "a comparison holds every column fixed, since it compares each example with "
                "itself: leave within (--within) out"
            )
        unscored = np.isnan(average_losses(evidence)).all(axis=1)
        if unscored.any():
            name = evidence.models[int(unscored.argmax())]
            raise InputError(
                f"no example of model {name!r} was scored: a comparison needs two runs"
            )
    # the hash is of all rows: few audits need it here
    mined = mining or any(c.mined and c.is_mined_from(evidence.outcome_hash) for c in candidates)
    plan, judge, reason = _resolve_judge(plan, evidence.roles, mined=mined)
    if compare and not getattr(judge, "compares", False):
        raise PlanError(
            f"judge {judge.name} cannot compare two models: it permutes units, which does not test "
            "changes within units; judge by max-t, holm or split-holm, or name no judge"
        )
    audit = PreparedAudit(
        evidence,
        Library(()),
        plan,
        judge,
        compare,
        discovery,
        judge_reason=reason,
        failures=failures,
    )
    if judge.name == "multisplit-e" and audit.strata is not None:
        raise PlanError(
            "multisplit-e needs groups of like size and holds no column fixed; judge by max-t, "
            "holm or janus"
        )
    return audit


def require_counts_enough(
    lazy: LazyEvidence,
    plan: Plan | None,
    candidates: Iterable[Candidate],
    finders: Sequence[str | Finder],
    *,
    compare: tuple[str, str] | None = None,
    robustness: int = 0,
) -> tuple[Plan, Judge, str]:
    """Refuse requests that need single rows before any row is read: an engine gives only counts.

    Parameters
    ----------
    lazy : LazyEvidence
    plan, candidates, finders, compare
        As in `prepare`.
    robustness : int
        Splits to repeat the rule over.

    Returns
    -------
    plan : Plan
        Resolved for its judge.
    judge : Judge
    reason : str
        Reason for the judge if the plan left it open; else empty.

    Raises
    ------
    PlanError
        If the judge or another setting needs rows, or does not take means of groups.
    """
    if compare or robustness:
        raise PlanError(
            "a comparison (--compare) and repeats (--robustness) need single rows, and an "
            "engine gives counts: leave them out, or audit a sample in memory"
        )
    mined = any(map(looks_at_outcomes, finders)) or any(one.mined for one in candidates)
    named, judge, reason = _resolve_judge(plan or Plan(), lazy.roles, mined=mined)
    axis = named.holdout_axis
    needs = {
        f"judge {judge.name} needs": judge.name not in (*JUDGES, JOINT_JUDGE),
        "within (--within) needs": bool(named.within),
        "decoys that are drawn (--decoys) need": named.decoys is not None,
        f"to hold out {axis} (--holdout-axis) needs": axis != "examples",
    }
    for words, is_asked in needs.items():
        if is_asked:
            raise PlanError(
                f"{words} single rows, and an engine gives counts: judge by "
                f"{', '.join(JUDGES)}, or {JOINT_JUDGE} up to {MAX_JOINT} candidates, hold out "
                "examples, or audit a sample in memory"
            )
    if lazy.is_grouped and not reason and judge.name not in GRADED_JUDGES:
        raise PlanError(
            f"means of groups are graded, and {judge.name} counts failures: judge by "
            f"{', '.join(GRADED_JUDGES)}, or audit a sample in memory"
        )
    return named, judge, reason


def list_finders(
    candidates: Iterable[Candidate] | None, finders: Sequence[str | Finder] | None
) -> Sequence[str | Finder]:
    """Return the named finders; the default ones without named finders and candidates."""
    if finders is not None:
        return finders
    return DEFAULT if candidates is None else ()


def looks_at_outcomes(finder: str | Finder) -> bool:
    """Return whether a finder, given itself or by name, looks at outcomes."""
    maker = get(finder.partition(":")[0]) if isinstance(finder, str) else finder
    return bool(getattr(maker, "uses_outcomes", False))


def require_cause(audit: PreparedAudit, candidate: Candidate) -> None:
    """Raise if a candidate explains failures by a consequence of failing."""
    roles, start = audit.evidence.roles, f"candidate {candidate.name!r} reads"
    for column in candidate.columns:
        if column in (roles.outcome, roles.status):
            raise RuleError(f"{start} the outcome: {candidate.rule!r} explains failures by failing")
        if column in roles.post_outcome:
            raise RuleError(f"{start} {column!r}, which was declared to follow from the outcome")
        if column in roles.during:
            raise RuleError(f"{start} {column!r}, which says how runs fail, and not where")
        if column in audit.leaks:
            raise RuleError(
                f"{start} {column!r}, which predicts {audit.leaks[column]:.0%} of the rarer "
                "outcome, so it is likely to follow from the outcome; allow_leakage "
                "(--allow-leakage) lets it be judged all the same"
            )


def _require_fresh_holdout(audit: PreparedAudit, library: Library) -> None:
    """Raise unless a mined candidate has units that its finder did not see, or other outcomes."""
    for candidate in library:
        is_mined = candidate.mined and not audit.is_mined_here(candidate)
        if is_mined and candidate.is_mined_from(audit.evidence.outcome_hash):
            raise PlanError(
                f"candidate {candidate.name!r} was mined from units of this evidence that judge "
                f"{audit.judge.name} now holds out: take a judge with a holdout and split as then "
                "(--seed, --holdout, --split), or take other evidence"
            )


def _resolve_judge(plan: Plan, roles: Roles, *, mined: bool) -> tuple[Plan, Judge, str]:
    """Return the plan with its judge and the judge's defaults, the judge, and the reason for it."""
    plan, reason = choose_judge(plan, roles, mined=mined)
    judge = judges.get(plan.judge, plan.judge_settings)
    gated = judge.confirmation != "none"
    return plan.resolve(lift_ranked=judge.lift_ranked, gated=gated), judge, reason


def _start_counting(lazy: LazyEvidence, plan: Plan, judge: Judge, reason: str) -> CountedAudit:
    """Prepare everything but the candidates, on a sample of the discovery rows."""
    rows = int(lazy.counter.counts([], {}).rows.sum())
    if not rows:
        raise InputError(f"{lazy.provenance[0]} has no rows")
    sample = lazy.take(lazy.find_sample(plan, rows, holdout=judge.confirmation != "none"))
    return CountedAudit(sample, Library(()), plan, judge, judge_reason=reason, lazy=lazy, rows=rows)


def _settle_counting(audit: CountedAudit) -> CountedAudit:
    """Check the library, and find candidates whose values in the engine differ."""
    library = audit.library
    library.require_columns(audit.evidence.frame.columns, where="the evidence")
    if audit.judge_reason and audit.judge.name == JOINT_JUDGE:
        audit = _replace_judge(audit)
    if audit.judge.name == JOINT_JUDGE and len(library) > MAX_JOINT:
        raise PlanError(
            f"there are {len(library)} candidates, and {JOINT_JUDGE} on counts takes at most "
            f"{MAX_JOINT}, since it counts all their combinations: name fewer, or judge by holm"
        )
    fitted = next((c.name for c in library if c.fitted_column is not None), None)
    if fitted is not None:
        raise InputError(
            f"candidate {fitted!r} reads a column that a finder fitted in Python, which no engine "
            "can evaluate; leave that finder out"
        )
    audit.require_countable(audit.sample_losses)
    rules = {candidate.name: candidate.parsed for candidate in library}
    return replace(audit, disagreements=audit.find_disagreements(rules))


def _replace_judge(audit: CountedAudit) -> CountedAudit:
    """Replace max-t by holm if candidates cannot be counted jointly."""
    rules = [candidate.parsed.to_polars() for candidate in audit.library]
    graded = audit.groups is not None or is_graded(audit.sample_losses)
    too_many = graded or len(rules) > MAX_JOINT
    if not too_many:
        named = (rule.alias(str(i)) for i, rule in enumerate(rules))
        too_many = audit.evidence.frame.select(named).n_unique() > _MAX_PATTERNS
    if not too_many and audit.rows < MAX_DEALT:
        return audit
    before, _, _ = audit.judge_reason.rpartition(": ")
    why = (
        f"{'losses' if audit.groups is None else 'means of groups'} are graded, and max-t counts "
        "failures"
        if graded
        else f"the combinations of {len(rules)} candidates in {audit.rows:,} rows, which max-t "
        "counts, are too many"
    )
    plan, judge = replace(audit.plan, judge="holm"), judges.get("holm")
    reason = f"{before}: judged by holm, since {why}"
    return replace(audit, plan=plan, judge=judge, judge_reason=reason)


def join_copies(evidence: Evidence) -> Evidence:
    """Return the evidence with copies of an example joined to one unit, described by the first.

    Parameters
    ----------
    evidence : Evidence
        With a group column, its groups are the units, and no copies are joined.

    Notes
    -----
    Examples are copies of each other if

    - they have the same texts except for case, spacing and punctuation, or similar texts
      (`find_near_duplicates`, 95 % of characters equal; searched among up to 2,000 distinct texts)
      with the same numbers. They must also agree in all labels and flags and, if no column is named
      like a question, in 95 % of their outcomes; or, in a table without texts,
    - they agree in all columns, and coincidences are unlikely: agreement in all columns but one
      comes with agreement in that column far more often than by chance, and independent columns
      would give less than a twentieth of the agreements. Their outcomes also agree in at least 95 %
      of cases; or
    - every combination of values and outcome occurs a multiple of k times: the table was put
      together from k copies of itself.

    Columns of ids do not count. Whole rows are compared, before any split, and outcomes only to
    tell copies from similar rows. Copies of a few rows in a table of few columns look like
    coincidences, and are not found.
    """
    if evidence.roles.group is not None or evidence.clusters is not None:
        return evidence
    table = list_examples(evidence)
    parts = list_parts(evidence.frame)
    columns = [
        c
        for c in profile_examples(evidence)
        if c.kind not in (Kind.CONSTANT, Kind.OTHER)
        and not names_a_thing(c.name)
        # parts of one date are redundant
        and c.name not in parts
        # integers that are all different number the examples
        if not (table[c.name].dtype.is_integer() and table[c.name].n_unique() == table.height)
    ]
    # a model's answers may differ between copies
    questions = [c for c in columns if not describes_answer(c.name)]
    texts = [c for c in questions if _is_text(table, c)]
    if texts:
        plain = [c.name for c in questions if c.kind in (Kind.LABEL, Kind.FLAG)]
        first = _join_texts(table, [c.name for c in texts], plain)
        # many questions have one description, and come out in their own ways
        is_told = any(holds_question(c.name) for c in texts)
        if not is_told and not _come_out_alike(first, average_losses(evidence).T):
            return evidence
    else:
        # rows that all differ in one column are no copies
        if any(table[c.name].n_unique() == table.height for c in columns if c.kind is Kind.NUMBER):
            return evidence
        first = _join_rows(_code_labels(table, columns), average_losses(evidence).T)
    if (first == np.arange(len(first))).all():
        return evidence
    ids = table_ids(evidence)
    names = dict(zip(ids, np.asarray(ids)[first], strict=True))
    rows = evidence.frame[evidence.roles.id or ""].cast(pl.String)
    return replace(evidence, clusters=rows.replace_strict(names, return_dtype=pl.String))


def take_each_for_a_unit(evidence: Evidence) -> Evidence:
    """Return the evidence with every example as a separate unit, including copies.

    Named groups stay.
    """
    if evidence.roles.group is not None:
        return evidence
    return replace(evidence, clusters=evidence.frame[evidence.roles.id or ""].cast(pl.String))


def table_ids(evidence: Evidence) -> list[str]:
    """Return names of the examples, in the order of `list_examples`."""
    ids = evidence.frame[evidence.roles.id or ""].cast(pl.String)
    return ids.unique(maintain_order=True).to_list()


def _come_out_alike(first: Places, losses: Floats) -> bool:
    """Return whether units have the outcomes of the units they repeat, up to slips of entry."""
    repeats = np.flatnonzero(first != np.arange(len(first)))
    ours, theirs = losses[repeats], losses[first[repeats]]
    is_both = ~(np.isnan(ours) | np.isnan(theirs))
    return bool((ours == theirs)[is_both].mean() >= _AGREEING) if is_both.any() else True


def _is_text(table: pl.DataFrame, column: Column) -> bool:
    if column.kind not in (Kind.TEXT, Kind.CODE) or table[column.name].dtype != pl.String:
        return False
    # different texts are read as codes where nearly all differ; codes have no words
    words = table[column.name].str.split(" ").list.len().median()
    return words is not None and float(str(words)) >= (
        2 if column.kind is Kind.TEXT else _MIN_WORDS
    )


def _join_texts(table: pl.DataFrame, texts: Sequence[str], plain: Sequence[str]) -> Places:
    """Find for each example the first of nearly the same texts, and the same labels and flags."""
    whole = table.select(pl.concat_str(texts, separator=" ", ignore_nulls=True)).to_series()
    words = [normalise_text(text or "") for text in whole]
    rows = table.with_columns(pl.Series("\0text", words))
    first = _find_first(rows.select(*plain, "\0text"))
    kinds = _find_first(rows.select(*plain)) if plain else np.zeros_like(first)
    leaders = np.flatnonzero((first == np.arange(len(first))) & np.array([bool(w) for w in words]))
    # missing texts are not copies of each other
    blank = np.array([not w for w in words], dtype=np.bool_)
    first[blank] = np.flatnonzero(blank)
    if len(leaders) <= MOST_TEXTS:
        # a part of a longer text is another question, and so may be a text that differs in a few
        # words from a form that many texts share
        leading = [words[i] for i in leaders]
        for pair in find_near_duplicates(leading, [], containment=math.inf, normalised=True):
            a, b = int(leaders[pair.text]), int(leaders[pair.other])
            numbers = [re.findall(r"\d+", words[i]) for i in (a, b)]
            alike = kinds[a] == kinds[b] and numbers[0] == numbers[1]
            match = SequenceMatcher(None, words[a], words[b], autojunk=False)
            if alike and match.ratio() >= _ALIKE:
                low, high = sorted((int(first[a]), int(first[b])))
                first[first == high] = low
    return first


def _code_labels(table: pl.DataFrame, columns: Sequence[Column]) -> pl.DataFrame:
    """Return the columns with numbers for words that repeat.

    The same rows are equal, and comparing them takes a fraction of the memory.
    """
    return pl.DataFrame(
        [
            table[c.name].cast(pl.String).cast(pl.Categorical).to_physical().shrink_dtype()
            if c.kind is Kind.LABEL
            else table[c.name]
            for c in columns
        ]
    )


def _join_rows(table: pl.DataFrame, losses: Floats) -> Places:
    """Find for each example the first that it is a copy of, by all columns together."""
    n = table.height
    alone = np.arange(n, dtype=np.intp)
    # rows with different hashes differ
    if not table.width or n < 2 or table.hash_rows().n_unique() == n:
        return alone
    first = _find_first(table)
    sizes = np.bincount(first)
    sizes = sizes[sizes > 1]
    are_few = len(sizes) > 0 and sizes.mean() <= _MEAN_SIZE
    if are_few and _agree_in_outcomes(first, losses) and _are_no_coincidences(table):
        return first
    outcomes = pl.DataFrame({f"\0loss {i}": row for i, row in enumerate(losses.T)})
    rows = _find_first(pl.concat([table, outcomes], how="horizontal"))
    counts = np.bincount(rows)
    times = reduce(math.gcd, counts[counts > 0].tolist())
    if times < 2 or (counts > 0).sum() < _MIN_ROWS:
        return alone
    # rows that agree in everything are copies of each other in any order
    order = np.argsort(rows, kind="stable")
    out = np.empty(n, dtype=np.intp)
    out[order] = np.repeat(order[::times], times)
    return out


def _agree_in_outcomes(first: Places, losses: Floats) -> bool:
    """Return whether rows that agree in all columns have the outcomes of their first row.

    Outcomes of examples that only look the same would differ.
    """
    others = np.flatnonzero(first != np.arange(len(first)))
    a, b = losses[others], losses[first[others]]
    same = ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    return bool(same.mean() >= _AGREEING)


def _are_no_coincidences(table: pl.DataFrame) -> bool:
    """Return whether more rows agree in all columns than by chance."""
    codes = [_find_first(table.select(name)) for name in _drop_functions(table)]
    keys = np.random.default_rng(0).integers(0, 2**63, (len(codes), table.height), dtype=np.uint64)
    hashes = [key[code] for key, code in zip(keys, codes, strict=True)]
    # sums of random numbers stand for combinations of values: a column is taken out by subtraction
    whole = np.stack(hashes).sum(axis=0, dtype=np.uint64)
    agreeing = _count_pairs(whole)
    if agreeing == 0:
        return False
    pairs = table.height * (table.height - 1) / 2
    usual = [_count_pairs(code) / pairs for code in codes]
    if pairs * np.prod(usual) > _EXPECTED * agreeing:
        return False
    shares = [agreeing / _count_pairs(whole - one) for one in hashes]
    return all(
        share >= 1 - (1 - _ALWAYS) * (1 - by_chance)
        or (share >= _OFTEN and share >= _TIMES * by_chance)
        for share, by_chance in zip(shares, usual, strict=True)
    )


def _drop_functions(table: pl.DataFrame) -> Iterator[str]:
    """Yield columns that no one column before them in order of values determines."""
    names = sorted(table.columns, key=lambda name: -table[name].n_unique())
    independent: list[str] = []
    for name in names:
        if not any(
            table.select(pl.struct(other, name).n_unique()).item() == table[other].n_unique()
            for other in independent
        ):
            independent.append(name)
            yield name


def _find_first(table: pl.DataFrame) -> Places:
    """Find for each row the first that is equal to it; missing values are equal."""
    row = pl.int_range(pl.len()).alias("\0row")
    names = table.columns
    first = table.with_columns(row).select(pl.col("\0row").first().over(names))
    return first.to_series().to_numpy().astype(np.intp)


def _count_pairs(codes: NDArray[np.uint64] | Places) -> float:
    counts = np.unique(codes, return_counts=True)[1].astype(np.float64)
    return float((counts * (counts - 1)).sum() / 2)
