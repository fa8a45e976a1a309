"""``slices``: slices of the discovery half with high failure rates, before they are judged."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Annotated, Any

from groundfault.base.long_work import Progress
from groundfault.cli import shared
from groundfault.cli.command import Options, command
from groundfault.cli.output import Result
from groundfault.cli.reading import read_evidence, read_settings, read_value
from groundfault.cli.settings import Count, Flag, OutFile, Whole, own_options
from groundfault.core.evidence import Evidence
from groundfault.core.plan import Plan

_PERMUTATIONS = 200
"""Repeats of a search that sliceline does itself, which is fast: the smallest p is then 1/201."""


@command(first="outcome id positive_is_good finder max_slices settings library json_path")
@shared.evidence_options
@own_options
@shared.settings_option
@shared.holdout_options
@shared.json_option("the slices")
def slices(
    *,
    finder: str = "sliceline",
    max_slices: Annotated[Count, Flag("-k")] = 10,
    max_level: Count | None = None,
    permutations: Whole | None = None,
    library: OutFile | None = None,
    progress: Progress,
    options: Options,
) -> Result:
    """Propose slices with high failure rates; confirm nothing.

    It searches only the discovery units, so that an audit with the same seed can judge the slices
    on the held-out units. Finders of slices: sliceline, tree, pysubgroup; edisa, domino, spotlight
    (with embeddings); and the baselines confidence and random.

    \b
    groundfault lab slices results.parquet --id item_id --outcome error -k 10 --max-level 3
    groundfault lab slices results.parquet --id item_id --outcome error --finder edisa \\
        --set n_slices=64 --library l.json
    groundfault audit results.parquet --id item_id --outcome error --library l.json

    Search
    ------
    finder : NAME
        Finder that searches for slices.
    max_slices : N
        Largest number of slices.
    max_level : N
        Largest number of predicates in a slice; default 3.
    permutations : N
        Number of times the search is repeated on permuted errors, for p; default 200 for sliceline,
        39 for other finders.

    Output
    ------
    library : FILE
        Freeze the slices in this library, for audit --library.
    """
    from groundfault_lab.pages.slice_page import make_slice_page
    from groundfault_lab.slicing.proposals import propose

    settings: dict[str, Any] = {"k": max_slices, "permutations": permutations}
    maker = _make_finder(finder, settings | {"max_level": max_level}, options["settings"])
    plan = Plan(holdout=options["holdout"], seed=options["seed"])
    evidence = share_words(read_evidence(options))
    progress(f"searching with {finder}")
    searches = shared.SEARCHES if permutations is None else permutations
    proposals = propose(evidence, maker, plan, max_slices, searches)
    if library:
        proposals.library.freeze(library)
    return Result([make_slice_page(proposals, library)], proposals.to_dict())


def _make_finder(name: str, flags: dict[str, Any], more: tuple[str, ...]) -> Any:
    """Return the finder with its settings, and with permutations where it has them."""

    from groundfault.finders import get
    from groundfault_lab.slicing.proposals import configure_finder

    maker = get(name)
    types: dict[str, str] = (
        {f.name: str(f.type) for f in fields(maker)} if is_dataclass(maker) else {}
    )
    settings = {key: value for key, value in flags.items() if key in types and value is not None}
    if "permutations" in types:
        settings.setdefault("permutations", _PERMUTATIONS)
    if flags["max_level"] is not None:
        # a finder without levels says so
        settings["max_level"] = flags["max_level"]
    for key, text in read_settings(more).items():
        many = "tuple" in types.get(key, "")
        settings[key] = tuple(map(read_value, text.split(","))) if many else read_value(text)
    return configure_finder(name, settings)


def share_words(evidence: Evidence) -> Evidence:
    """Return the same evidence, in which words of labels are categories: a fourth of their
    memory."""
    import polars as pl

    from groundfault.core.columns import Kind, list_examples, profile

    table = list_examples(evidence).select(pl.col(pl.String))
    labels = [c.name for c in profile(table) if c.kind is Kind.LABEL]
    frame = evidence.frame.with_columns(pl.col(labels).cast(pl.Categorical))
    return replace(evidence, frame=frame)
