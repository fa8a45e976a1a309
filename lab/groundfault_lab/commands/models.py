"""The model that a command of groundfault-lab asks."""

from __future__ import annotations

from typing import Annotated

from groundfault import models
from groundfault.cli.command import Decorator
from groundfault.cli.reading import read_values
from groundfault.cli.settings import Flag, derive_options
from groundfault.models import Target


def get_model(*, model: str, settings: Annotated[tuple[str, ...], Flag("--set")] = ()) -> Target:
    """Return the model that two options name.

    Output
    ------
    model : NAME
        Model to test, such as openai/gpt-4o-mini, hf/NAME or replay:FILE.
    settings : NAME=VALUE
        Setting of the model, such as base_url=URL; repeatable.
    """
    return models.get(model, **read_values(settings))


model_options = derive_options(get_model)
"""Which model is tested."""


def writer_options(texts: str) -> Decorator:
    """Make the same options for a model that writes texts."""
    return derive_options(get_model, model={"help": f"Model that writes the {texts}."})
