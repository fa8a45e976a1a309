"""``--engine``: evidence that is counted in and not read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from groundfault.cli.command import INPUT, option
from groundfault.cli.orientation import require_orientation
from groundfault.core.roles import LISTS
from groundfault.errors import InputError

if TYPE_CHECKING:
    from groundfault.auditing.lazy_evidence import LazyEvidence

ENGINE = option(
    "--engine",
    metavar="NAME",
    group=INPUT,
    help="Count in Parquet files too large for memory by this engine, and read no row but a "
    "sample: polars, duckdb or spark.",
)

TABLE = option(
    "--table",
    metavar="TABLE",
    default="",
    group=INPUT,
    help="Table or view to count in, where SOURCE is a database of DuckDB (--engine duckdb).",
)

_NEED_ROWS = (
    "model_column models repeat where compare every_scorer robustness scorer disagreement "
    "reader mapping scale count_as_failed".split()
)


def read_lazy_evidence(options: dict[str, Any]) -> LazyEvidence:
    """Lazy evidence from the options.

    Raises
    ------
    InputError
        If an option needs rows, or one that engines need is missing.
    """
    from groundfault.auditing.lazy_evidence import LazyEvidence

    if not options["engine"]:
        raise InputError("--table is counted in by an engine: --engine duckdb")
    misplaced = [name for name in _NEED_ROWS if options.get(name)]
    if misplaced:
        names = {"models": "model", "mapping": "map"}
        flag = names.get(misplaced[0], misplaced[0]).replace("_", "-")
        raise InputError(
            f"--{flag} needs single rows, and --engine gives counts: leave one of them out"
        )
    if not options["outcome"] or not options["id"] or len(options["sources"]) != 1:
        raise InputError(
            "--engine counts in one Parquet file, one directory of them, or one database, whose "
            "columns of the outcome and of ids are named: --outcome COL --id COL"
        )
    if options["positive_is_good"] is None:
        require_orientation(options["outcome"], one_is_pass=False)
    names_of_roles = (
        *"group split status positive_is_good null_outcome instrument".split(),
        *LISTS,
    )
    return LazyEvidence.scan(
        options["sources"][0],
        engine=options["engine"],
        table=options["table"],
        outcome=options["outcome"],
        id=options["id"],
        **{name: options[name] for name in names_of_roles},
    )
