"""Exports: the findings of an audit, written for the tools that people work in; one file a tool.

An exporter is an ordinary class with a ``name`` and a method ``export``; packages register theirs
under the entry-point group ``groundfault.exporters``. Every export starts from `ReportSlices`: a
report, the evidence it is of, and which example is on which slice."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from groundfault.auditing.report import Report
from groundfault.base.registry import open_registry
from groundfault.core.evidence import Evidence
from groundfault.core.judge import Judge
from groundfault.errors import InputError, PlanError
from groundfault.exports.codes import export_codes
from groundfault.exports.slices import ReportSlices

__all__ = ["Exporter", "ReportSlices", "export", "export_codes", "get", "known"]

_REGISTRY = open_registry("exporter", "groundfault.exporters")


@runtime_checkable
class Exporter(Protocol):
    """Writer of a report for another tool."""

    @property
    def name(self) -> str:
        """Return the exporter's name."""

    def export(self, slices: ReportSlices, out: Path) -> str:
        """Write a file or a directory, whole or not at all.

        Parameters
        ----------
        slices : ReportSlices
            The report, its evidence, and which row is on which slice.
        out : path
            Where to write.

        Returns
        -------
        str
            What was written, such as "12 tasks".

        Raises
        ------
        InputError
            If it cannot be written there.
        """


def known() -> tuple[str, ...]:
    """Return names of the exporters: built-in ones, then exporters of installed packages."""
    return _REGISTRY.names()


def get(exporter: str | Exporter, **settings: object) -> Exporter:
    """Return the exporter of a name, with its settings; an exporter is returned as it is.

    Raises
    ------
    PlanError
        If the exporter or the setting does not exist.
    """
    if not isinstance(exporter, str):
        return exporter
    maker = _REGISTRY.get(exporter)
    try:
        instance: Exporter = maker(**settings)
    # wrong names of settings, from the command line
    except TypeError:
        raise PlanError(
            f"the exporter {exporter!r} has no setting {', '.join(settings) or 'by default'}"
        ) from None
    return instance


def export(
    report: Report | str | Path,
    to: str | Exporter,
    out: str | Path,
    *,
    evidence: Evidence | str | Path | None = None,
    every: bool = False,
    judge: Judge | None = None,
    **settings: object,
) -> str:
    """Write which examples are on the slices of a report, for another tool.

    Parameters
    ----------
    report : Report or path
        A report, or the directory that ``Report.write`` wrote.
    to : str or Exporter
        The tool: a name from `known`, or an exporter.
    out : path
        Where to write.
    evidence : Evidence or path, optional
        Needed for a report in memory; for a directory, where the evidence is now if it has moved.
    every : bool
        Export all candidates, not the confirmed ones alone.
    judge : Judge, optional
        The report's judge, where no installed package has one of its name.
    **settings
        Of an exporter that is named, such as ``logs`` of "inspect".

    Returns
    -------
    str
        What was written, such as "12 tasks".

    Raises
    ------
    InputError
        If the evidence is not the report's, or the file cannot be written.
    PlanError
        If the exporter or the setting does not exist.
    """
    exporter = get(to, **settings)
    if isinstance(report, Report):
        if not isinstance(evidence, Evidence):
            raise InputError("a report in memory is exported with the evidence it is of: evidence=")
        slices = ReportSlices.of(report, evidence, every=every, judge=judge)
    elif isinstance(evidence, Evidence):
        slices = ReportSlices.of(Report.load(report), evidence, every=every, judge=judge)
    else:
        slices = ReportSlices.load(report, evidence, every=every, judge=judge)
    return exporter.export(slices, Path(out))
