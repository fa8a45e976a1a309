"""Methods that say in rules where a model fails: ours, and others' beside it.

Each is shown a sample and gives rules in its own order, the most important first; a rule can be
applied to any table of the same columns, so that all are scored alike on examples they never saw.
Rules under which a model does better are left out."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import groundfault
from groundfault.core.candidate import Candidate, add_fitted_columns
from groundfault.core.evidence import Evidence
from groundfault.core.rules import Rule
from groundfault.errors import InputError
from groundfault.finders import get

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

OLD_FINDERS = ("instrument", "declared", "thresholds", "categories", "text")
"""What an audit of 0.1.0 asked for candidates."""

_CONDITIONS = 3
_SLICES = 10
_SUPPORT = 8
_LEAVES = (2, 4, 8, 16, 32, 64)
_FOLDS = 5
# values of a column of words beyond which a table of 0 and 1 leaves it out, as prose
_VALUES = 100


@dataclass(frozen=True)
class Description:
    """One rule of a method.

    Attributes
    ----------
    text : str
        To be read.
    apply : callable
        Of a table, for which of its rows the rule holds: bool, shape (rows,).
    alternatives : tuple of callable
        The same of the rules that the method names beside it, as ones that say the same.
    rates : tuple of float
        Failure rate inside, the rate to expect of new examples, and the ends of its 90 % interval;
        empty for a method that expects none.
    """

    text: str
    apply: Callable[[pl.DataFrame], Bools]
    alternatives: tuple[Callable[[pl.DataFrame], Bools], ...] = ()
    rates: tuple[float, ...] = ()


@dataclass(frozen=True)
class RuleMethod:
    """A way to describe failures.

    Attributes
    ----------
    label : str
        In tables.
    search : callable
        Of evidence on one model whose outcomes differ, the rules.
    columns : bool
        Whether it is shown attributes; else texts alone.
    needs : str
        A library that it needs; empty for none.
    """

    label: str
    search: Callable[[Evidence], list[Description]]
    columns: bool = True
    needs: str = ""

    @property
    def installed(self) -> bool:
        """Whether it can run here."""
        return not self.needs or find_spec(self.needs) is not None

    def describe(self, evidence: Evidence) -> list[Description]:
        """The rules; none where all outcomes are alike."""
        return self.search(evidence) if evidence.loss.drop_nulls().n_unique() > 1 else []


# --- ours


def name_modes(evidence: Evidence) -> list[Description]:
    """Failure modes of an audit with default settings."""
    return _list_modes(groundfault.audit(evidence, ledger=None))


def _list_modes(report: Any) -> list[Description]:
    return [
        Description(
            mode.meaning,
            partial(_holds, mode),
            tuple(partial(_apply_rule, one.rule) for one in mode.alternatives),
            (mode.rate, mode.corrected, *mode.interval),
        )
        for mode in report.modes
    ]


def _holds(mode: Any, frame: pl.DataFrame) -> Bools:
    holds: Bools = mode.holds(frame).to_numpy()
    return holds


def report_all(evidence: Evidence) -> list[Description]:
    """All that an audit with default settings says: failure modes, then confirmed findings."""
    report = groundfault.audit(evidence, ledger=None)
    return _list_modes(report) + _list_findings(report)


def confirm(evidence: Evidence, judge: str) -> list[Description]:
    """Confirmed findings of a judge, of the candidates of 0.1.0."""
    plan = groundfault.Plan(judge=judge)
    report = groundfault.audit(evidence, plan, finders=OLD_FINDERS, modes=False, ledger=None)
    return _list_findings(report)


def _list_findings(report: Any) -> list[Description]:
    """Confirmed findings that errors are more frequent."""
    return [
        Description(finding.name, partial(_apply_rule, finding.rule))
        for finding in report.confirmed
        if (finding.full.lift or 0) > 0
    ]


def _apply_rule(rule: str, frame: pl.DataFrame) -> Bools:
    expression = Rule.parse(rule).to_polars().fill_null(False)
    holds: Bools = frame.select(expression.alias("holds")).to_series().to_numpy()
    return holds


def propose(evidence: Evidence, finder: str, settings: Mapping[str, Any]) -> list[Description]:
    """What a finder proposes when it is shown all outcomes; none where it lacks its columns."""
    search: Any = get(finder)
    if any(field.name == "min_share" for field in fields(search)):
        settings = {"min_share": 0.0, **settings}
    try:
        candidates = list(search(**settings).propose(evidence))
    except InputError:
        return []
    return [Description(c.name, partial(_apply_candidate, c)) for c in candidates]


def _apply_candidate(candidate: Candidate, frame: pl.DataFrame) -> Bools:
    return _apply_rule(candidate.rule, add_fitted_columns(frame, [candidate]))


# --- trees, which read a table of numbers


@dataclass(frozen=True)
class RowCoding:
    """Attributes as numbers: one column of 0 and 1 for each value of a column of words.

    Attributes
    ----------
    columns : tuple of (str, str or None)
        Column, and the value that it is compared with.
    """

    columns: tuple[tuple[str, str | None], ...]

    @classmethod
    def of(cls, evidence: Evidence) -> RowCoding:
        """The coding of some evidence's attributes; prose, ids and lists are left out."""
        columns: list[tuple[str, str | None]] = []
        for name in evidence.attributes:
            column = evidence.frame[name]
            if column.dtype.is_numeric() or column.dtype == pl.Boolean:
                columns.append((name, None))
            elif column.dtype == pl.String and column.n_unique() <= min(_VALUES, len(column) / 2):
                columns += [(name, value) for value in column.unique().drop_nulls().sort()]
        return cls(tuple(columns))

    def matrix(self, frame: pl.DataFrame) -> Floats:
        """A row for each row of a table; missing values are zeros."""
        numbers = [
            frame[name].cast(pl.Float64) if value is None else (frame[name] == value)
            for name, value in self.columns
        ]
        table = [number.cast(pl.Float64).fill_null(0.0).to_numpy() for number in numbers]
        return np.column_stack(table) if table else np.empty((frame.height, 0))

    def word(self, column: int, above: bool, cut: float) -> str:
        """One condition of a tree."""
        name, value = self.columns[column]
        if value is None:
            return f"{name} {'>' if above else '<='} {cut:g}"
        return f"{name} {'=' if above else '<>'} '{value}'"


@dataclass(frozen=True)
class Box:
    """Cuts of a coding's columns that all have to hold: (column, above, cut)."""

    coding: RowCoding
    cuts: tuple[tuple[int, bool, float], ...]

    def __call__(self, frame: pl.DataFrame) -> Bools:
        """For which rows they all hold."""
        numbers = self.coding.matrix(frame)
        holds = np.ones(frame.height, dtype=np.bool_)
        for column, above, cut in self.cuts:
            holds &= (numbers[:, column] > cut) == above
        return holds

    def __str__(self) -> str:
        return " AND ".join(self.coding.word(*cut) for cut in self.cuts) or "everything"


def grow_tree(evidence: Evidence) -> list[Description]:
    """Leaves of a classification tree that fail more often than all, by their excess of failures.

    The number of leaves is chosen by five-fold cross-validation of the Brier score."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.tree import DecisionTreeClassifier

    coding, errors = RowCoding.of(evidence), evidence.loss.to_numpy() > 0.5
    if min(errors.sum(), (~errors).sum()) < _FOLDS:
        return []
    search = GridSearchCV(
        DecisionTreeClassifier(min_samples_leaf=_SUPPORT, random_state=0),
        {"max_leaf_nodes": list(_LEAVES)},
        scoring="neg_brier_score",
        cv=StratifiedKFold(_FOLDS, shuffle=True, random_state=0),
    )
    numbers = coding.matrix(evidence.frame)
    tree = search.fit(numbers, errors).best_estimator_.tree_
    leaves = []
    reached = tree.apply(numbers.astype(np.float32))
    for leaf, cuts in _walk(tree):
        inside = errors[reached == leaf]
        excess = inside.sum() - len(inside) * errors.mean()
        if excess > 0:
            leaves.append((excess, Box(coding, cuts)))
    leaves.sort(key=lambda pair: -pair[0])
    return [Description(str(box), box) for _, box in leaves]


def _walk(tree: Any, node: int = 0) -> Iterator[tuple[int, tuple[tuple[int, bool, float], ...]]]:
    """Leaves of a scikit-learn tree, each with its cuts."""
    if tree.children_left[node] < 0:
        yield node, ()
        return
    column, cut = int(tree.feature[node]), float(tree.threshold[node])
    for above, child in ((False, tree.children_left[node]), (True, tree.children_right[node])):
        for leaf, cuts in _walk(tree, child):
            yield leaf, ((column, above, cut), *cuts)


def fit_rules(evidence: Evidence) -> list[Description]:
    """Rules of RuleFit, with imodels' defaults, that raise the chance of failure, by importance."""
    from imodels import RuleFitClassifier

    coding, errors = RowCoding.of(evidence), evidence.loss.to_numpy() > 0.5
    if min(errors.sum(), (~errors).sum()) < _FOLDS:
        return []
    names = [f"x{i}" for i in range(len(coding.columns))]
    # of its own use of scikit-learn, and of rules without rows
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        fit = RuleFitClassifier(random_state=0).fit(
            coding.matrix(evidence.frame), errors.astype(int), feature_names=names
        )
    table = fit._get_rules()
    table = table[(table["type"] == "rule") & (table["coef"] > 0)]
    boxes = [_read_box(rule, coding) for rule in table.sort_values("importance")["rule"][::-1]]
    return [Description(str(box), box) for box in boxes]


def _read_box(rule: str, coding: RowCoding) -> Box:
    """The cuts of a rule such as ``x2 <= 0.5 and x42 > 0.5``."""
    words = [part.split() for part in rule.split(" and ")]
    return Box(coding, tuple((int(x[1:]), sign == ">", float(cut)) for x, sign, cut in words))


def _searching(finder: str, **settings: Any) -> Callable[[Evidence], list[Description]]:
    return partial(propose, finder=finder, settings=settings)


METHODS: Mapping[str, RuleMethod] = {
    "modes": RuleMethod("failure modes", name_modes),
    "modes-text": RuleMethod("failure modes, text alone", name_modes, columns=False),
    "sliceline": RuleMethod("SliceLine, top ten", _searching("sliceline", k=_SLICES)),
    "cart": RuleMethod("tree (CART)", grow_tree),
    "rulefit": RuleMethod("RuleFit (imodels)", fit_rules, needs="imodels"),
    "pysubgroup": RuleMethod(
        "pysubgroup, top ten",
        _searching("pysubgroup", k=_SLICES, max_level=_CONDITIONS),
        needs="pysubgroup",
    ),
    "janus-a": RuleMethod("janus-a, the rule of its paper", partial(confirm, judge="janus-a")),
    "janus": RuleMethod("janus (default of 0.1.0)", partial(confirm, judge="janus")),
    "max-t": RuleMethod(
        "single conditions by max-t (Westfall and Young)", partial(confirm, judge="max-t")
    ),
    "audit": RuleMethod("default audit, with findings", report_all),
}
"""By name."""
