"""Commands with many options: grouped help, flags under older names, shared options."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import click
import pytest
from click.testing import CliRunner, Result

from groundfault.cli.command import GroupedCommand, option
from groundfault.cli.main import cli, lab

MANY = 12
LETTERS = 60
SCREEN = 40
PAGE = 48


@click.command(cls=GroupedCommand, first="size")
@option("--size", type=int, group="Shape", help="Size of it.")
@option("--null-colour", group="Shape", multiple=True, help="Colour of none.")
@option("--out", help="Write it here.")
@option("--seed", type=int, group="Draw", help="Seed of every random draw.")
def small(
    size: int | None, null_colour: tuple[str, ...], out: str | None, seed: int | None
) -> None:
    """Draw."""
    click.echo(f"{size} {null_colour} {out} {seed}")


def run(*words: str) -> Result:
    return CliRunner().invoke(small, words, prog_name="small")


def commands(group: click.Group = cli, name: str = "groundfault") -> Iterator[click.Command]:
    context = click.Context(group, info_name=name)
    for each in group.list_commands(context):
        command = group.get_command(context, each)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, f"{name} {each}")
        else:
            yield command


def first_sentence(command: click.Command) -> str:
    """What a command's help says before the first full stop."""
    return re.split(r"(?<=\.)\s", " ".join((command.help or "").split()))[0]


def test_help_describes_what_matters_first_and_names_the_rest_by_group() -> None:
    text = run("--help").output
    assert "Size of it." in text
    assert "--help-all" in text
    for group, flag in (("Shape", "--null-colour"), ("Draw", "--seed"), ("Output", "--out")):
        assert re.search(rf"{group} +{flag}", text), group
    assert "Colour of none." not in text


def test_help_all_describes_every_option_by_group_and_output_last() -> None:
    text = run("--help-all").output
    places = [text.index(f"{group}:") for group in ("Shape", "Draw", "Output", "Help")]
    assert places == sorted(places)
    for described in ("Size of it.", "Colour of none.", "Write it here.", "Seed of every"):
        assert described in text


def test_commands_of_many_options_show_eight_of_them_first() -> None:
    for command in commands():
        options = [p for p in command.params if isinstance(p, click.Option)]
        if len(options) > MANY:
            assert isinstance(command, GroupedCommand), command.name
            assert len(command.first) in (7, 8), command.name


def test_every_command_prints_its_help() -> None:
    """Options that a command names first are options, not arguments."""
    for command in commands():
        assert CliRunner().invoke(command, ["--help"]).exit_code == 0, command.name


def test_every_option_says_what_it_is_in_a_sentence_of_its_own() -> None:
    for command in commands():
        for each in command.params:
            if isinstance(each, click.Option):
                text = each.help or ""
                assert text.endswith((".", ")")), (command.name, each.name)
                assert not re.match(r"(Of|With|Or|The same|Which|Who|How)\b", text), text
                assert text[0].isupper(), text


def test_a_command_says_first_in_at_most_sixty_letters_what_it_does() -> None:
    for command in commands():
        sentence = first_sentence(command)
        assert len(sentence) <= LETTERS, sentence
        assert re.match(r"[A-Z][a-z]+ ", sentence), sentence
        assert sentence.endswith("."), sentence


def test_the_list_of_commands_has_their_first_sentences() -> None:
    for group in (cli, lab):
        context = click.Context(group)
        for name, (_, line) in group.lines.items():
            command = group.get_command(context, name)
            assert command is not None
            assert line == first_sentence(command)


def test_the_first_help_fits_a_screen_and_begins_with_eight_commands() -> None:
    help_ = CliRunner().invoke(cli, ["--help"]).output
    assert len(help_.splitlines()) <= SCREEN
    assert len(CliRunner().invoke(cli, ["audit", "--help"]).output.splitlines()) <= PAGE
    names = list(cli.lines)
    assert names[:8] == "audit open compare gate label case export verify".split()


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("groundfault la", {"label", "lab"}),
        ("groundfault lab im", {"improve"}),
        ("groundfault audit --positive-is-g", {"--positive-is-good"}),
        ("groundfault label pl", {"plan"}),
    ],
)
def test_a_shell_completes_commands_and_options(words: str, completed: set[str]) -> None:
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    env = asked | {"_GROUNDFAULT_COMPLETE": "bash_complete"}
    done = CliRunner().invoke(cli, [], prog_name="groundfault", env=env)
    assert {line.partition(",")[2] for line in done.stdout.splitlines()} == completed


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_for_a_shell_is_one_command(shell: str) -> None:
    done = CliRunner().invoke(cli, ["completion", shell])
    assert done.exit_code == 0, done.exception
    assert f"_GROUNDFAULT_COMPLETE={shell}_complete" in done.stdout
    if shell == "bash" and shutil.which("bash"):
        script = f"{done.stdout}\ncomplete -p groundfault"
        set_up = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        assert "_groundfault_completion groundfault" in set_up.stdout
