"""The old place of the JSON of ``probe report``: `groundfault_lab.probes.summary`."""

from __future__ import annotations

from groundfault.base.deprecation import rename_attributes

__getattr__ = rename_attributes(
    __name__,
    {
        "ProbeSummary": "groundfault_lab.probes.summary:ProbeSummary",
        "ProbeTables": "groundfault_lab.probes.summary:ProbeTables",
    },
)
