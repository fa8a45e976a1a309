"""Inspect: findings and slices in copies of its logs, for its viewer and data frames."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from groundfault.base.files import explain_failure, make_folder, replace_folder, write_bytes
from groundfault.base.reading import is_inside
from groundfault.errors import InputError, first_line, require_extra
from groundfault.exports.slices import ReportSlices
from groundfault.readers.inspect import Inspect
from groundfault.readers.log import OURS

_KINDS = {".eval": "eval", ".json": "json"}
# importers number examples of one id from several logs this way
_APART = re.compile(r"#[0-9a-f]{8}$")


@dataclass(frozen=True)
class InspectLogs:
    """Write copies of Inspect logs, with the slices and findings as metadata; see `annotate`.

    Attributes
    ----------
    logs : tuple of path
        The logs to copy; left empty, the logs that the evidence was read from.
    """

    logs: tuple[str | Path, ...] = ()
    name: str = "inspect"

    def export(self, slices: ReportSlices, out: Path) -> str:
        """Write the copies into a directory, or the copy of a single log to a file."""
        copies = annotate(slices, out, self.logs)
        return f"{len(copies)} annotated log{'' if len(copies) == 1 else 's'}"


def annotate(slices: ReportSlices, out: str | Path, logs: Sequence[str | Path] = ()) -> list[Path]:
    """Write copies of Inspect logs with each sample's slices and the run's findings.

    A sample's metadata gets ``groundfault``: the name of each slice, true or false (none where the
    candidate is not defined for it). The log gets the tag ``groundfault``, and the findings as
    metadata, with who edited it and why. The logs themselves are not touched. Inspect may put the
    samples of a copy into another order.

    Parameters
    ----------
    slices : Slices
    out : path
        A directory; for a single log also a file, of the same suffix.
    logs : sequence of path, optional
        The logs to copy; left out, the logs that the evidence was read from.

    Returns
    -------
    list of path
        The copies.

    Raises
    ------
    InputError
        If there is no Inspect log to copy, a log has no sample of the evidence, or a copy would
        replace its log.
    MissingExtraError
        If Inspect is not installed.
    """
    sources = [Path(log) for log in logs] or _sources(slices)
    copies = _copies(sources, Path(out))
    for source, copy in zip(sources, copies, strict=True):
        if copy.exists() and copy.samefile(source):
            raise InputError(f"{copy} is the log itself; name another place for the copy")
    if copies == [Path(out)]:
        with explain_failure(out), tempfile.TemporaryDirectory() as folder:
            draft = Path(folder, copies[0].name)
            _annotate(slices, sources[0], draft)
            write_bytes(copies[0], draft.read_bytes())
        return copies
    with replace_folder(out) as new, explain_failure(out):
        for source, copy in zip(sources, copies, strict=True):
            _annotate(slices, source, new / copy.relative_to(out))
    return copies


def _sources(slices: ReportSlices) -> list[Path]:
    account = slices.evidence.account
    paths = [log.path for log in account.logs if log.reader == "inspect"] if account else []
    if not paths:
        raise InputError(
            "the evidence was not read from logs of Inspect; name those to copy (logs=, or --log)"
        )
    # a folder of evidence says by itself which logs it is of, and may come from anybody
    homes: list[str | Path] = [Path.cwd(), *slices.evidence.provenance]
    for path in paths:
        if not is_inside(path, homes):
            raise InputError(
                f"the evidence names {path} as its log, which is neither in this folder nor in "
                "the evidence; if it is right, name it (logs=, or --log)"
            )
    return [Path(path) for path in paths]


def _copies(sources: list[Path], out: Path) -> list[Path]:
    """Return paths of the copies: the name of the log, or its path where two folders share it."""
    if len(sources) == 1 and out.suffix in _KINDS and not out.is_dir():
        if out.suffix != sources[0].suffix:
            raise InputError(
                f"{out.name} is to be a copy of {sources[0].name}; keep its suffix "
                f"{sources[0].suffix}"
            )
        return [out]
    if out.exists() and not out.is_dir():
        raise InputError(f"cannot write {out}: it is a file; name a directory")
    if len({source.name for source in sources}) == len(sources):
        return [out / source.name for source in sources]
    common = os.path.commonpath([source.resolve().parent for source in sources])
    return [out / source.resolve().relative_to(common) for source in sources]


def _annotate(slices: ReportSlices, source: Path, place: Path) -> None:
    with require_extra("to write logs of Inspect, install it: pip install 'groundfault[inspect]'"):
        from inspect_ai import log as inspect_log
    if not source.exists():
        raise InputError(f"the log {source} is not there; say where it is (logs=, or --log)")
    if source.suffix not in _KINDS or not Inspect().sniff(source):
        raise InputError(f"{source} is no log of Inspect, .eval or .json")
    try:
        log = inspect_log.read_eval_log(str(source))
    except Exception as error:
        raise InputError(f"Inspect cannot read {source}: {first_line(error)}") from None
    if not _mark(slices, log, source):
        raise InputError(
            f"no sample of {source} is in the evidence; is it a log of the run that was audited?"
        )
    why = f"audit with {len(slices.report.confirmed)} confirmed findings"
    edits = [
        inspect_log.TagsEdit(tags_add=[OURS]),
        inspect_log.MetadataEdit(metadata_set={OURS: slices.summary()}),
    ]
    log = inspect_log.edit_eval_log(log, edits, inspect_log.ProvenanceData(author=OURS, reason=why))
    make_folder(place.parent)
    inspect_log.write_eval_log(log, str(place), format=_KINDS[place.suffix])


def _mark(slices: ReportSlices, log: Any, source: Path) -> int:
    """Write into the samples which slices they are on; how many were found in the evidence."""
    models, roles = slices.evidence.models, slices.evidence.roles
    if roles.model and log.eval.model not in models:
        raise InputError(f"{source} is of {log.eval.model}, the report of {', '.join(models[:5])}")
    units = _units(slices, source)
    count = 0
    for sample in log.samples or []:
        unit = units.get(f"{log.eval.task}/{sample.id}", units.get(str(sample.id)))
        if unit is not None:
            sample.metadata = {**sample.metadata, OURS: slices.of_unit(unit)}
            count += 1
    return count


def _units(slices: ReportSlices, source: Path) -> dict[str, int]:
    """Return each example's unit, by its id, and by the log where kept apart examples share one."""
    evidence = slices.evidence
    ids = evidence.frame[evidence.roles.id or ""].cast(pl.String).to_list()
    units = dict(zip(ids, evidence.unit_index.tolist(), strict=True))
    account = evidence.account
    here = [i for i, log in enumerate(account.logs) if Path(log.path) == source] if account else []
    if here and "log" in evidence.frame.columns:
        rows = evidence.frame["log"].to_list()
        own = {
            _APART.sub("", name): units[name]
            for name, row in zip(ids, rows, strict=True)
            if row in here
        }
        units = own | {name: unit for name, unit in units.items() if name not in own}
    return units
