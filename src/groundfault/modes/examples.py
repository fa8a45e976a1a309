"""Examples of a mode: typical and different ones inside its rule and just outside it, and failures
along the numbers that it cuts."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from msgspec.structs import replace

from groundfault.base.arrays import Bools, Floats, Places
from groundfault.core.column_meaning import ANSWERS, PROMPTS, list_conversations, tell_conversation
from groundfault.core.columns import Kind, list_plain, profile, take_sample, tell_value
from groundfault.core.evidence import Evidence
from groundfault.core.rules import CONDITION, Rule
from groundfault.modes.mode import DosePoint, Mode, ModeExample, Side
from groundfault.modes.rule_space import ModeRule, RuleLanguage

COUNT = 5
"""Examples of each side that a report keeps."""
LONGEST = 2000
"""Most characters of a text in a report."""

# last words in names of columns that hold the answer key
_TARGETS = set("target expected reference label gold ideal solution".split())
_MAX_COLUMNS = 6
# of more units than these examples are chosen among a sample; characters read of each
_POOL = 200
_READ = 600
_TOKEN = re.compile(r"\w+|[^\w\s]")
_NUMBER = re.compile(r"\d+")
_MAX_LEVELS = 60
_MAX_POINTS = 12
"""Most values of a number to show one by one, and twice the number of ranges for more values."""


def add_examples(
    modes: Sequence[Mode],
    table: pl.DataFrame,
    evidence: Evidence,
    losses: Floats,
    *,
    outcomes: Sequence[str] = ("",),
    model: str | None = None,
    texts: bool = True,
    count: int = COUNT,
) -> tuple[Mode, ...]:
    """Return the modes with their examples: failing, passing and near ones.

    Parameters
    ----------
    modes : sequence of Mode
    table : polars.DataFrame
        The table for `find_modes`: a row for each of ``evidence.unit_names``, in that order.
    evidence : Evidence
        Evidence with the texts.
    losses : float64 array, shape (outcomes, units)
        NaN where not scored.
    outcomes : sequence of str
        Names of the rows of ``losses``; a mode with another outcome belongs to their mean.
    model : str, optional
        Model whose answers to show, if it is not the mode's outcome.
    texts : bool
        Whether examples show their texts; their ids stay.
    count : int
        Examples of each side.

    Notes
    -----
    Failing and passing examples are exemplars: the first is the unit most similar to all of its
    side; each further one adds most similarity to units without a similar exemplar (greedy facility
    location, Nemhauser, Wolsey and Fisher 1978, https://doi.org/10.1007/BF01588971). Units are
    similar if they share words and values that are rare elsewhere. Near examples match all
    conditions but one and are most similar to the failing ones. All are chosen among a fixed 200.
    """
    rows = _Rows(evidence, find_text_columns(evidence), texts)
    picks = []
    for mode in modes:
        if set(mode.columns) <= set(table.columns):
            inside, near = mode.holds(table).to_numpy(), find_near(mode.rule, table)
            of_mode = select_losses(mode.outcome, losses, outcomes)
            answers = model or mode.outcome
            of_rule = dataclasses.replace(rows, first=mode.columns)
            mode = replace(mode, sample=_choose(of_rule, answers, inside, near, of_mode, count))
        picks.append(mode)
    return tuple(picks)


def choose_examples(
    evidence: Evidence,
    outcome: str,
    inside: Bools,
    near: Bools,
    losses: Floats,
    *,
    count: int = COUNT,
    columns: tuple[str, ...] | None = None,
    failing_only: bool = False,
) -> tuple[ModeExample, ...]:
    """Return examples of any rule, chosen like in `add_examples`.

    Parameters
    ----------
    evidence : Evidence
    outcome : str
        The model whose answers to show, if it names a model.
    inside, near : bool array, shape (units,)
        Units that the rule matches, and units that match all conditions but one.
    losses : float64 array, shape (units,)
        NaN where not scored.
    count : int
        Examples of each side.
    columns : tuple of str, optional
        Columns with texts; by default the result of `find_text_columns`.
    failing_only : bool
        Leave out passing examples and near misses.
    """
    texts = find_text_columns(evidence) if columns is None else columns
    rows = _Rows(evidence, texts, with_texts=True)
    return _choose(rows, outcome, inside, near, losses, count, failing_only)


def find_text_columns(evidence: Evidence) -> tuple[str, ...]:
    """Return columns to show of an example: its prompts and other prose, then answers, then
    targets.

    At most six: columns of prose, or with a name whose last word says so, as in ``user_prompt``.

    Examples
    --------
    >>> table = pl.DataFrame({"error": [0, 1], "prompt": ["1 + 1", "2 + 2"], "answer": ["2", "5"]})
    >>> find_text_columns(Evidence.from_table(table, outcome="error"))
    ('prompt', 'answer')
    """
    roles = evidence.roles
    names = [name for name in evidence.frame.columns if name not in roles.columns]
    words = {name: re.split(r"[\W_]+", name.lower())[-1] for name in names}
    schema = evidence.frame.schema
    strings = [name for name in names if schema[name] == pl.String]
    prose = {
        column.name
        for column in profile(take_sample(evidence.frame.select(strings)))
        if column.kind is Kind.TEXT
    }
    simple = [name for name in names if not schema[name].is_nested()]
    prompts = [name for name in strings if words[name] in PROMPTS]
    answers = [name for name in simple if words[name] in ANSWERS]
    targets = [name for name in simple if words[name] in _TARGETS]
    rest = [name for name in strings if name in prose]
    columns = dict.fromkeys([*prompts, *rest])
    ends = dict.fromkeys([*answers, *targets])
    leads = [name for name in columns if name not in ends]
    return (*leads[: max(1, _MAX_COLUMNS - len(ends))], *ends)[:_MAX_COLUMNS]


def split_conditions(rule: str) -> tuple[str, ...]:
    """Split a rule at AND, and return the parts, each a rule.

    Examples
    --------
    >>> split_conditions("n_lines > 2 AND n_words BETWEEN 3 AND 5")
    ('"n_lines" > 2', '"n_words" BETWEEN 3 AND 5')
    """
    sql = Rule.parse(rule).sql
    plain = CONDITION.findall(sql)
    if " AND ".join(plain) == sql:
        return tuple(one[1:-1] if one[0] == "(" else one for one in plain)
    from sqlglot import exp, parse_one

    stack, parts = [parse_one(sql, read="postgres")], []
    while stack:
        tree = stack.pop().unnest()
        if isinstance(tree, exp.And):
            stack += [tree.expression, tree.this]
        else:
            parts.append(tree.sql(dialect="postgres"))
    return tuple(parts)


def share_opening(texts: Sequence[str]) -> str:
    """Return the common beginning of some texts.

    Examples
    --------
    >>> share_opening(["Q: how many?", "Q: how much?", "Q: how"])
    'Q: how'
    """
    # the first and the last in order of the alphabet differ earliest
    first, last = min(texts), max(texts)
    pairs = enumerate(zip(first, last, strict=False))
    return first[: next((place for place, (a, b) in pairs if a != b), len(first))]


@dataclass(frozen=True)
class _Rows:
    """The rows of the evidence that represent units.

    Attributes
    ----------
    evidence : Evidence
    columns : tuple of str
        Columns with texts.
    with_texts : bool
        Whether examples show texts.
    first : tuple of str
        Columns to show first where there are no texts: those that the rule reads.
    """

    evidence: Evidence
    columns: tuple[str, ...]
    with_texts: bool
    first: tuple[str, ...] = ()

    def take(self, units: Places, outcome: str, *, worst: bool = True) -> pl.DataFrame:
        """Return a row for each of some units: the one with the highest or the lowest loss.

        Parameters
        ----------
        units : intp array, shape (m,)
        outcome : str
            Only rows of this model, where it is one.
        worst : bool
        """
        evidence, roles = self.evidence, self.evidence.roles
        mask = np.zeros(evidence.unit_count, dtype=np.bool_)
        mask[units] = True
        rows = np.flatnonzero(mask[evidence.unit_index])
        frame = evidence.frame[rows].with_columns(
            _unit=pl.Series(evidence.unit_index[rows]), _loss=evidence.loss[rows]
        )
        if roles.model and outcome in evidence.models:
            frame = frame.filter(pl.col(roles.model).cast(pl.String) == outcome)
        frame = frame.sort("_loss", descending=worst, nulls_last=True, maintain_order=True)
        frame = frame.unique("_unit", keep="first", maintain_order=True)
        return pl.DataFrame({"_unit": units}).join(frame, on="_unit", maintain_order="left")

    def tokens(self, frame: pl.DataFrame) -> list[list[str]]:
        """Return the tokens by which rows are compared: words of texts, and values of labels."""
        tokens: list[list[str]] = [[] for _ in range(frame.height)]
        for name in self.evidence.attributes:
            column = frame[name]
            if name in self.columns:
                texts = column.cast(pl.String).fill_null("").to_list()
                # an instruction at the beginning of all prompts makes no two of them similar
                start = len(share_opening(texts)) if len(texts) > 1 else 0
                for place, text in enumerate(texts):
                    plain = _NUMBER.sub("0", text[start : start + _READ].lower())
                    tokens[place] += _TOKEN.findall(plain)
            elif not column.dtype.is_nested() and column.n_unique() <= _MAX_LEVELS:
                values = column.cast(pl.String).to_list()
                named = {value: f"{name}={value}" for value in set(values)}
                for row, value in zip(tokens, values, strict=True):
                    row.append(named[value])
        return tokens

    def show(
        self, frame: pl.DataFrame, side: Side, outcome: str, losses: Floats
    ) -> Iterator[ModeExample]:
        """Yield the rows as examples."""
        roles = self.evidence.roles
        attributes = self.evidence.attributes
        names = sorted(attributes, key=lambda name: name not in self.first)
        plain = self.columns or list_plain(self.evidence.frame.select(names))
        columns = list(plain[:_MAX_COLUMNS]) if self.with_texts else []
        several = len(self.evidence.models) > 1
        if columns and roles.model and several and outcome not in self.evidence.models:
            columns.append(roles.model)
        runs = list_conversations(self.evidence.frame[columns])
        told = [(name, tell_conversation if name in runs else tell_value) for name in columns]
        for row in frame.iter_rows(named=True):
            texts = {
                name: tell(row[name])[:LONGEST] for name, tell in told if row[name] is not None
            }
            loss = round(float(losses[row["_unit"]]), 6)
            yield ModeExample(id=str(row[roles.id or ""]), side=side, texts=texts, loss=loss)


def select_losses(outcome: str, losses: Floats, outcomes: Sequence[str]) -> Floats:
    """Return the losses of one outcome, or for another name the mean of all: float64, shape
    (units,).

    Parameters
    ----------
    outcome : str
    losses : float64 array, shape (outcomes, units)
        NaN where not scored.
    outcomes : sequence of str
    """
    if outcome in outcomes:
        return np.asarray(losses[list(outcomes).index(outcome)])
    scored = ~np.isnan(losses)
    total = np.where(scored, losses, 0.0).sum(axis=0)
    count = scored.sum(axis=0)
    mean = np.full(len(total), np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def _choose(
    rows: _Rows,
    outcome: str,
    inside: Bools,
    near: Bools,
    losses: Floats,
    count: int,
    failing_only: bool = False,
) -> tuple[ModeExample, ...]:
    """Return examples of all sides: failing, passing, near."""
    inside = inside & ~np.isnan(losses)
    wrong = find_failures(losses, inside)
    failing = rows.take(_pool(inside & wrong), outcome)
    failing = failing[_find_exemplars(_likeness(rows.tokens(failing)), count)]
    if failing_only:
        return tuple(rows.show(failing, "failing", outcome, losses))
    passing = rows.take(_pool(inside & ~wrong), outcome, worst=False)
    passing = passing[_find_exemplars(_likeness(rows.tokens(passing)), count)]
    beside = rows.take(_pool(near & ~np.isnan(losses)), outcome)
    if failing.height:
        beside = beside[_find_neighbours(rows.tokens(failing), rows.tokens(beside), count)]
    return (
        *rows.show(failing, "failing", outcome, losses),
        *rows.show(passing, "passing", outcome, losses),
        *rows.show(beside[:count], "near", outcome, losses),
    )


def find_failures(losses: Floats, inside: Bools) -> Bools:
    """Return the failing units: at least half wrong, or if there are none, no better than the mean.

    Parameters
    ----------
    losses : float64 array, shape (n,)
        NaN where not scored.
    inside : bool array, shape (n,)
        Units that a rule matches; all scored.
    """
    if not inside.any() or losses[inside].max() >= 0.5:
        return np.asarray(losses >= 0.5)
    return np.asarray((losses >= losses[inside].mean()) & (losses > 0))


def find_near(rule: str, table: pl.DataFrame) -> Bools:
    """Return rows that match all conditions of a rule but one; for one condition, all other rows.

    Parameters
    ----------
    rule : str
        In SQL.
    table : polars.DataFrame
    """
    parts = [Rule.parse(part).to_polars().fill_null(False) for part in split_conditions(rule)]
    number = table.select(pl.sum_horizontal(part.cast(pl.Int32) for part in parts)).to_series()
    return np.asarray(number.to_numpy() == len(parts) - 1)


def _pool(units: Bools) -> Places:
    """Return the places of some units; for many units, of a fixed sample."""
    places = np.flatnonzero(units)
    if len(places) <= _POOL:
        return places
    return np.sort(np.random.default_rng(0).permutation(places)[:_POOL])


def _likeness(tokens: list[list[str]], others: list[list[str]] | None = None) -> Floats:
    """Return the similarity of rows, in [0, 1]: cosines of their words, weighted by rarity.

    Parameters
    ----------
    tokens, others : list of list of str
        Without others, the rows among themselves.
    """
    from scipy.sparse import csr_array

    every = [*tokens, *(others or [])]
    places: dict[str, int] = {}
    words = np.array([places.setdefault(t, len(places)) for row in every for t in row], dtype=int)
    rows = np.repeat(np.arange(len(every)), [len(row) for row in every])
    counts = csr_array((np.ones(len(words)), (rows, words)), shape=(len(every), len(places)))
    counts.sum_duplicates()
    spread = np.bincount(counts.indices, minlength=len(places))
    counts.data = (1 + np.log(counts.data)) * np.log((1 + len(every)) / spread)[counts.indices]
    norms = np.sqrt(np.asarray((counts * counts).sum(axis=1)).ravel())
    weights = counts.multiply(1 / np.where(norms > 0, norms, 1.0)[:, None]).tocsr()
    start = weights[: len(tokens)]
    end = start if others is None else weights[len(tokens) :]
    return np.asarray((start @ end.T).toarray())


def _find_exemplars(likeness: Floats, count: int) -> list[int]:
    """Return rows that together are most similar to all rows, the most typical first.

    Parameters
    ----------
    likeness : float64 array, shape (rows, rows)
    count : int
    """
    picks: list[int] = []
    best = np.zeros(len(likeness))
    for _ in range(min(count, len(likeness))):
        gains = np.maximum(likeness - best, 0.0).sum(axis=1)
        gains[picks] = -1.0
        place = int(np.argmax(np.round(gains, 9)))
        picks.append(place)
        best = np.maximum(best, likeness[place])
    return picks


def _find_neighbours(tokens: list[list[str]], others: list[list[str]], count: int) -> list[int]:
    """Return the other row most similar to each row in turn, without repeats."""
    likeness = _likeness(tokens, others)
    picks: list[int] = []
    for turn in range(min(count, len(others))):
        row = np.round(likeness[turn % len(tokens)], 9)
        row[picks] = -1.0
        picks.append(int(np.argmax(row)))
    return picks


def list_doses(
    table: pl.DataFrame, language: RuleLanguage, rule: ModeRule, losses: Floats
) -> tuple[DosePoint, ...]:
    """Return failures at each value, or in ranges, of the numbers in a rule, among units that match
    the rest.

    Parameters
    ----------
    table : polars.DataFrame
        The units of the language.
    language : RuleLanguage
    rule : ModeRule
    losses : float64 array, shape (units,)
    """
    return tuple(
        point
        for place, part in enumerate(rule.parts)
        if len(part) == 1 and language.literals[part[0]].bounds is not None
        for point in _list_points(
            table[language.literals[part[0]].column],
            language.literals[part[0]].bounds or (-np.inf, np.inf),
            _hold_others(language, rule, place),
            losses,
        )
    )


def _hold_others(language: RuleLanguage, rule: ModeRule, place: int) -> Bools:
    """Return units that match all parts of a rule but one."""
    parts = rule.parts[:place] + rule.parts[place + 1 :]
    if not parts:
        return np.ones(len(language.layout.strata), dtype=np.bool_)
    row = language.mask(ModeRule(parts, rule.kind))
    return np.asarray(language.layout.unpack(row[None])[0])


def _list_points(
    column: pl.Series,
    bounds: tuple[float, float],
    inside: Bools,
    losses: Floats,
) -> Iterator[DosePoint]:
    x = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
    there = inside & np.isfinite(x)
    levels = np.unique(x[there])
    if len(levels) > _MAX_POINTS:
        shares = np.linspace(0, 1, _MAX_POINTS // 2 + 1)[:-1]
        starts = np.quantile(x[there], shares, method="nearest")
        # no range is inside the rule in part
        edges = [levels[levels >= bounds[0]][:1], levels[levels > bounds[1]][:1]]
        starts = np.unique(np.concatenate([starts, *edges]))
    else:
        starts = levels
    bins = np.searchsorted(starts, x[there], side="right") - 1
    values, errors = x[there], losses[there]
    for b in range(len(starts)):
        rows = bins == b
        yield DosePoint(
            column=column.name,
            low=float(values[rows].min()),
            high=float(values[rows].max()),
            n=int(rows.sum()),
            errors=float(errors[rows].sum()),
        )
