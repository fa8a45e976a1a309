"""Which rows a page shows: everything of it is in the address, so that Back and links work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from groundfault.errors import InputError

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

View = Literal["failing", "passing", "near", "inside", "all"]
"""Rows inside a rule that failed or passed, that it nearly holds for, all inside it, all rows."""

PAGE = 60
"""Rows of a page."""

_MAX_FILTERS = 20


@dataclass(frozen=True)
class RowQuery:
    """A selection of rows and an order.

    Attributes
    ----------
    rule : str
        In SQL; empty for none.
    view : str
        See `View`; without a rule every row is inside it, and none is near.
    where : tuple of str
        Further conditions in SQL, all of which have to hold.
    text : str
        What some text of a row has to contain, in capitals or not.
    model : str
        Whose rows; empty for all.
    sort : str
        A column, behind a minus for the largest first; empty for the order of the ids, of near
        misses for those next across a threshold first.
    start : int
        Place of the first row that is shown, from 0.
    """

    rule: str = ""
    view: View = "all"
    where: tuple[str, ...] = ()
    text: str = ""
    model: str = ""
    sort: str = ""
    start: int = 0

    @classmethod
    def of(cls, params: QueryParams) -> RowQuery:
        """Read an address.

        Raises
        ------
        InputError
            If a part of it cannot be read.
        """
        rule = params.get("rule", "").strip()
        view = params.get("view") or ("failing" if rule else "all")
        start = params.get("start", "0") or "0"
        if view not in get_args(View):
            raise InputError(f"there is no view {view!r}; there are {', '.join(get_args(View))}")
        if not start.isascii() or not start.isdecimal() or len(start) > 12:
            raise InputError(f"start is the place of a row, from 0, not {start!r}")
        where = tuple(dict.fromkeys(filter(None, map(str.strip, params.getlist("where")))))
        if len(where) > _MAX_FILTERS:
            raise InputError(f"at most {_MAX_FILTERS} filters at once")
        text = params.get("q", "")
        model, sort = params.get("model", ""), params.get("sort", "")
        return cls(rule, cast(View, view), where, text, model, sort, int(start))

    def to_params(self, **changes: Any) -> dict[str, Any]:
        """The address of this selection, or of one that differs in some fields.

        Another selection begins at its first row.
        """
        query = replace(self, **({"start": 0} | changes))
        where = tuple(dict.fromkeys(query.where))
        return {
            "rule": query.rule,
            "view": query.view,
            "where": where,
            "q": query.text,
            "model": query.model,
            "sort": query.sort,
            "start": query.start or None,
        }
