"""Pools: the cases that a sequential audit may ask about, and their declared groups."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import permutations
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from groundfault.base.arrays import Bools, Floats, Ints
from groundfault.core.candidate import Candidate
from groundfault.core.column_meaning import require_direction
from groundfault.core.evidence import Evidence
from groundfault.errors import InputError
from groundfault.modes.mode import Mode
from groundfault.readers.table import TableSource, read_table
from groundfault.sequential import pool_parsing

MAX_PRIOR = 500
"""Failure modes of a prior. The longest list of an audit has a tenth; one costs some .02 s."""
_MAX_COLUMNS = 6
"""Columns whose orders are all tried for a hash of 0.1.0: 720 orders take a moment."""


def sort_groups(names: Iterable[str], first: str) -> list[str]:
    """Return the names of groups in the order in which they are hashed: ``first``, then by name."""
    return sorted(names, key=lambda name: (name != first, name))


def hash_content(content: Mapping[str, object]) -> str:
    """Return the SHA-256 of the content of a pool, its groups in the order in which they stand."""
    return hashlib.sha256(json.dumps(content, ensure_ascii=False).encode()).hexdigest()


def find_order(content: Mapping[str, Any], stored_hash: str, first: str) -> list[str] | None:
    """Return the order of groups that gives the stored hash; None where no likely one does.

    Tried are the order by name, the order as it stands, and every order of the columns that the
    groups were made from, with their levels sorted.
    """
    groups = content["groups"]
    for order in _list_orders(list(groups), first):
        ordered = {**content, "groups": {name: groups[name] for name in order}}
        if hash_content(ordered) == stored_hash:
            return order
    return None


def _list_orders(names: list[str], first: str) -> Iterator[list[str]]:
    yield sort_groups(names, first)
    yield names
    columns: dict[tuple[str, ...], list[str]] = {}
    for name in sort_groups(names, first):
        # a combination of two columns is named "a=1, b=2"
        key = tuple(part.split("=")[0] for part in name.split(", "))
        columns.setdefault(key, []).append(name)
    fixed = columns.pop((first,), [])
    if len(columns) <= _MAX_COLUMNS:
        for blocks in permutations(columns.values()):
            yield [*fixed, *(name for block in blocks for name in block)]


ALL = "all cases"
"""The group that every pool of given cases has."""


@dataclass(frozen=True, eq=False)
class Pool:
    """N cases without scores, and G declared groups of them.

    Make one with `from_table`, `from_evidence` or `from_arrays`. Cases are kept sorted by id and
    groups by name, in any order.

    Attributes
    ----------
    ids : tuple of str, length N
    groups : tuple of str, length G
        They may overlap. Where the cases are given, the first is `ALL`, so that "every group
        reaches the threshold" speaks of the cases as a whole too. Generated cases have categories
        instead, one each.
    members : bool array, shape (G, N)
    embedding : float64 array, shape (N, D), or None
        Vectors that policies may learn from, besides groups.
    cases : polars.DataFrame, optional
        A row a case, for the labeller.
    recorded : float64 array, shape (N,), or None
        Known scores to replay, NaN where there is none. No policy sees them, and they are no part
        of the hash.
    generated : bool
        The cases are fresh draws from generators, one a category: what is claimed is claimed of the
        generators.
    sources : tuple of str
    embedded : str
        SHA-256 of the embedding; empty where there is none.
    stored_hash : str
        The hash in a record of version 0.1.0, which depended on the order of the groups; empty
        elsewhere.
    """

    ids: tuple[str, ...]
    groups: tuple[str, ...]
    members: Bools
    embedding: Floats | None = None
    cases: pl.DataFrame | None = None
    recorded: Floats | None = None
    generated: bool = False
    sources: tuple[str, ...] = ()
    embedded: str = ""
    stored_hash: str = ""

    @classmethod
    def from_table(
        cls,
        source: TableSource,
        *,
        id: str | None = None,
        groups: Sequence[str | Candidate] = (),
        embedding: object = None,
        scores: str | None = None,
        positive_is_good: bool | None = None,
        generated: bool = False,
    ) -> Pool:
        """Read a pool from a file, a directory, or a table in memory.

        Parameters
        ----------
        source : path, or a polars, pandas, Arrow or DuckDB table
        id : str, optional
            Column of case ids; by default rows are numbered.
        groups : sequence of str or Candidate
            Column whose levels are groups; A*B for the combinations of two; repeatable. A rule
            is a group of its own.
        embedding : str, path, sequence of str, or array of shape (N, D), optional
            Texts or numbers that policies learn from, besides the groups. A column of texts (see
            `groundfault.slicing.embedding`) or of lists; names or a glob of numeric columns; a
            table of the same ids; or a matrix, row by row.
        scores : str, optional
            Column with recorded scores in [0, 1] to replay; empty without one.
        positive_is_good : bool, optional
            Whether a score of 1 is a pass. Left out, it is, unless the column's name says
            otherwise: one called ``error`` or ``loss`` stops with both calls to choose from.
        generated : bool
            Treat the pool as a bank of generated cases with one category each (``groups``).

        Raises
        ------
        InputError
            If there are no cases, ids repeat, a column is missing, a group is empty or no group, an
            embedding is not finite, a score is outside [0, 1], or nothing says which way scores
            such as ``error`` point.

        Examples
        --------
        >>> table = pl.DataFrame({"item": ["a", "b", "c", "d"], "lang": ["de", "fr", "de", "fr"]})
        >>> Pool.from_table(table, id="item", groups=["lang"]).groups
        ('all cases', 'lang=de', 'lang=fr')
        """
        if scores is not None and positive_is_good is None:
            require_direction(scores, one_is_pass=True)
        frame, sources = read_table(source)
        where = sources[0]
        ids = pool_parsing.read_ids(frame, id, where)
        pool_parsing.check_ids(ids)
        recorded = None if scores is None else pool_parsing.read_scores(frame, scores, where)
        if recorded is not None and positive_is_good is False:
            recorded = 1 - recorded
        points, numeric = pool_parsing.read_embedding(frame, embedding, id, where)
        masks = [
            pair for group in groups for pair in pool_parsing.parse_groups(frame, group, where)
        ]
        cases = frame.drop(*numeric, *([scores] if scores else []))
        return _assemble(ids, masks, points, cases, recorded, sources, generated=generated)

    @classmethod
    def from_evidence(
        cls, evidence: Evidence, *, groups: Sequence[str | Candidate] = (), embedding: object = None
    ) -> Pool:
        """Return the examples of evidence about one model; a score is one minus the loss.

        Raises
        ------
        InputError
            If an example has several rows, of several models or repeats; else as `from_table`.
        """
        frame, name = evidence.frame, evidence.roles.id or ""
        if frame[name].n_unique() < frame.height:
            raise InputError(
                "the evidence has several rows an example; select one model and one repeat first"
            )
        hidden = {evidence.roles.outcome, evidence.roles.status, *evidence.roles.ignore}
        table = frame.drop(c for c in frame.columns if c in hidden)
        pool = cls.from_table(table, id=name, groups=groups, embedding=embedding)
        scores = (1.0 - evidence.loss).fill_null(float("nan"))
        of = dict(zip(frame[name].cast(pl.String), scores, strict=True))
        recorded = _freeze([of[i] for i in pool.ids])
        return replace(pool, recorded=recorded, sources=evidence.provenance)

    @classmethod
    def from_arrays(
        cls,
        ids: Sequence[object],
        groups: Mapping[str, ArrayLike] | None = None,
        *,
        embedding: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        generated: bool = False,
    ) -> Pool:
        """Return a pool from arrays of length N.

        Parameters
        ----------
        ids : sequence, length N
        groups : mapping of name to array of shape (N,), optional
            An array of bool is a group; any other is a label, with a group for each of its levels.
        embedding : array of shape (N, D), optional
        scores : array of shape (N,), optional
            Recorded scores in [0, 1], NaN without one.
        generated : bool
            See `from_table`.

        Raises
        ------
        InputError
            As `from_table`.

        Examples
        --------
        >>> Pool.from_arrays(["a", "b", "c", "d"], {"long": [True, False, True, True]}).sizes
        array([4, 3])
        """
        names = [str(i) for i in ids]
        pool_parsing.check_ids(names)
        masks: list[tuple[str, Bools]] = []
        for name, values in (groups or {}).items():
            array = np.asarray(values)
            if array.shape != (len(ids),):
                raise InputError(
                    f"group {name!r} has shape {array.shape}; give {len(ids)} values, one a case"
                )
            if array.dtype == np.bool_:
                masks.append((name, array))
            else:
                levels = pool_parsing.split_levels(array.astype(str), name)
                masks += [(f"{name}={level}", mask) for level, mask in levels]
        recorded = None
        if scores is not None:
            recorded = pool_parsing.check_scores(scores, len(ids), "the array of scores")
        return _assemble(names, masks, embedding, None, recorded, ("arrays",), generated=generated)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def sizes(self) -> Ints:
        """Return the cases in each group, shape (G,)."""
        return np.asarray(self.members.sum(axis=1), dtype=np.int64)

    @cached_property
    def position(self) -> Mapping[str, int]:
        """Return the place of each id."""
        return {name: i for i, name in enumerate(self.ids)}

    def case(self, position: int) -> dict[str, Any]:
        """Return the columns of a case."""
        return {} if self.cases is None else self.cases.row(position, named=True)

    @cached_property
    def hash(self) -> str:
        """Return the SHA-256 of ids, groups and embedding; scores are left out.

        It depends on no order of rows or groups, but for the pool of a record of version 0.1.0.
        """
        return self.stored_hash or self.hash_by_name

    @cached_property
    def hash_by_name(self) -> str:
        """Return the hash with the groups sorted by name, by which two pools are compared."""
        content = self._content
        groups = content["groups"]
        ordered = {name: groups[name] for name in sort_groups(groups, ALL)}
        return hash_content({**content, "groups": ordered})

    def select_groups(self, mask: Bools) -> Pool:
        """Return the same cases with the groups of a mask, shape (G,), alone."""
        if mask.all():
            return self
        names = tuple(name for name, chosen in zip(self.groups, mask, strict=True) if chosen)
        return replace(self, groups=names, members=_freeze(self.members[mask]), stored_hash="")

    def declare_modes(
        self, modes: Sequence[Mode], threshold: float
    ) -> tuple[Pool, dict[str, float]]:
        """Declare failure modes of an earlier audit as groups, and return their expected means.

        Parameters
        ----------
        modes : sequence of Mode
            Of a report on other cases: of the last version, or of another model; at most 500.
        threshold : float
            Modes with an expected mean of this or more are left out, and modes that no case is in.

        Returns
        -------
        (pool, prior)
            For `SequentialPlan`, the mean of each group that was declared, named by its rule.

        Raises
        ------
        InputError
            If there are too many modes, or the pool has not the columns that their rules read.
        """
        if len(modes) > MAX_PRIOR:
            raise InputError(
                f"the prior has {len(modes):,} failure modes, and at most {MAX_PRIOR} are read: "
                "give the report of one audit"
            )
        if self.cases is None:
            raise InputError("a pool of arrays has no columns for rules: make it by from_table")
        masks, prior = dict(zip(self.groups, self.members, strict=True)), dict[str, float]()
        for mode in modes:
            mean = 1.0 - (mode.rate if mode.corrected is None else mode.corrected)
            inside = mode.holds(self.cases).to_numpy()
            if mean < threshold and inside.any():
                masks[mode.rule] = inside
                prior[mode.rule] = min(mean, prior.get(mode.rule, 1.0))
        names = tuple(sort_groups(masks, ALL))
        members = _freeze(np.stack([masks[name] for name in names]))
        return replace(self, groups=names, members=members, stored_hash=""), prior

    @property
    def _content(self) -> dict[str, Any]:
        groups = dict(zip(self.groups, map(to_hex, self.members), strict=True))
        ids, embedding = list(self.ids), self.embedded
        return {"ids": ids, "groups": groups, "generated": self.generated, "embedding": embedding}

    def outline(self) -> dict[str, Any]:
        """Return ids and groups as JSON holds them, to draw again and check the hash."""
        return {**self._content, "sources": list(self.sources), "hash": self.hash}

    @classmethod
    def from_outline(cls, outline: Mapping[str, Any]) -> Pool:
        """Return the pool of an outline, without embedding and texts.

        Raises
        ------
        InputError
            If it is not the outline of a pool, or its hash differs.
        """
        try:
            content = {key: outline[key] for key in ("ids", "groups", "generated", "embedding")}
            ids, groups = tuple(content["ids"]), dict(content["groups"])
            order = find_order({**content, "ids": list(ids)}, outline["hash"], ALL)
            names = list(groups) if order is None else order
            members = np.stack([from_hex(groups[name], len(ids)) for name in names])
            pool = cls(
                ids, tuple(names), _freeze(members), generated=bool(content["generated"]),
                sources=tuple(outline["sources"]), embedded=content["embedding"],
            )  # fmt: skip
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise InputError(f"not the outline of a pool ({error})") from None
        if order is None:
            raise InputError(
                "the record of the pool was altered: its ids and groups do not have its hash"
            )
        is_current = outline["hash"] == pool.hash
        return pool if is_current else replace(pool, stored_hash=outline["hash"])


def _assemble(
    ids: Sequence[str],
    masks: Iterable[tuple[str, Bools]],
    embedding: object,
    cases: pl.DataFrame | None,
    recorded: Floats | None,
    sources: tuple[str, ...],
    *,
    generated: bool,
) -> Pool:
    """Return a pool, sorted by id, checked and frozen."""
    # by name: neither draws nor the hash depend on the order in which groups were given
    masks = sorted(masks, key=lambda pair: pair[0])
    if generated and (not masks or np.any(np.sum([mask for _, mask in masks], axis=0) != 1)):
        raise InputError(
            "generated cases need one category each: name one column, or columns joined by *"
        )
    if not generated:
        masks = [(ALL, np.ones(len(ids), dtype=np.bool_)), *masks]
    names = [name for name, _ in masks]
    for name, mask in masks:
        if names.count(name) > 1:
            raise InputError(
                f"two groups are named {name!r} (every pool of given cases has {ALL!r}); rename one"
            )
        if not mask.any():
            raise InputError(f"the group {name!r} has no cases; leave it out")
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__))
    points, embedded = None, ""
    if embedding is not None:
        points = _freeze(pool_parsing.check_embedding(embedding, len(ids))[order])
        embedded = hashlib.sha256(points.tobytes()).hexdigest()
    return Pool(
        tuple(ids[i] for i in order),
        tuple(names),
        _freeze(np.stack([mask for _, mask in masks])[:, order]),
        points,
        None if cases is None else cases[order],
        None if recorded is None else _freeze(recorded[order]),
        generated,
        sources,
        embedded,
    )


def to_hex(mask: Bools) -> str:
    """Return booleans, eight to a byte, as hexadecimal digits."""
    return np.packbits(mask).tobytes().hex()


def from_hex(text: str, size: int) -> Bools:
    """Return the first ``size`` booleans that `to_hex` wrote.

    Raises
    ------
    ValueError
        If the text is not so many.
    """
    packed = np.frombuffer(bytes.fromhex(text), dtype=np.uint8)
    if len(packed) != (size + 7) // 8:
        raise ValueError(f"{len(packed)} bytes do not hold {size} cases")
    return np.unpackbits(packed, count=size).astype(np.bool_)


def _freeze(array: object) -> Any:
    array = np.array(array)
    array.setflags(write=False)
    return array
