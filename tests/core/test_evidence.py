"""Evidence: parts and views of it keep what describes an example, and its hash says its content."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from groundfault.core.evidence import Evidence
from groundfault.core.status import Status
from groundfault.errors import InputError, RuleError

# "note" differs between the two rows of example a, and is constant within each half of the rows
FRAME = pl.DataFrame(
    {
        "id": ["a", "a", "b", "b"],
        "model": ["m", "n", "m", "n"],
        "error": [1, 0, None, 1],
        "lang": ["de", "de", "fr", "fr"],
        "note": ["x", "y", "z", "z"],
    }
)


def evidence() -> Evidence:
    return Evidence.from_table(
        FRAME, id="id", model="model", outcome="error", null_outcome="missing"
    )


def test_a_part_keeps_what_describes_examples_and_the_models() -> None:
    whole = evidence()
    part = whole.take(np.array([True, False, False, False]))
    assert whole.attributes == part.attributes == ("lang",)
    assert part.models == ("m", "n")
    assert len(part) == 1
    assert part.take(np.array([True])).attributes == ("lang",)


def test_of_one_model_more_may_describe_an_example() -> None:
    one = evidence().select_model("m")
    assert one.attributes == ("lang", "note")
    assert one.models == ("m",)
    with pytest.raises(InputError, match="no rows of model 'k'; the models are m, n"):
        evidence().select_model("k")


def test_views_hide_outcomes_and_columns() -> None:
    whole = evidence()
    blind = whole.without_outcomes()
    assert "error" not in blind.frame.columns
    assert blind.loss.null_count() == len(blind)
    assert blind.attributes == whole.attributes
    assert whole.without([]) is whole
    assert whole.without(["lang"]).attributes == ()
    assert whole.without(["lang"]).take(np.full(4, True)).attributes == ()


def test_other_roles_decide_anew() -> None:
    whole = evidence().take(np.full(4, True))
    from dataclasses import replace

    assert whole.with_roles(replace(whole.roles, ignore=("lang",))).attributes == ()


def test_unscored_rows_are_counted_and_filled_on_request() -> None:
    whole = evidence()
    assert whole.status_counts[Status.MISSING] == 1
    filled = whole.with_unscored_as(1.0)
    assert filled.loss.to_list() == [1.0, 0.0, 1.0, 1.0]
    assert filled.status_counts[Status.SCORED] == 4


def test_the_hash_is_of_the_content_not_of_the_order() -> None:
    shuffled = Evidence.from_frame(
        FRAME[[2, 0, 3, 1]].select(reversed(FRAME.columns)), evidence().roles
    )
    assert shuffled.hash == evidence().hash
    other = Evidence.from_frame(FRAME.with_columns(lang=pl.lit("de")), evidence().roles)
    assert other.hash != evidence().hash
    assert other.outcome_hash == evidence().outcome_hash


def test_it_is_frozen_and_survives_pickling() -> None:
    whole = evidence()
    with pytest.raises(FrozenInstanceError):
        whole.loss = whole.loss  # type: ignore[misc]
    assert pickle.loads(pickle.dumps(whole)).hash == whole.hash


def test_saved_evidence_is_read_again(tmp_path: Path) -> None:
    place = tmp_path / "saved"
    evidence().save(place)
    again = Evidence.from_logs(place)
    assert again.hash == evidence().hash
    assert Evidence.from_logs(place, ignore=["lang"]).attributes == ()
    (place / "observations.parquet").write_bytes(
        (tmp_path / "saved" / "evidence.json").read_bytes()
    )
    with pytest.raises(InputError):
        Evidence.from_logs(place)


def test_rows_are_selected_by_a_rule_which_is_kept() -> None:
    german = evidence().where("lang = 'de'")
    assert german.frame["id"].to_list() == ["a", "a"]
    assert german.selection == "\"lang\" = 'de'"
    assert german.attributes == evidence().attributes
    one = german.where("model = 'm'")
    assert one.selection == "(\"lang\" = 'de') AND (\"model\" = 'm')"
    assert one.models == ("m",), "a model without a row is gone"
    assert one.hash == evidence().where(one.selection).hash
    assert evidence().selection is None


def test_a_row_whose_value_is_missing_is_not_selected() -> None:
    gap = FRAME.with_columns(lang=pl.Series(["de", "de", None, None]))
    whole = Evidence.from_frame(gap, evidence().roles)
    assert len(whole.where("lang <> 'fr'")) == 2


@pytest.mark.parametrize(
    ("rule", "error", "message"),
    [
        ("error = 1", RuleError, "explain failures by failing"),
        ("colour = 'red'", InputError, "no column 'colour'"),
        ("lang = 'xx'", InputError, "no row is left"),
        ("LENGTH(lang)", RuleError, "not true or false"),
        ("lang > 3", RuleError, "cannot evaluate"),
        ("1 +", RuleError, "SQL|expression"),
    ],
)
def test_rules_that_select_nothing_or_by_the_outcome_are_refused(
    rule: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        evidence().where(rule)


@pytest.mark.parametrize(
    "groups", [["a", "a", "b", "c", "c"], ["c", "a", "b", "a", "c"], ["b"], ["b", "a"]]
)
def test_units_are_numbered_in_the_order_of_their_names(groups: list[str]) -> None:
    """In order or not, with several rows or one: sorted rows take a way of their own."""
    table = pl.DataFrame({"g": groups, "id": list(map(str, range(len(groups)))), "error": 0})
    evidence = Evidence.from_table(table, id="id", group="g", outcome="error")
    # rows of evidence are in an order of its own
    turned = replace(evidence, frame=evidence.frame.reverse())
    for some in (evidence, turned):
        names = some.unit_names.to_list()
        assert [names[place] for place in some.unit_index] == some.frame["g"].to_list()
        assert some.unit_count == len(names)
        assert some.frame["g"][some.first_rows].to_list() == names
        assert some.take_first(some.frame)["g"].to_list() == names
        assert some.take_first(pl.DataFrame()).is_empty()
