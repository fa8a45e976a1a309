"""Every study of a paper has a quick setting, says how far it is, resumes, and has its name in the
help.
"""

from __future__ import annotations

import tomllib
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest
from click.testing import CliRunner

from groundfault_lab.commands.study import study as command

PAPERS = {
    "Janus": ("janus", "finders"),
    "FailureScope": ("failure-scope",),
    "SAVI": ("sequential", "sequential-pool", "label-cost", "validity"),
    "DEIM": ("deim", "discover", "improve"),
    "CAPS": ("probe-policies", "probe-networks", "probes"),
}
PROJECT = Path(__file__).parents[2] / "studies" / "pyproject.toml"


@pytest.mark.parametrize("name", [name for names in PAPERS.values() for name in names])
def test_a_study_of_a_paper_has_a_quick_setting_says_how_far_it_is_and_resumes(name: str) -> None:
    entry = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]["groundfault.studies"]
    module, _, function = entry[name].partition(":")
    takes = signature(getattr(import_module(module), function)).parameters
    assert {"quick", "progress", "keep"} <= takes.keys()
    assert takes["quick"].default is False
    # a size that is named wins over the quick one, so its default has to be told from a choice
    assert all(takes[size].default is None for size in ("seeds", "replicates") if size in takes)


def test_the_help_names_every_study() -> None:
    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    entry = tomllib.loads(PROJECT.read_text())["project"]["entry-points"]["groundfault.studies"]
    assert [name for name in entry if name not in text] == []
