"""Old names work, warn, and say what to write."""

from __future__ import annotations

import pytest

from groundfault.base.deprecation import rename_attributes, rename_parameters


@rename_parameters(most="max_slices")
def search(data: str, *, max_slices: int = 3) -> tuple[str, int]:
    """Find slices."""
    return data, max_slices


def test_an_old_parameter_is_passed_on_with_a_warning() -> None:
    with pytest.warns(
        DeprecationWarning, match=r"search\(most=\) is now called search\(max_slices"
    ):
        assert search("x", most=5) == ("x", 5)  # type: ignore[call-arg]
    assert search("x", max_slices=4) == ("x", 4)
    assert search.__doc__ == "Find slices."


def test_both_names_at_once_are_an_error() -> None:
    with pytest.raises(TypeError, match="both most and max_slices"):
        search("x", most=5, max_slices=4)  # type: ignore[call-arg]


def test_an_old_attribute_is_found_in_its_new_place() -> None:
    find = rename_attributes("old.module", {"dump": "json:dumps", "parser": "json.decoder"})
    with pytest.warns(DeprecationWarning, match=r"old\.module\.dump is now called json\.dumps"):
        assert find("dump")([1]) == "[1]"
    with pytest.warns(DeprecationWarning, match=r"now called json\.decoder"):
        assert find("parser").JSONDecodeError
    with pytest.raises(AttributeError, match=r"'old\.module' has no attribute 'other'"):
        find("other")
