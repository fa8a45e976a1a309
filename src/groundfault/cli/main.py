"""The command line: commands are imported when called, and errors are printed in one line."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from traceback import print_exception
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem, get_completion_class

from groundfault.base.files import SHARE
from groundfault.base.registry import import_optional
from groundfault.errors import GroundfaultError, InputError, shorten

TROUBLE = 2
"""Exit status where input or output is in trouble; 1 is a gate that failed."""

_MADE = 100_000
"""Objects made between two searches for unused cycles, 700 in Python: most are classes and
functions of libraries, which stay. That and no search at the end save .3 of 1.8 s."""

# file and first sentence of each command: to read them there, --help would import numpy and polars,
# a second instead of a tenth
_FRONT = {
    "audit": ("audit", "Name a model's failure modes, with their examples."),
    "open": ("open_", "Show a report and its examples in the browser."),
    "compare": ("audit", "Find where the second of two models is worse or better."),
    "gate": ("reports", "Fail a build if REPORT has new failures."),
    "label": ("label", "Label examples, and stop when the evidence is enough."),
    "case": ("case", "Find failure modes, and confirm them on fresh labels."),
    "export": ("reports", "Write the modes and slices of REPORT for another tool."),
    "verify": ("reports", "Recompute a stored result and check every number."),
}
_BESIDE = {
    "demo": ("demo", "Try it: audit 2,000 real answers of a small model."),
    "init": ("settings_file", "Guess your columns and write groundfault.toml."),
    "import": ("audit", "Read the logs of evaluation tools into one table."),
    "check": ("audit", "Say how small a problem an audit of SOURCE can find."),
    "show": ("reports", "Show examples of a failure mode of REPORT."),
    "doctor": ("doctor", "List installed extras, and the use of each."),
    "mcp": ("mcp", "Let a coding assistant audit, compare and gate."),
    "completion": ("main", "Complete commands and options in your shell."),
    "lab": ("main", "Propose slices, describe, probe, cluster, calibrate."),
}
_LAB = {
    "describe": ("describe", "Let a language model describe failing examples."),
    "probe": ("main", "Test a model on wordings that must not change the answer."),
    "anchor": ("reports", "Sign a ledger, so that others notice if it is erased."),
}
_RESEARCH = {
    "slices": "Propose slices with high failure rates; confirm nothing.",
    "cases": "Let a model write cases for the group that an audit doubts.",
    "calibrate": "Measure a judge's rate of false confirmations and power.",
    "condition": "Test rules given several or numeric columns.",
    "explain": "Name the linguistic features of each slice of errors.",
    "improve": "Rank examples to leave out, relabel or label next.",
    "features": "Add linguistic features of texts to a table as columns.",
    "taxonomy": "Name failure modes of many models; cluster their failures.",
    "study": "Regenerate a paper's tables.",
}
_LAB_PACKAGE = {
    name: (f"groundfault_lab.commands.{name}", line) for name, line in _RESEARCH.items()
}
_PROBE = "groundfault_lab.commands.probe"
_PROBE_REPORT = "groundfault_lab.commands.probe_report"
_PERTURB = "groundfault_lab.commands.perturb"
_PROBES = {
    "init": (_PROBE, "Write a bank, a grammar and a config into FOLDER."),
    "check": (_PROBE, "Check every prompt of the bank and grammar in FOLDER."),
    "run": (_PROBE, "Ask a model the prompts of CONFIG within its budget."),
    "perturb": (_PERTURB, "Add typos, contractions, names and other changes to a bank."),
    "expect": (_PERTURB, "Test if answers rise, fall, stay or change as they must."),
    "propose": (_PERTURB, "Let a model write variants of the tasks that failed in RUNS."),
    "keep": (_PERTURB, "Make a bank of the variants in VARIANTS that a person kept."),
    "report": (_PROBE_REPORT, "Report the results of RUNS after review."),
    "release": (_PROBE_REPORT, "Write a package of RUNS to publish."),
    "arena": (_PROBE_REPORT, "Compare policies by the failing prompts that they find."),
}
_IN_PACKAGE = "In the package groundfault-lab"
_ELSEWHERE = {"sequential": "label"} | {name: f"lab {name}" for name in (*_LAB, *_LAB_PACKAGE)}
"""Commands that stood at the front until 0.2, for the error that says where they are."""


class _Lazy(click.Group):
    """Lists commands by name and one line, under headings, and imports the one that is called."""

    def __init__(
        self,
        *args: Any,
        sections: Mapping[str, Mapping[str, tuple[str, str]]],
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.sections = sections

    @property
    def lines(self) -> dict[str, tuple[str, str]]:
        """The file and the first sentence of every command."""
        return {name: one for section in self.sections.values() for name, one in section.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.lines)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self.lines:
            return None
        file = self.lines[cmd_name][0]
        module = import_optional(file if "." in file else f"groundfault.cli.{file}")
        # some functions cannot be called like their commands: a keyword, and what opens files
        command = getattr(module, f"{cmd_name}_", None) or getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in _ELSEWHERE and args[0] not in self.lines and not ctx.resilient_parsing:
            place = _ELSEWHERE[args[0]]
            raise InputError(f"No such command {args[0]!r}: type groundfault {place}")
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self.lines if name.startswith(incomplete)]
        items = [CompletionItem(name, help=self.lines[name][1]) for name in names]
        return [*items, *click.Command.shell_complete(self, ctx, incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        width = max(map(len, self.lines))
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(n.ljust(width), line) for n, (_, line) in commands.items()])


_INSISTENCE = 1  # second: longer than most clean-ups, and short to wait for


@click.group(
    cls=_Lazy,
    sections={"Commands": _FRONT, "Other commands": _BESIDE},
    epilog="Exit codes: 0 done, 1 a gate failed, 2 bad input or no output. Start: groundfault demo",
)
@click.version_option(package_name="groundfault")
@click.option("--share", is_flag=True, help="Let others on this machine read the files.")
def cli(share: bool) -> None:
    """Find out where a model fails, with rules you can check.

    Give it evaluation results. You get failure modes: a few readable rules under which the model
    fails more often than chance allows, each with examples.
    """
    if share:
        os.environ[SHARE] = "1"


@click.group(cls=_Lazy, sections={"Commands": _LAB, _IN_PACKAGE: _LAB_PACKAGE})
def lab() -> None:
    """Propose slices, describe, probe, cluster, calibrate.

    These commands serve research and special questions. An audit does not need them.
    """


@click.group(cls=_Lazy, sections={_IN_PACKAGE: _PROBES})
def probe() -> None:
    """Test a model on wordings that must not change the answer."""


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Complete commands and options in your shell.

    It prints a script. Add the line of your shell to its start-up file:

    \b
    eval "$(groundfault completion bash)"         in ~/.bashrc
    eval "$(groundfault completion zsh)"          in ~/.zshrc, after compinit
    groundfault completion fish | source          in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(cli, {}, "groundfault", "_GROUNDFAULT_COMPLETE").source())


def main() -> None:
    """Run the command line; return the exit status, after one line on an error."""
    gc.set_threshold(_MADE)
    atexit.register(gc.freeze)
    streams = sys.stdout, sys.stderr
    for stream in streams:
        # a name of a file need not be text, and not every terminal has every letter
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        with _stop_on_signals():
            try:
                # click's own mode would print usage in several lines and exit with other statuses
                cli.main(standalone_mode=False)
            finally:
                sys.stdout.flush()
    except SystemExit as stop:
        # where nobody reads any more, click and rich end with 1, which is a gate that failed: one
        # wraps the output, the other ends where it caught the error
        if sys.stdout is streams[0] and not isinstance(stop.__context__, BrokenPipeError):
            raise
        sys.stdout, sys.stderr = streams
        _leave(*describe_end(BrokenPipeError()))
    except BaseException as error:
        status, line = describe_end(error)
        if line is None and status == TROUBLE:
            # a bug: its traceback is what has to be reported
            print_exception(error)
            line = "error: this is a fault of groundfault; please report it with the lines above"
        _leave(status, line)


def describe_end(error: BaseException) -> tuple[int, str | None]:
    """Return the exit status of a command that ends with this error, and the line that says why.

    Status 1 belongs to gates and never comes from an error: input and output that are in trouble
    are 2, and signals 128 and their number, as shells have it. Without a line, status 2 is a fault
    of our own.
    """
    match error:
        case click.Abort() | KeyboardInterrupt():
            return 128 + signal.SIGINT, "stopped"
        case BrokenPipeError():
            # as `head` stops any other program: nobody is left to read a line
            return 128 + getattr(signal, "SIGPIPE", 13), None
        case click.exceptions.NoArgsIsHelpError():
            # nothing but the name of a group of commands: the message is its help, in its lines
            return TROUBLE, error.format_message()
        case click.ClickException():
            context = getattr(error, "ctx", None)
            hint = f" (see {context.command_path} --help)" if context else ""
            message = _line(error.format_message())
            if context and isinstance(context.command, click.Group):
                # a name that is no command: most often a file, and the command was left out
                names = ", ".join(context.command.list_commands(context))
                message = f"{message.rstrip('.')}: name one of {names}"
            return TROUBLE, f"error: {message}{hint}"
        case GroundfaultError():
            return TROUBLE, f"error: {_line(str(error))}"
        case OSError():
            where = "" if error.filename is None else f": {error.filename}"
            return TROUBLE, f"error: {_line(f'{error.strerror or error}{where}')}"
        case RecursionError():
            return TROUBLE, "error: the input is nested too deeply"
        case MemoryError():
            return TROUBLE, "error: there is not enough memory for this"
        case _:
            return TROUBLE, None


@contextmanager
def _stop_on_signals() -> Iterator[None]:
    """End as Ctrl-C does, cleaning up and taking worker processes along, when told to terminate.

    A callback of compiled code, and a destructor, drop what is raised in them: until the command
    is ending, it is raised again every second.
    """
    told: list[int] = []

    def stop(number: int, _: object) -> None:
        error = sys.exc_info()[1] if number in told else None
        while error is not None and not isinstance(error, SystemExit):
            error = error.__context__
        told.append(number)
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, lambda _, frame: stop(told[0], frame))
            signal.setitimer(signal.ITIMER_REAL, _INSISTENCE)
        # what is raised again in a clean-up would leave it half done
        if error is None:
            raise SystemExit(128 + told[0])

    names = [name for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # what somebody asked to be ignored stays ignored, as nohup does
    default = [
        n for n in map(signal.Signals.__getitem__, names) if signal.getsignal(n) is signal.SIG_DFL
    ]
    for number in default:
        signal.signal(number, stop)
    try:
        yield
    except BaseException:
        if told:
            # a clean-up that failed does not change why it ends
            raise SystemExit(128 + told[0]) from None
        raise
    finally:
        if told and hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number in default:
            signal.signal(number, signal.SIG_DFL)


def _leave(status: int, line: str | None) -> NoReturn:
    """Exit; drop text that standard output can no longer take, or Python would complain."""
    with suppress(OSError):
        if line is not None:
            click.echo(line, err=True)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    sys.exit(status)


def _line(message: str) -> str:
    """Set a message on one line, without control characters: it may quote data."""
    from groundfault.render.words import clean

    return shorten(clean(" ".join(message.split())))
