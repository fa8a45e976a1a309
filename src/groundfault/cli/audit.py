"""``audit``, ``compare``, ``check`` and ``import``: batch audits, and the logs that they read."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import structs

from groundfault.base.long_work import Progress, use_workers
from groundfault.cli import reading, shared
from groundfault.cli.command import Options, command
from groundfault.cli.output import Result, claim_folder
from groundfault.cli.settings import Flag, OutFolder, call, own_options
from groundfault.core.plan import Plan
from groundfault.errors import InputError
from groundfault.readers.configurations import split_source

if TYPE_CHECKING:
    from groundfault.auditing.lazy_evidence import LazyEvidence
    from groundfault.auditing.report import Report
    from groundfault.auditing.scorers import ScorerAudits
    from groundfault.core.evidence import Evidence

_NEED_ROWS = (
    "model models repeat where compare robustness scorer disagreement reader map scale "
    "passes count_as_failed".split()
)


@command(first="outcome id positive_is_good group candidate out why")
@shared.step_of_case("groundfault.cli.case:audit_case", "no_text", "json_path")
@shared.step_options
@shared.WHERE
@shared.repeats_option
@own_options
@shared.audit_options
def audit(
    *,
    engine: str | None = None,
    table: str = "",
    compare: tuple[str, str] | None = None,
    every_scorer: bool = False,
    progress: Progress,
    options: Options,
) -> Result:
    """Name a model's failure modes, with their examples.

    SOURCE is a table (CSV, JSONL, Parquet, Arrow), or logs of an evaluation tool: files, folders or
    patterns. Of a table, name the outcome by --outcome; logs need no flag. NAME=SOURCE names a
    version of a model. A failure mode is a readable rule over the other columns under which the
    model fails more often. --candidate tests rules of your own beside them.

    \b
    groundfault audit results.csv --id id --outcome error --out report/
    groundfault audit results.csv --id id --outcome correct --within task
    groundfault audit logs/2026-11-20_gsm8k.eval --scorer match
    groundfault audit run1.csv run2.csv --repeats --id id --outcome error
    groundfault audit parquet/ --id id --outcome error --engine polars --out report/

    Input
    -----
    engine : NAME
        Count in Parquet files too large for memory by this engine, and read no row but a sample:
        polars, duckdb or spark.
    table : TABLE
        Table or view to count in, where SOURCE is a database of DuckDB (--engine duckdb).
    compare : A B
        Judge what changed from model or configuration A to B, on the same examples or on others.
    every_scorer
        Audit the logs once by each scorer, at a level that holds for all, and compare.
    """
    more = {"engine": engine, "table": table, "compare": compare}
    return _run(options | more, progress, every_scorer=every_scorer)


@command(first="models outcome id positive_is_good scorer where group out")
@shared.evidence_options
@shared.WHERE
@shared.audit_options
def compare(*, progress: Progress, options: Options) -> Result:
    """Find where the second of two models is worse or better.

    Name two SOURCEs, the earlier first: logs, folders of logs, or tables with the same columns. Or
    name one SOURCE that holds both models, and choose them by --model A --model B. You get the
    rules under which the second fails more often than the first, and those under which it fails
    less often. To compare two reports, use groundfault gate REPORT --baseline REPORT.

    \b
    groundfault compare logs/monday.eval logs/tuesday.eval
    groundfault compare base=old.csv new=new.csv --id id --outcome error --out report/
    groundfault compare results.csv --id id --model-column model --model old --model new \\
        --outcome correct
    """
    sources, pair = options["sources"], options["models"]
    if len(sources) > 2 or (len(sources) == 2 and pair):
        raise InputError("compare takes two SOURCEs; or one, and --model A --model B")
    if len(sources) == 2:
        pair = name_pair(*sources)
        places = [split_source(source)[1] for source in sources]
        options["sources"] = tuple(f"{n}={place}" for n, place in zip(pair, places, strict=True))
    return _run(options | {"compare": pair}, progress)


def name_pair(first: str, second: str) -> tuple[str, str]:
    """Return a name for each of two sources: as given, or else by their files or folders."""
    names = [name or Path(place).stem for name, place in map(split_source, (first, second))]
    names = [re.sub(r"[^\w.-]+|^\W+", "-", name)[:60].strip("-") for name in names]
    return (names[0], names[1]) if all(names) and names[0] != names[1] else ("first", "second")


def _find_pair(evidence: Evidence, pair: tuple[str, ...]) -> tuple[str, str]:
    """Return the two models to compare: those named, or all there are."""
    models = pair or evidence.models
    if len(models) == 2:
        return models[0], models[1]
    names = f"there are {len(models)} ({', '.join(models)})"
    there = names if any(models) else "no column names models"
    raise InputError(
        f"compare needs two models, and {there}: name two SOURCEs, or the column and two "
        "models, the earlier first: --model-column COL --model A --model B"
    )


def _run(options: Options, progress: Progress, *, every_scorer: bool = False) -> Result:
    """Audit as the options of `audit` or `compare` have it; an empty pair is the two there are."""
    from groundfault.auditing import flow
    from groundfault.cli.settings_file import describe_settings
    from groundfault.render.audit_page import make_scorer_page, make_summary

    plan, out = call(Plan, options), options["out"]
    candidates, finders = call(reading.read_candidates, options)
    run = partial(call, flow.audit, options, candidates=candidates, finders=finders)
    run = partial(run, texts=not options["no_text"], progress=progress)
    # before the holdout is opened: a report that cannot be written would have used it for nothing
    with claim_folder(out) as place, use_workers(options["workers"]):
        run = partial(run, ledger=call(reading.choose_ledger, options))
        if every_scorer:
            audits = _audit_every_scorer(options, plan, run, place, progress)
            return Result([make_scorer_page(audits, out)], audits)
        if options.get("engine") or options.get("table"):
            evidence: Any = _read_lazy_evidence(options)
        else:
            evidence = reading.read_evidence(options, progress)
        if options["compare"] is not None:
            run = partial(run, compare=_find_pair(evidence, options["compare"]))
        report = run(evidence, plan)
        manifest = structs.replace(report.manifest, settings_file=describe_settings())
        report = structs.replace(report, manifest=manifest)
        if place:
            report.write(place)
    page = make_summary(report, Path(out) / "report.html" if out else None, why=options["why"])
    return Result([page], report)


def _audit_every_scorer(
    options: Options,
    plan: Plan,
    run: Callable[[Evidence, Plan], Report],
    place: Path | None,
    progress: Progress,
) -> ScorerAudits:
    """Audit the logs by each scorer, and write a folder of reports for each."""
    from groundfault.auditing.scorers import audit_scorers

    for name in ("scorer", "disagreement", "outcome"):
        if options[name]:
            raise InputError(f"--every-scorer takes each scorer of the logs: leave --{name} out")
    audits = audit_scorers(
        reading.read_sources(options, progress),
        plan,
        scale=options["scale"],
        select=lambda evidence: call(reading.select_rows, options, evidence),
        run=run,
    )
    if place:
        folders = name_folders(tuple(audits.reports))
        for folder, report in zip(folders, audits.reports.values(), strict=True):
            report.write(place / folder)
    return audits


def name_folders(scorers: Sequence[str]) -> list[str]:
    """Return a folder for each scorer: its name, without characters that folders may not have."""
    folders: dict[str, None] = {}
    for scorer in scorers:
        # most file systems take 255 bytes of a name, and a letter has at most 3 of these
        name = re.sub(r"[^\w.,=+-]+", "-", scorer).strip("-.")[:80] or "scorer"
        free, count = name, 2
        while free in folders:
            free, count = f"{name}-{count}", count + 1
        folders[free] = None
    return list(folders)


def _read_lazy_evidence(options: Options) -> LazyEvidence:
    """Return lazy evidence, which an engine counts in.

    Raises
    ------
    InputError
        If an option needs rows, or one that engines need is missing.
    """
    from groundfault.auditing.lazy_evidence import LazyEvidence

    if not options["engine"]:
        raise InputError("--table is counted in by an engine: --engine duckdb")
    for name in _NEED_ROWS:
        if options[name]:
            raise InputError(
                f"{reading.name_flag(name)} needs single rows, and --engine gives counts: leave "
                "one of them out"
            )
    if not options["outcome"] or not options["id"] or len(options["sources"]) != 1:
        raise InputError(
            "--engine counts in one Parquet file, one directory of them, or one database, whose "
            "columns of the outcome and of ids are named: --outcome COL --id COL"
        )
    return call(LazyEvidence.scan, options, options["sources"][0])


@command(first="outcome id positive_is_good group candidate finders judge freeze")
@shared.evidence_options
@shared.WHERE
@own_options
@shared.candidate_options
@shared.plan_options
@shared.json_option("the check")
def check(
    *, compare: tuple[str, str] | None = None, freeze: str | None = None, options: Options
) -> Result:
    """Say how small a problem an audit of SOURCE can find.

    It lists the candidates that can be tested, and how large a difference would be found. It reads
    only the failure rate, not held-out results, and records nothing.

    Input
    -----
    compare : A B
        Compare models A and B on the same examples.

    Output
    ------
    freeze : FILE
        Freeze the candidates in this library, for audit --library.
    """
    from groundfault.auditing.checking import check as run
    from groundfault.render.preview_pages import make_check_page

    candidates, finders = call(reading.read_candidates, options)
    plan = call(Plan, options)
    evidence = reading.read_evidence(options)
    result = run(evidence, plan, candidates, finders=finders, compare=compare)
    if freeze:
        result.library.freeze(freeze)
    return Result([make_check_page(result)], result.to_dict())


@command("import")
@shared.log_options
@own_options
def import_(
    *,
    out: Annotated[OutFolder | None, Flag("-o --out")] = None,
    json_path: Annotated[bool, Flag("--json")] = False,  # noqa: ARG001  (of every command)
    progress: Progress,
    options: Options,
) -> Result:
    """Read the logs of evaluation tools into one table.

    It prints how many rows it read, and why others were left out. SOURCE is a log, a folder of
    logs, or a pattern in quotes. Logs of Inspect, lm-evaluation-harness, HELM, promptfoo, Every
    Eval Ever and a dozen more are recognised by their content. Tables of another layout need
    --map; other commands read one table with --outcome. Without -o nothing is written.

    \b
    groundfault import logs/ -o evidence/
    groundfault import 'runs/**/samples_*.jsonl' --scorer exact_match,strict-match -o evidence/
    groundfault import scores.csv --map map.toml -o evidence/

    Output
    ------
    out : DIR
        Write the evidence to this folder, which other commands take as SOURCE.
    json_path
        Print the account of all rows as JSON.
    """
    from groundfault.render.preview_pages import make_import_page

    evidence = reading.read_evidence({**options, "outcome": None}, progress)
    if out:
        progress("writing the evidence")
        evidence.save(out)
    assert evidence.account is not None
    more = {"statuses": evidence.status_counts, "hash": evidence.hash}
    then = ("audit", out, "--out", "report/") if out else ()
    return Result([make_import_page(evidence, out)], evidence.account.to_dict() | more, then=then)
