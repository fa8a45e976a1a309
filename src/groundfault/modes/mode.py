"""One failure mode: a rule, its counts, its p-values, and examples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from groundfault.core.plan import BarKind
from groundfault.core.rules import Rule
from groundfault.errors import InputError

if TYPE_CHECKING:
    import polars as pl

Side = Literal["failing", "passing", "near"]

EVERY_MODEL = "every model"
"""The outcome of modes that models share: the mean of their losses."""


class _Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a mode: immutable, and an unknown field is an error."""


class Alternative(_Section, frozen=True, kw_only=True):
    """Another rule that explains the same examples as well.

    Attributes
    ----------
    rule, meaning : str
        In SQL, and in English.
    overlap : float
        Examples that both rules match, over examples that at least one matches (Jaccard), in
        [0, 1].
    """

    rule: str
    meaning: str
    overlap: float


class DosePoint(_Section, frozen=True, kw_only=True):
    """The failures at one value, or in one range, of a column that the rule cuts.

    Attributes
    ----------
    column : str
    low, high : float
        Both inclusive; equal for a single value.
    n : int
        Units there that match the rest of the rule.
    errors : float
    """

    column: str
    low: float
    high: float
    n: int
    errors: float


class ModeExample(_Section, frozen=True, kw_only=True):
    """One example of a mode.

    Attributes
    ----------
    id : str
    side : {"failing", "passing", "near"}
        Inside the rule and wrong; inside and right; outside because of only one condition.
    texts : dict of str to str
        Its texts by column (prompt, answer, target), each of at most 2,000 characters; empty if the
        report leaves texts out.
    loss : float or None
        Loss of its unit, in [0, 1]; 1 is wrong.
    """

    id: str
    side: Side
    texts: dict[str, str] = {}
    loss: float | None = None


class ModeChange(_Section, frozen=True, kw_only=True):
    """The change of failures inside a rule from a first run to a second.

    Attributes
    ----------
    before, before_outside : float
        Failures of the first run inside, and of all other units (losses summed).
    worse, better : int
        Units inside whose loss rose, and whose loss fell; 0 for runs over different examples.
    difference : float
        Mean change inside, in [-1, 1]; for runs over different examples, between similar ones.
    elsewhere : float
        Mean change of all other units.
    interval : pair of float
        Interval of the mean change inside, for this rule alone, at level 1 - alpha.
    n_before, n_before_outside : int or None
        Units of the first run inside, and outside, if the runs are over different examples.
    """

    before: float
    before_outside: float
    worse: int
    better: int
    difference: float
    elsewhere: float
    interval: tuple[float, float]
    n_before: int | None = None
    n_before_outside: int | None = None


class Mode(_Section, frozen=True, kw_only=True):
    """A rule under which a model fails more often than elsewhere.

    Attributes
    ----------
    rule : str
        SQL over columns of the evidence. An example whose values are missing is outside.
    meaning : str
        The rule in English.
    conditions : tuple of str
        The conditions that AND joins, each in English.
    outcome : str
        The model; empty for a single model, ``every model`` for the mean over all. In a comparison
        the list, ``worse`` or ``better``; failures are then the second run's.
    n, errors : int, float
        Units inside, and failures of these units (losses summed).
    n_outside, errors_outside : int, float
        The same for all other units, or for the other units of the context if there is one.
    context : str
        The condition, in English, within which the other conditions mean more failures; empty for a
        rule that is compared with all other units.
    n_new, errors_new : int, float
        Units inside that no earlier mode of the same outcome covers, and their failures.
    corrected : float or None
        Expected failure rate of new examples inside: rules chosen on the same examples look worse
        than they are. None in reports of earlier releases.
    interval : pair of float
        Interval of that rate at level 1 - alpha: Wilson's, the lower end around the corrected rate.
    p_marginal : float
        p-value against equal failure rates inside and outside, adjusted for all possible rules. For
        a rule proposed by other rows, the largest p-value listed so far.
    p_conditional : float
        The same, given the modes listed before it.
    source : str
        Proposer of the rule: ``modes`` for rules in the search's own language.
    alternatives : tuple of Alternative
    doses : tuple of DosePoint
        For each column of numbers in the rule, failures along it; in the order of the column.
    sample : tuple of ModeExample
        Typical and different examples; `examples` selects some. For a change, failing examples
        changed in the direction of the list, and passing examples are all others inside.
    change : ModeChange or None
        The change since the first of two runs; None without a comparison.
    stability : float or None
        Share of samples of nine tenths of the units in which the rule passes its bars. None for
        graded losses, for comparisons and in reports of earlier releases.
    """

    rule: str
    meaning: str
    conditions: tuple[str, ...]
    outcome: str
    n: int
    errors: float
    n_outside: int
    errors_outside: float
    n_new: int
    errors_new: float
    interval: tuple[float, float]
    p_marginal: float
    p_conditional: float
    corrected: float | None = None
    context: str = ""
    source: str = "modes"
    alternatives: tuple[Alternative, ...] = ()
    doses: tuple[DosePoint, ...] = ()
    sample: tuple[ModeExample, ...] = ()
    change: ModeChange | None = None
    stability: float | None = None

    def __repr__(self) -> str:
        sizes = f"{self.rate:.0%} of {self.n:,}, elsewhere {self.rate_outside:.0%}"
        return f"<Mode: {self.meaning}, {sizes}>"

    @property
    def rate(self) -> float:
        """Return the failure rate inside."""
        return self.errors / self.n

    @property
    def rate_outside(self) -> float:
        """Return the failure rate outside; 0 without units outside."""
        return self.errors_outside / self.n_outside if self.n_outside else 0.0

    @property
    def rate_before(self) -> float:
        """Return the failure rate of the first of two runs inside; 0 without a comparison."""
        if self.change is None:
            return 0.0
        return self.change.before / max(1, self.change.n_before or self.n)

    @property
    def models(self) -> tuple[str, ...]:
        """Return the failing model, or `EVERY_MODEL`; empty for a single model and in comparisons.
        `Report.matrix` has the rate of each model."""
        return (self.outcome,) if self.outcome and self.change is None else ()

    @property
    def is_less_frequent(self) -> bool:
        """Return whether this is a change for the better, with fewer failures than before."""
        return self.change is not None and self.change.difference < 0

    @property
    def is_unpaired(self) -> bool:
        """Return whether this is a change between runs that share no example."""
        return self.change is not None and self.change.n_before is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """Return columns that the rule reads, sorted."""
        return Rule.parse(self.rule).columns

    def holds(self, frame: pl.DataFrame) -> pl.Series:
        """Return which rows of a table with the rule's columns match the rule.

        Missing parts of a column (`created.hour`, `path.level 1`) are computed from the column.

        Parameters
        ----------
        frame : polars.DataFrame
            Or a table of pandas or Arrow.

        Returns
        -------
        polars.Series
            Boolean, a value each row; a row whose values are missing is false.

        Raises
        ------
        InputError
            If a column is missing.
        """
        from polars import DataFrame

        from groundfault.core.roles import find_part

        frame = DataFrame(frame)
        found = {name: find_part(frame, name) for name in self.columns}
        missing = [name for name, column in found.items() if column is None]
        if missing:
            raise InputError(
                f"the rule {self.rule} reads {', '.join(map(repr, missing))}, which the table "
                f"does not have; its columns are {', '.join(frame.columns[:20])}"
            )
        columns = [column.alias(name) for name, column in found.items() if column is not None]
        # NaN is not a value: SQL would order it as the largest
        present = frame.select(x.fill_nan(None) if x.dtype.is_float() else x for x in columns)
        expression = Rule.parse(self.rule).to_polars().fill_null(False)
        return present.select(expression.alias("holds")).to_series()

    def examples(self, side: Side = "failing", count: int = 5) -> tuple[ModeExample, ...]:
        """Return examples that the report keeps, the most typical first.

        Parameters
        ----------
        side : {"failing", "passing", "near"}
        count : int
            Largest number to return; a report keeps five of each side.
        """
        return tuple(e for e in self.sample if e.side == side)[:count]


class RuleClass(_Section, frozen=True, kw_only=True):
    """One class of rules of the search's language.

    Attributes
    ----------
    name : str
    rules : int
        Number of rules on these examples, independent of their outcomes.
    weight : float
        Its share of the error level.
    """

    name: str
    rules: int
    weight: float


class MatrixCell(_Section, frozen=True, kw_only=True):
    """The failures of one model inside a rule.

    Attributes
    ----------
    model : str
    n, errors : int, float
        Scored units inside, and failures of these units (losses summed).
    mark : {"named", "confirmed", ""}
        Named: the model fails more often inside, also given the rows before. Confirmed: it fails
        more often inside. Empty: neither was shown, which does not mean that the model passes.
    """

    model: str
    n: int
    errors: float
    mark: Literal["named", "confirmed", ""]

    @property
    def rate(self) -> float | None:
        """Return the failure rate; None without a scored unit."""
        return self.errors / self.n if self.n else None


class MatrixRow(_Section, frozen=True, kw_only=True):
    """A rule, and each model's failures inside.

    Attributes
    ----------
    rule, meaning : str
        In SQL, and in English.
    n : int
        Units inside.
    cells : tuple of MatrixCell
        One for each model.
    only : str
        The model that fails there more often than each other one, as tested; else empty.
    """

    rule: str
    meaning: str
    n: int
    cells: tuple[MatrixCell, ...]
    only: str = ""

    @property
    def is_shared(self) -> bool:
        """Return whether every model is confirmed to fail more often inside."""
        return all(cell.mark for cell in self.cells)


class ModeSearch(_Section, frozen=True, kw_only=True):
    """The search for failure modes: its extent, its guarantee, and the coverage of the modes.

    Attributes
    ----------
    level : float
        Family-wise error level over all modes, for each of the two claims.
    depth : int
        Largest number of conditions in a rule.
    columns : tuple of str
        Columns whose values and texts rules may name.
    within : tuple of str
        Columns that are held fixed.
    classes : tuple of RuleClass
    outcomes : tuple of Coverage
        Joint coverage of the modes of each outcome.
    detectable : dict of str to float or None
        For each share of the units inside a rule, the failure rate at which a single condition is
        named with 80 % power; in a comparison, the rise of that rate. None if no rate is enough.
    detectable_by : dict of str to dict
        The same for a ``range`` of numbers, a ``word``, a ``value pair`` and another ``pair`` of
        conditions, if the search has them. Empty in comparisons and in reports of earlier releases.
    remarks : tuple of str
        Sentences about rules left out of the search.
    bars : {"permutation", "bonferroni"}
        Correction for the number of rules: `groundfault.modes.bars.Bars`.
    searched : int or None
        Rows in which rules were searched, if all other rows judged them; None if all units did
        both.
    overall : pair of float, or None
        For a comparison: p-values that all units together got no worse, and no better, adjusted for
        all rules tested with it.
    matrix : tuple of MatrixRow
        For several models: one list of rules for all.
    like_for_like : tuple of float, or None
        For runs over different examples: the change of all examples, each compared with similar
        examples in the other run, and the ends of its interval.
    """

    level: float
    depth: int
    columns: tuple[str, ...]
    within: tuple[str, ...]
    classes: tuple[RuleClass, ...]
    outcomes: tuple[Coverage, ...]
    detectable: dict[str, float | None]
    remarks: tuple[str, ...] = ()
    bars: BarKind = "bonferroni"
    searched: int | None = None
    overall: tuple[float, float] | None = None
    matrix: tuple[MatrixRow, ...] = ()
    detectable_by: dict[str, dict[str, float | None]] = {}
    like_for_like: tuple[float, float, float] | None = None

    @property
    def rules(self) -> int:
        """Return the number of possible rules."""
        return sum(one.rules for one in self.classes)


class Coverage(_Section, frozen=True, kw_only=True):
    """The joint coverage of units and failures by the modes of one outcome."""

    outcome: str
    n: int
    errors: float
    covered: int
    covered_errors: float
