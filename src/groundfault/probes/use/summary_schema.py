"""The old place of the JSON of ``probe report``: `groundfault.probes.use.summary`."""

from __future__ import annotations

from groundfault.base.deprecation import rename_attributes

__getattr__ = rename_attributes(
    __name__,
    {
        "ProbeSummary": "groundfault.probes.use.summary:ProbeSummary",
        "ProbeTables": "groundfault.probes.use.summary:ProbeTables",
    },
)
