"""Proposals: the slices that a finder makes of the discovery units, before anything is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from types import NoneType
from typing import Any, Literal, get_origin, get_type_hints

import msgspec
import numpy as np
from msgspec import Struct

from groundfault.auditing.preparation import start_audit
from groundfault.auditing.prepared_audit import PreparedAudit
from groundfault.auditing.report_schema import Preview
from groundfault.base.arrays import Floats
from groundfault.core.candidate import Candidate, Library, unique_names
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan
from groundfault.core.units import Units
from groundfault.errors import PlanError
from groundfault_lab.slicing.replays import describe_chance, measure_chance


class ProposalSummary(Preview, frozen=True, kw_only=True):
    """The search of a finder, slices aside.

    Attributes
    ----------
    finder : str
    settings : dict
        Of the finder, those that are plain words and numbers.
    selected : bool
        Whether the finder looked at outcomes: the losses of its slices are then too large on
        average.
    n, n_discovery, n_holdout : int
        Units: of the evidence, and of each part.
    discovery_error_rate : float
        Mean loss over the discovery units.
    left_out : list of str
        Columns that were not searched because they predict the outcome almost perfectly.
    seed : int
        Of the split.
    library : str
        Hash of the proposals as candidates.
    searches : int
        Times that the search was repeated on permuted errors.
    """

    schema_version: int = 1
    finder: str
    settings: dict[str, Any]
    selected: bool
    n: int
    n_discovery: int
    n_holdout: int
    discovery_error_rate: float
    left_out: list[str]
    seed: int
    library: str
    searches: int = 0


class Proposal(Struct, frozen=True):
    """A slice, with its failure rates on the units it was proposed from.

    Attributes
    ----------
    name, rule, meaning : str
    on, off : int
        Discovery units on and off the slice.
    on_rate, off_rate, lift : float or None
        Mean losses of these units, over all models, and their difference. Where the finder looked
        at outcomes they were selected for being large, and are too large on average.
    score : float or None
        The finder's own, where it has one.
    group : int or None
        Slices of one group are parts of each other, where the finder says so.
    p : float or None
        Share of searches on permuted errors that find a slice as good, by the finder's own score
        where it repeats its search itself, and else by lift; None where none was repeated.
    """

    name: str
    rule: str
    meaning: str
    on: int
    off: int
    on_rate: float | None
    off_rate: float | None
    lift: float | None
    score: float | None = None
    group: int | None = None
    p: float | None = None


class Proposals(Struct, frozen=True):
    """What a finder proposes; nothing of it is confirmed.

    No outcome of the holdout was read, and nothing recorded.

    Attributes
    ----------
    rows : tuple of Proposal
        In the finder's order.
    library : Library
        The same as candidates, to freeze and judge: ``groundfault audit --library``.
    summary : ProposalSummary
        The finder and its settings, sizes, the discovery failure rate, whether the numbers are
        selected, and columns that were left out because they predict the outcome.
    """

    rows: tuple[Proposal, ...]
    library: Library
    summary: ProposalSummary

    @property
    def best_p(self) -> float | None:
        """Return the smallest p; None where the search was not repeated, or nothing is proposed."""
        return min((row.p for row in self.rows if row.p is not None), default=None)

    @property
    def chance(self) -> str:
        """Return what the slices are worth beside those of chance; empty without any."""
        return describe_chance(self.best_p, self.summary.searches) if self.rows else ""

    def to_dict(self) -> dict[str, Any]:
        """Return plain words and numbers."""
        summary = msgspec.structs.asdict(self.summary)
        return {**summary, "chance": self.chance, "slices": msgspec.to_builtins([*self.rows])}


def propose(
    evidence: Evidence,
    finder: Any = "sliceline",
    plan: Plan | None = None,
    max_slices: int | None = None,
    permutations: int = 0,
) -> Proposals:
    """Let one finder propose slices of the discovery units, with their failure rates there.

    Parameters
    ----------
    evidence : Evidence
    finder : finder or str
    plan : Plan, optional
        Only its split is used. An audit of the same evidence that splits otherwise refuses these
        proposals: it would test them on units they were selected from.
    max_slices : int, optional
        Keep the first so many.
    permutations : int
        The search is repeated so often on permuted errors, for the p of each slice. A finder that
        has a setting of that name does so itself; other searches are repeated whole.

    Raises
    ------
    InputError
        If there is nothing to explain, or the finder cannot use the columns.
    PlanError
        If the finder is unknown, or its settings cannot be.

    Examples
    --------
    >>> import groundfault, polars
    >>> table = polars.DataFrame({"lang": ["de", "en"] * 50, "error": [1, 0, 0, 0] * 25})
    >>> evidence = groundfault.Evidence.from_table(table, outcome="error")
    >>> [row.name for row in propose(evidence).rows]
    ['lang = de']
    """
    audit = start_audit(evidence, plan)
    plain = configure_finder(finder, {}) if isinstance(finder, str) else finder
    search = _Search(plain, permutations)
    library = Library.of(audit.propose([search])[:max_slices])
    losses = _mean_losses(audit)
    marks = replace(audit, library=library).marks.take(np.flatnonzero(audit.discovery_mask))
    tables = Units.of(marks, losses[None]).tables
    rates = np.column_stack([tables.on_rate, tables.off_rate, tables.lift])
    if permutations and not search.permutes:
        rng = audit.plan.rng("propose")
        search.scores = _replay(audit, search.finder, library, max_slices, permutations, rng)
    counts = zip(library, tables.on.tolist(), tables.off.tolist(), rates.tolist(), strict=True)
    rows = []
    for c, on, off, numbers in counts:
        known = (None if np.isnan(number) else number for number in numbers)
        scores = search.scores.get(c.rule, {})
        rows.append(Proposal(c.name, c.rule, c.meaning, on, off, *known, **scores))
    rate = float(np.nanmean(losses))
    searches = int(getattr(search.finder, "permutations", permutations))
    return Proposals(
        tuple(rows), library, _summarize(search.finder, audit, library, rate, searches)
    )


def configure_finder(
    name: str, settings: dict[str, Any], others: Mapping[str, Callable[..., Any]] | None = None
) -> Any:
    """Return the finder of a name with other settings than its defaults.

    Parameters
    ----------
    name : str
    settings : dict
    others : mapping of str to callable, optional
        Slicers that no audit knows, by name.

    Raises
    ------
    PlanError
        If there is no such finder or setting, or a setting cannot be.
    """
    from groundfault.finders import get

    maker: Callable[..., Any] = (others or {}).get(name) or get(name)
    names = (
        [f.name for f in fields(maker) if f.init and f.name != "name"]
        if is_dataclass(maker)
        else list(settings)
    )
    for setting in settings:
        if setting not in names:
            raise PlanError(
                f"the finder {name!r} has no setting {setting!r}; it has "
                f"{', '.join(names) or 'none'}"
            )
    try:
        finder = maker(**settings)
    except TypeError as error:
        raise PlanError(
            f"the finder {name!r} cannot be made with these settings: {error}"
        ) from None
    _check_types(name, maker, settings)
    return finder


def _check_types(name: str, maker: Callable[..., Any], settings: dict[str, Any]) -> None:
    """Compare words and numbers of a shell or a file with the types of a finder's settings."""
    try:
        types = get_type_hints(maker)
    except NameError:  # of another package, imported for type checkers alone
        return
    for setting, value in settings.items():
        kind = types.get(setting, Any)
        # of a choice among words finders themselves say more plainly what it may be
        plain = type(value) in (str, int, float, bool, NoneType, list)
        if not plain or get_origin(kind) is Literal:
            continue
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            raise PlanError(
                f"the finder {name!r} cannot have {setting}={value!r}: {error}"
            ) from None
        except TypeError:  # a type that msgspec does not know
            continue


class _Search:
    """A finder that searches once, and remembers the scores of the slices it finds."""

    def __init__(self, finder: Any, permutations: int = 0) -> None:
        self.permutes = hasattr(finder, "permutations")
        if self.permutes and permutations and not finder.permutations:
            finder = replace(finder, permutations=permutations)
        self.finder = finder
        self.name: str = finder.name
        self.uses_outcomes = bool(getattr(finder, "uses_outcomes", False))
        self.scores: dict[str, dict[str, Any]] = {}

    def propose(self, discovery: Evidence) -> Iterable[Candidate]:
        """Return the finder's candidates; of one that scores its slices, those of the slices."""
        if not hasattr(self.finder, "find"):
            proposals: Iterable[Candidate] = self.finder.propose(discovery)
            return proposals
        slices = self.finder.find(discovery)
        self.scores = {s.rule: {"score": s.score, "group": s.group, "p": s.p} for s in slices}
        candidates: Iterable[Candidate] = self.finder.to_candidates(slices)
        return candidates


def _replay(
    audit: PreparedAudit,
    finder: Any,
    library: Library,
    max_slices: int | None,
    searches: int,
    rng: np.random.Generator,
) -> dict[str, dict[str, Any]]:
    """Return the p of each slice by its rule."""

    def search(evidence: Evidence) -> Sequence[Candidate]:
        # what was fixed without a look at outcomes is the same whatever they are
        if not getattr(finder, "uses_outcomes", False):
            return library.candidates
        return unique_names(finder.propose(evidence))[:max_slices]

    discovery = audit.visible_evidence
    p = measure_chance(discovery, library.candidates, search, finder, searches, rng)
    return {c.rule: {"p": one} for c, one in zip(library, p, strict=True)}


def _mean_losses(audit: PreparedAudit) -> Floats:
    """Return the mean loss of each discovery unit over all outcomes, NaN where none was scored."""
    # the holdout is taken away first: not even the sum of its losses is computed
    evidence = audit.evidence
    # of losses alone: the attributes, of which there may be gigabytes, are not copied once more
    keys = replace(evidence, frame=evidence.frame.select(evidence.roles.columns))
    losses = audit.read_losses(keys.take(audit.discovery_mask[evidence.unit_index]))
    is_scored = ~np.isnan(losses)
    count = is_scored.sum(axis=0)
    return np.asarray(np.where(is_scored, losses, 0.0).sum(axis=0) / np.where(count, count, np.nan))


def _summarize(
    finder: Any, audit: PreparedAudit, library: Library, rate: float, searches: int
) -> ProposalSummary:
    n_discovery = int(audit.discovery_mask.sum())
    return ProposalSummary(
        finder=finder.name,
        settings=_list_settings(finder),
        selected=bool(getattr(finder, "uses_outcomes", False)),
        n=audit.evidence.unit_count,
        n_discovery=n_discovery,
        n_holdout=audit.evidence.unit_count - n_discovery,
        discovery_error_rate=rate,
        left_out=sorted(audit.leaks),
        seed=audit.plan.seed,
        library=library.hash,
        searches=searches,
    )


def _list_settings(finder: Any) -> dict[str, Any]:
    """Return the settings of a finder that are plain words and numbers."""
    if not is_dataclass(finder):
        return {}
    settings = ((f.name, getattr(finder, f.name)) for f in fields(finder) if f.init)
    return {
        name: value
        for name, value in settings
        if value is None or isinstance(value, str | int | float | tuple)
    }
