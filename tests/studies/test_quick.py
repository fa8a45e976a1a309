"""Every study has a quick setting, says how far it is, resumes, and has its name in the
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
from groundfault_studies import mode_worlds, modes
from groundfault_studies.attacks import study as attacks

PROJECT = tomllib.loads((Path(__file__).parents[2] / "studies" / "pyproject.toml").read_text())
STUDIES = PROJECT["project"]["entry-points"]["groundfault.studies"]


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_a_quick_setting_says_how_far_it_is_and_resumes(name: str) -> None:
    module, _, function = STUDIES[name].partition(":")
    takes = signature(getattr(import_module(module), function)).parameters
    assert {"quick", "progress", "keep"} <= takes.keys()
    assert takes["quick"].default is False
    # a size that is named wins over the quick one, so its default has to be told from a choice
    assert all(takes[size].default is None for size in ("seeds", "replicates") if size in takes)


def test_a_quick_study_that_is_of_no_paper_is_small(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for one in (attacks, mode_worlds, modes):
        monkeypatch.setattr(one, "gather_rows", lambda *_, **__: [])
    settings = {"quick": True}
    assert attacks.study(**settings).settings["replicates"] == 2
    assert mode_worlds.study(**settings).settings["replicates"] == 2
    quick = modes.study(shared, **settings).settings
    assert (quick["replicates"], quick["sizes"]) == (1, [500])
    whole = modes.study(shared, **settings | {"quick": False}).settings
    assert (whole["replicates"], whole["sizes"]) == (10, [500, 2000, 8000])


def test_the_help_names_every_study() -> None:
    text = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert [name for name in STUDIES if name not in text] == []
