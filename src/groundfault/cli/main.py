"""The command line: commands are imported when called, and errors are printed in one line."""

from __future__ import annotations

import sys
from importlib import import_module

import click

from groundfault.errors import GroundfaultError

# the descriptions stand here and not only in the commands: --help would import numpy and polars for
# them, a second instead of a tenth
_COMMANDS = {
    "demo": ("groundfault.cli.demo", "Audit real answers of a small language model, offline."),
    "audit": ("groundfault.cli.audit", "Name the failure modes of a model, with their examples."),
    "import": ("groundfault.cli.import_", "Read the logs of evaluation tools into one table."),
    "check": (
        "groundfault.cli.audit",
        "Say what an audit can test and detect, before it opens the holdout.",
    ),
    "verify": ("groundfault.cli.audit", "Recompute a report and say whether it reproduces."),
    "show": ("groundfault.cli.show", "Show examples of a failure mode of a report."),
    "gate": ("groundfault.cli.gate", "Fail a build on new findings of a report."),
    "export": (
        "groundfault.cli.export",
        "Write confirmed slices for the tools that the logs came from.",
    ),
    "slices": ("groundfault.cli.slices", "Propose slices with high error rates; confirm nothing."),
    "explain": (
        "groundfault.cli.explain",
        "Name the linguistic features of each slice of errors.",
    "anchor": ("groundfault.cli.anchor", "Sign the head of a ledger, so that erasing it shows."),
    ),
    "features": ("groundfault.cli.features", "Compute linguistic features of texts as columns."),
    "sequential": ("groundfault.cli.sequential", "Audit one case at a time; stop at any time."),
    "taxonomy": ("groundfault.cli.taxonomy", "Cluster examples by which models fail on them."),
    "probe": (
        "groundfault.cli.probe",
        "Test a model on wordings that must not change the answer.",
    ),
    "calibrate": (
        "groundfault.cli.calibrate",
        "Measure a judge's error rate on simulated data or your own.",
    ),
    "study": ("groundfault.cli.study", "Regenerate a paper's tables."),
}


class _Lazy(click.Group):
    """Lists the commands by name and one line, and imports only the one that is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command = getattr(
            import_module(_COMMANDS[cmd_name][0]), "import_" if cmd_name == "import" else cmd_name
        )
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in _COMMANDS.items()])


@click.group(
    cls=_Lazy,
    epilog="Exit codes: 0 fine, 1 a gate failed, 2 bad input. Start with: groundfault demo",
)
@click.version_option(package_name="groundfault")
def cli() -> None:
    """Say where a model fails, and on what evidence.

    Evaluation results go in; out come failure modes: few readable rules under which failures are
    more frequent than chance allows, with examples. Candidate explanations are judged beside them,
    and the report says how large an effect the audit could detect.
    """


def main() -> None:
    """Run the command line; a groundfault error is one line and exit status 2."""
    try:
        # click's own mode would print usage in several lines and exit with other statuses
        cli.main(standalone_mode=False)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        click.echo(f"error: {_line(error.format_message())}{hint}", err=True)
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("stopped", err=True)
        sys.exit(130)
    except GroundfaultError as error:
        click.echo(f"error: {_line(str(error))}", err=True)
        sys.exit(2)


def _line(message: str) -> str:
    """A message on one line, without what would steer a terminal: it may quote data."""
    from groundfault.render.words import clean

    return clean(" ".join(message.split()))
