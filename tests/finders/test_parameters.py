"""Finders hand over their parameters as scikit-learn asks for them."""

from __future__ import annotations

from typing import Any

import pytest
from sklearn.base import BaseEstimator, clone

from groundfault import Candidate, finders

# settings that are not the defaults, so that a copy that forgot one is another finder
OTHERS: dict[str, dict[str, Any]] = {
    "categories": {"max_levels": 3, "columns": ("a*",)},
    "declared": {"candidates": (Candidate("long", "n > 3"),), "missing": "off"},
    "interactions": {"bases": (Candidate("long", "n > 3"),), "order": (2, 3)},
    "sliceline": {"k": 3, "min_support": 0.1},
    "edisa": {"n_slices": 3, "pca": 5},
    "random": {"k": 3, "seed": 5},
}


@pytest.mark.parametrize("name", finders._REGISTRY.built_in)
def test_finders_are_cloned_with_their_parameters(name: str) -> None:
    maker = finders.get(name)
    finder: Any = maker(**OTHERS.get(name, {}))
    copy = clone(finder)
    assert copy is not finder
    assert type(copy) is maker
    assert copy.get_params() == finder.get_params()
    assert OTHERS.get(name, {}).items() <= copy.get_params().items()
    assert copy.name == finder.name
    # their fit takes predictions beside a table and labels, and none says otherwise
    assert not isinstance(finder, BaseEstimator)
    assert not hasattr(finder, "__sklearn_tags__")
