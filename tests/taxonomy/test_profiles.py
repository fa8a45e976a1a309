"""Profiles: failures of each model by leaf, counted, ranked, drawn and written from the shell."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from leaf_worlds import QUICK, draw

from groundfault.errors import InputError, PlanError
from groundfault_lab.commands.taxonomy import taxonomy as command
from groundfault_lab.pages.profile_page import MAX_CHARTS, draw_profile, make_profile_page
from groundfault_lab.taxonomy import Taxonomy, fit
from groundfault_lab.taxonomy.use.profiles import profile_models


@pytest.fixture(scope="module")
def taxonomy() -> Taxonomy:
    return fit(draw(1, hole=0.7, holes=0.1), QUICK)


def test_rates_are_those_of_the_matrix_and_models_with_the_hole_come_last(
    taxonomy: Taxonomy,
) -> None:
    profiles = profile_models(taxonomy)
    assert sorted(one.model for one in profiles.models) == sorted(taxonomy.matrix.models)
    assert [one.rank for one in profiles.models] == sorted(one.rank for one in profiles.models)
    number = next(i for i, leaf in enumerate(taxonomy.leaves) if "story" in leaf.rule)
    for profile in profiles.models:
        values = taxonomy.matrix.values[:, taxonomy.matrix.models.index(profile.model)]
        inside = values[taxonomy.inside[:, number]]
        rate = profile.rates[number]
        assert rate.asked == (~np.isnan(inside)).sum()
        assert rate.failed == (inside == 0).sum()
        assert rate.low <= rate.rate == rate.failed / rate.asked <= rate.high
        assert profile.mean == pytest.approx(np.mean([one.rate for one in profile.rates]))
    by_name = {one.model: one for one in profiles.models}
    assert by_name["m00"].rates[number].beyond
    assert by_name["m00"].rates[number].rate > by_name["m00"].rates[number].expected + 0.2
    # it passes more than most over all examples, and fails most in the leaf
    assert by_name["m00"].rank > 6
    assert by_name["m00"].failed < np.median([one.failed for one in profiles.models])


def test_models_that_are_chosen_keep_their_ranks_among_all(taxonomy: Taxonomy) -> None:
    ranks = {one.model: one.rank for one in profile_models(taxonomy).models}
    some = profile_models(taxonomy, ["m05", "m00"])
    assert {one.model: one.rank for one in some.models} == {
        name: ranks[name] for name in ("m00", "m05")
    }
    assert some.all_models == 12
    with pytest.raises(PlanError, match="there is no model 'gpt'"):
        profile_models(taxonomy, ["gpt"])


def test_without_a_published_cluster_it_says_which_flag_shows_all(taxonomy: Taxonomy) -> None:
    bare = replace(taxonomy, clusters=())
    with pytest.raises(InputError, match="--unstable"):
        profile_models(bare)


def test_a_bar_is_as_long_as_the_rate_and_names_are_escaped(taxonomy: Taxonomy) -> None:
    (profile,) = profile_models(taxonomy, ["m00"]).models
    drawn = draw_profile(replace(profile, model="<script>m</script>"))
    assert "<script>" not in drawn.svg
    widths = [float(one) for one in re.findall(r'<rect[^>]* width="([0-9.]+)"', drawn.svg)]
    assert widths == pytest.approx([420 * one.rate for one in profile.rates], abs=0.01)


def test_many_models_are_drawn_evenly_by_rank(taxonomy: Taxonomy) -> None:
    profiles = profile_models(taxonomy)
    many = replace(profiles, models=profiles.models * 2)
    charts = make_profile_page(many, "many").sections[1]
    assert f"{MAX_CHARTS} models are drawn" in str(charts.content[0])


def test_the_command_prints_writes_and_gives_json(taxonomy: Taxonomy, tmp_path: Path) -> None:
    taxonomy.save(tmp_path / "modes")
    words = f"profiles {tmp_path}/modes --model m00"
    ran = CliRunner().invoke(command, [*words.split(), "--html", f"{tmp_path}/p.html"])
    assert ran.exit_code == 0, ran.output
    assert "Rate" in ran.output
    assert "█" in ran.output
    page = (tmp_path / "p.html").read_text()
    assert page.count('aria-label="m00: leaf 1') == 1
    ran = CliRunner().invoke(command, [*words.split(), "--json", "-"])
    (model,) = json.loads(ran.output)["models"]
    assert model["model"] == "m00"
    assert model["beyond"] >= 1
    assert 0 <= model["rates"][0]["low"] < model["rates"][0]["rate"] <= 1
    ran = CliRunner().invoke(command, [*words.split()[:2], "--model", "gpt"])
    assert isinstance(ran.exception, PlanError)
