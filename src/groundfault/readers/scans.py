"""Scans of Inspect Scout, and other tables by transcript, joined to the runs of logs."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from groundfault import readers
from groundfault.core.column_meaning import TRANSCRIPT
from groundfault.core.roles import Roles
from groundfault.errors import InputError, first_line
from groundfault.readers.account import Account
from groundfault.readers.safely import escape_pattern, head
from groundfault.readers.table import DAMAGED, read_table
from groundfault.readers.table_size import measure_table
from groundfault.readers.values import number, text

_KEY = "transcript_id"
_SCAN = "_scan.json"
_RESULTS = ("scanner_key", "value", "value_type", "scan_error", "validation_target")
_LABELS = ("resultset", "array")


def is_scan(path: Path) -> bool:
    """Return whether a path is the folder of a scan, or a Parquet or CSV table by transcript.

    A folder of several scans is read scan by scan.
    """
    if path.is_dir():
        return (path / _SCAN).is_file()
    try:
        if path.suffix == ".parquet" and head(path).startswith(b"PAR1"):
            names = list(pl.read_parquet_schema(escape_pattern(path)))
        elif path.suffix == ".csv":
            line = head(path).partition(b"\n")[0].decode("utf-8", "replace")
            names = next(csv.reader([line.rstrip("\r")]), [])
        else:
            return False
    except (*DAMAGED, csv.Error):
        return False
    return _KEY in names and "example_id" not in names


def join_scans(
    frame: pl.DataFrame, roles: Roles, account: Account, scans: Sequence[Path]
) -> tuple[pl.DataFrame, Roles, Account]:
    """Add a column a scanner to the runs of logs, by the uuid of each sample.

    If a scanner has several results for one run, the largest counts. A run is missing if the
    scanner has no result for it or crashed. A scanner of true and false that returned no value
    counts as false.

    Returns
    -------
    frame, roles, account
        The columns are known during a run (`Roles.during`). A note of the account states the
        results of a scanner on its own validation set.

    Raises
    ------
    InputError
        If a scan cannot be read, or matches no run of the logs.
    """
    runs, notes = _list_runs(frame, account), list(account.notes)
    names: list[str] = []
    for scan in scans:
        table, told = _read_scan(scan)
        matched = runs.join(table, left_on="uuid", right_on=_KEY, how="inner")
        if matched.is_empty():
            raise InputError(
                f"{scan}: its {table.height:,} transcripts match no run of these logs; "
                "transcripts are matched by the uuid of their sample"
            )
        free = {name: name for name in table.columns[1:]}
        for name in free:
            while free[name] in frame.columns:
                free[name] += "_scan"
        found = matched.drop("uuid").rename(free)
        frame = frame.join(found, on=["log", TRANSCRIPT], how="left", maintain_order="left")
        names += free.values()
        notes += [f"{scan}: {found.height:,} of {len(frame):,} runs are scanned", *told]
    account = msgspec.structs.replace(account, notes=tuple(notes))
    return frame, replace(roles, during=tuple(names)), account


def _list_runs(frame: pl.DataFrame, account: Account) -> pl.DataFrame:
    """Return the uuid of each run, by the number of its log and its own."""
    rows: list[tuple[int, int, str | None]] = []
    for place in frame["log"].drop_nulls().unique().sort() if TRANSCRIPT in frame.columns else ():
        log = account.logs[int(place)]
        reader: object = readers.get(log.reader)
        if hasattr(reader, "read_uuids"):
            rows += [(place, *pair) for pair in reader.read_uuids(Path(log.path))]
    if not rows:
        raise InputError("a scan is joined to runs by the uuid of their sample: name Inspect logs")
    types = {"log": pl.Int32, TRANSCRIPT: pl.Int64, "uuid": pl.String}
    return pl.DataFrame(rows, schema=types, orient="row").drop_nulls()


def _read_scan(scan: Path) -> tuple[pl.DataFrame, list[str]]:
    """Return a table of transcripts, a column a scanner, and notes on their validation."""
    parts, notes = list[pl.DataFrame](), list[str]()
    for path in sorted(scan.glob("*.parquet")) if scan.is_dir() else [scan]:
        if path.suffix == ".parquet":
            measure_table(path)
        try:
            names = pl.read_parquet_schema(escape_pattern(path)) if path.suffix != ".csv" else ()
            if not {*_RESULTS} <= {*names}:
                parts.append(read_table(path, text=(_KEY,))[0])
                continue
            # not the transcripts beside the results, which are most of the file
            results = pl.read_parquet(escape_pattern(path), columns=[_KEY, *_RESULTS])
            notes += filter(None, map(_note_validation, results.partition_by("scanner_key")))
            parts += map(_read_results, results.partition_by("scanner_key"))
        except DAMAGED as error:
            raise InputError(f"{path} cannot be read as a scan: {first_line(error)}") from None
    if not parts:
        raise InputError(f"{scan} has no results yet: complete the scan, then read it")
    table = parts[0]
    for part in parts[1:]:
        table = table.join(part, on=_KEY, how="full", coalesce=True, suffix="_scan")
    keyed = table.drop_nulls(_KEY).group_by(_KEY, maintain_order=True).max()
    return keyed.select(_KEY, *(c for c in keyed.columns if c != _KEY)), notes


def _read_results(results: pl.DataFrame) -> pl.DataFrame:
    """Return the results of one scanner as a column; of several labels, a column each."""
    name, kinds = results["scanner_key"][0], results["value_type"]
    values = [_parse(value) for value in results["value"]]
    if kinds.is_in(_LABELS).any():
        said = [{_name_label(one) for one in value or ()} - {""} for value in values]
        labels = sorted(set[str]().union(*said))
        data = {f"{name}: {label}": [label in some for some in said] for label in labels}
    else:
        kind = next((k for k in ("boolean", "number") if (kinds == k).any()), "string")
        data = {name: list(map(_KINDS[kind], values))}
    # a scanner has no result for a transcript on which it crashed
    ran = results["scan_error"].is_null()
    table = pl.DataFrame(data, infer_schema_length=None).select(pl.when(ran).then(pl.all()))
    return table.insert_column(0, results[_KEY])


_KINDS: dict[str, Callable[[Any], Any]] = {"boolean": bool, "number": number, "string": text}


def _parse(value: object) -> Any:
    """Return a value that Scout writes as JSON; words stay unchanged."""
    try:
        return msgspec.json.decode(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, RecursionError):
        return value


def _name_label(result: object) -> str:
    """Return the label of one of several results, if the result says that the label holds."""
    if not isinstance(result, dict):
        return str(result)
    return str(result.get("label") or "") if result.get("value", True) else ""


def _note_validation(results: pl.DataFrame) -> str:
    """Return the results of a scanner of true and false on its validation set, if it has one."""
    words = {"true": "flags {} of {} that have it", "false": "leaves {} of {} alone that have not"}
    parts = [
        words[target].format((part["value"] == target).sum(), part.height)
        for target in words
        if (part := results.filter(pl.col("validation_target") == target)).height
    ]
    name = results["scanner_key"][0]
    return f"the scanner {name} {' and '.join(parts)}, in its validation set" if parts else ""
