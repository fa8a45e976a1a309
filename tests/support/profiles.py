"""How many examples property tests draw: few in the fast suite, the full number every night.

``HYPOTHESIS_PROFILE=nightly`` asks for the full number, and ``MOST_EXAMPLES`` bounds it.
"""

from __future__ import annotations

import os

from hypothesis import settings

_FAST = 20
_PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "fast")


def load_profile() -> None:
    """Make the profile of this run the default of every property test."""
    # no deadline: the first call of a compiled kernel takes as long as compiling it
    settings.register_profile("fast", deadline=None, max_examples=_FAST)
    settings.register_profile("nightly", deadline=None)
    settings.load_profile(_PROFILE)


def count_examples(nightly: int, fast: int = _FAST) -> int:
    """The ``max_examples`` of a test that has its own number of them."""
    most = int(os.environ.get("MOST_EXAMPLES", nightly))
    return min(nightly, most) if _PROFILE == "nightly" else min(fast, nightly)
