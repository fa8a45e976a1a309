"""``groundfault lab study`` without the distribution of the studies."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from groundfault.base.registry import Registry
from groundfault.errors import MissingExtraError
from groundfault_lab.commands import study


def test_without_the_studies_the_command_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "STUDIES", Registry("study", "groundfault.no_such_group", {}))
    run = CliRunner().invoke(study.study, ["janus"])
    assert isinstance(run.exception, MissingExtraError)
    assert "pip install ./lab ./studies" in str(run.exception)
