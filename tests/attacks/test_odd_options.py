"""Every option of every command with a value of another type: one line, and no exception of ours is
missing its words.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click
import polars as pl
import pytest
from click.testing import CliRunner
from hypothesis import given, settings, strategies as st
from profiles import count_examples

from groundfault.cli.main import TROUBLE, cli, describe_end

ODD = ["", " ", "x", "-1", "0", "nan", "1e999", "1/0", "9" * 400, "a,b", "'", "\\", "{}", "\udcff"]
LONG = {"open", "demo", "calibrate", "study", "arena", "completion", "init"}
"""They serve, wait, or work for minutes where the value is right after all."""


def list_commands(
    group: click.Group, words: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from list_commands(command, (*words, name))
        elif name not in LONG:
            yield (*words, name), command


COMMANDS = list(list_commands(cli))
CASES = [
    (words, option, [each for each in command.params if isinstance(each, click.Argument)])
    for words, command in COMMANDS
    for option in command.params
    if isinstance(option, click.Option) and not option.is_flag and option.nargs == 1
]


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("options")
    rows = {"id": [f"i{i}" for i in range(40)], "n": range(40), "error": [i % 2 for i in range(40)]}
    pl.DataFrame(rows).write_csv(folder / "t.csv")
    return folder


def test_there_are_many_options() -> None:
    assert len(COMMANDS) > 25
    assert len(CASES) > 300


@settings(max_examples=count_examples(3_000, fast=25))
@given(case=st.sampled_from(CASES), value=st.sampled_from(ODD))
def test_an_odd_value_is_one_line(
    case: tuple[tuple[str, ...], click.Option, list[click.Argument]], value: str, table: Path
) -> None:
    words, option, arguments = case
    before = Path.cwd()
    os.chdir(table)
    try:
        run = CliRunner().invoke(
            cli, [*words, *("t.csv" for _ in arguments), f"{option.opts[-1]}={value}"]
        )
    finally:
        os.chdir(before)
    if run.exception is not None and not isinstance(run.exception, SystemExit):
        # as `main` ends: without a line it is a fault of ours
        status, line = describe_end(run.exception)
        assert line or status != TROUBLE, (words, option.opts, value, repr(run.exception))
