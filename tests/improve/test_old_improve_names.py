"""Names of 0.1.0 in `groundfault_lab.improve` warn and work."""

from __future__ import annotations

import pytest

from groundfault_lab.improve import Auditor, Flipping
from groundfault_lab.improve.active import _renew_names
from groundfault_lab.slicing import Edisa


def test_fields_of_flipping_and_auditor() -> None:
    with pytest.warns(DeprecationWarning, match="holdout_share"):
        assert Flipping(Edisa(), held=0.2).holdout_share == 0.2  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match="max_validation"):
        assert Auditor(shown=5).max_validation == 5  # type: ignore[call-arg]


def test_curves_of_an_auditor_of_0_1_0_can_be_resumed() -> None:
    before = {"policy auditor": "Auditor(policy='uniform', shown=5, name='auditor')"}
    now = repr(Auditor("uniform", max_validation=5))
    assert _renew_names(before) == {"policy auditor": now}
