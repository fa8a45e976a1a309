"""Readers: each knows the logs of one tool, one format a file.

A reader is an ordinary class with ``sniff`` and ``read``; packages register theirs under the
entry-point group ``groundfault.readers``. None of them imports the tool whose logs it reads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from groundfault.base.registry import Registry
from groundfault.errors import InputError
from groundfault.readers.log import Log

GROUP = "groundfault.readers"

# the first that knows a file reads it: a table of no tool in particular comes last
_BUILT_IN: dict[str, str] = {
    "inspect": "groundfault.readers.inspect:Inspect",
    "helm": "groundfault.readers.helm:Helm",
    "promptfoo": "groundfault.readers.promptfoo:Promptfoo",
    "every_eval_ever": "groundfault.readers.every_eval_ever:EveryEvalEver",
    "lm_eval": "groundfault.readers.lm_eval:LmEval",
    "deepeval": "groundfault.readers.deepeval:DeepEval",
    "swebench": "groundfault.readers.swebench:SweBench",
    "evalplus": "groundfault.readers.evalplus:EvalPlus",
    "alpaca_eval": "groundfault.readers.alpaca_eval:AlpacaEval",
    "tau_bench": "groundfault.readers.tau_bench:TauBench",
    "mint": "groundfault.readers.mint:Mint",
    "zero_eval": "groundfault.readers.zero_eval:ZeroEval",
    "gsm8k": "groundfault.readers.gsm8k:Gsm8k",
    "bfcl": "groundfault.readers.bfcl:Bfcl",
    "openai_evals": "groundfault.readers.openai_evals:OpenAIEvals",
    "garak": "groundfault.readers.garak:Garak",
    "lighteval": "groundfault.readers.lighteval:LightEval",
    "phoenix": "groundfault.readers.phoenix:Phoenix",
    "langfuse": "groundfault.readers.langfuse:Langfuse",
    "label_studio": "groundfault.readers.label_studio:LabelStudio",
    "table": "groundfault.readers.mapped:Canonical",
}

_REGISTRY = Registry("reader", GROUP, _BUILT_IN)


class Reader(Protocol):
    """What reads the logs of one tool.

    A reader may name files that its tool writes beside its logs, and that are no logs, by an
    attribute ``companions``: patterns such as ``("results_*.json",)``. The account does not list
    them as unread."""

    def sniff(self, path: Path) -> bool:
        """Whether this is one log of the tool: a file, or a directory that is one run. Quick, and
        never an error.
        """

    def read(self, path: Path) -> Log:
        """The log; raises `InputError` where it cannot be read."""


def known() -> tuple[str, ...]:
    """Names of the readers at hand: the built-in ones, then those of installed packages."""
    return _REGISTRY.names()


def get(name: str) -> Reader:
    """The reader of a name.

    Raises
    ------
    PlanError
        If no reader has the name.
    """
    made: Any = _REGISTRY.get(name)()
    return made  # type: ignore[no-any-return]


def sniff(path: str | Path) -> str | None:
    """The name of the first reader that knows a file or directory; None where none does."""
    place = Path(path)
    return next((name for name in known() if get(name).sniff(place)), None)


def read(path: str | Path, reader: str | None = None) -> Log:
    """One log, by the reader named or the first that knows it.

    Raises
    ------
    InputError
        If no reader knows the file, or it cannot be read.
    """
    name = reader or sniff(path)
    if name is None:
        raise InputError(f"{path}: no reader knows this file; there are {', '.join(known())}")
    return get(name).read(Path(path))
