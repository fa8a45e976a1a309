"""Write what the reference takes from the code: ``python docs/generate.py``.

A page marks such a part with ``<!-- generated: NAME -->`` and ``<!-- end -->``; everything between
is replaced. The files in docs/reference/schemas are written whole. The tests fail where one of them
is older than the code.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import click
import msgspec

from groundfault import judges
from groundfault.auditing import messages
from groundfault.auditing.messages import describe_level
from groundfault.base.registry import load_object
from groundfault.cli import doctor, shared
from groundfault.cli.command import GroupedCommand
from groundfault.cli.main import cli
from groundfault.cli.settings import read_parameter_texts
from groundfault.core.plan import Plan, _plain

DOCS = Path(__file__).parent
_PART = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


PUBLIC_API = DOCS / "reference" / "public-api.json"
"""The public names of the last release; `python docs/generate.py --release` writes it."""


def main() -> int:
    """Rewrite every page that is out of date; say which."""
    if "--release" in sys.argv:
        PUBLIC_API.write_text(json.dumps(public_api(), indent=1) + "\n", encoding="utf-8")
    for page in sorted(DOCS.rglob("*.md")):
        old = page.read_text(encoding="utf-8")
        new = filled(old)
        if new != old:
            page.write_text(new, encoding="utf-8")
            print(f"rewrote {page.relative_to(DOCS)}")
    for name, place in SCHEMAS.items():
        path = DOCS / "reference" / "schemas" / name
        text = json_schema(place)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"rewrote {path.relative_to(DOCS)}")
    return 0


def filled(text: str) -> str:
    """Return a page with its generated parts up to date."""
    return _PART.sub(lambda part: f"{part[1]}\n{PARTS[part[2]]()}\n\n{part[3]}", text)


# ------------------------------------------------------------------------------------- command line


def command_line() -> str:
    """Describe every command: its help, its arguments and all of its options."""
    context = click.Context(cli, info_name="groundfault")
    return "\n\n".join(_command(context, name, "##") for name in cli.list_commands(context))


def commands(
    group: click.Group = cli, path: str = "groundfault"
) -> Iterator[tuple[str, click.Command]]:
    """Yield every command by its whole name, and after a group the commands in it."""
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def _command(parent: click.Context, name: str, heading: str) -> str:
    """Describe a command and those under it, each under a heading one level deeper."""
    assert isinstance(parent.command, click.Group)
    command = parent.command.get_command(parent, name)
    assert command is not None
    context = click.Context(command, parent=parent, info_name=name)
    usage = f"{context.command_path} {' '.join(command.collect_usage_pieces(context))}"
    parts = [f"{heading} `{context.command_path}`", _prose(command.help or "")]
    parts += [f"```text\n{usage}\n```", _tables(command)]
    if isinstance(command, click.Group):
        inner = command.list_commands(context)
        parts += [_command(context, each, f"{heading}#") for each in inner]
    return "\n\n".join(parts)


def _tables(command: click.Command) -> str:
    """Tabulate the options of a command: a table for each group, where it has groups."""
    if isinstance(command, GroupedCommand) and command.first:
        groups = command.groups().items()
        return "\n\n".join(f"**{group}**\n\n{_options(options)}" for group, options in groups)
    return _options(command.params)


def _params(decorate: Callable[[click.Command], click.Command]) -> list[click.Parameter]:
    probe = click.Command("probe")
    decorate(probe)
    return probe.params


def _prose(text: str) -> str:
    """Set help as Markdown: what click is told not to wrap becomes a block of its own."""
    blocks = [block.strip("\n") for block in re.split(r"\n\s*\n", text)]
    shown = []
    for block in blocks:
        lines = [line.strip() for line in block.splitlines() if line.strip()]
        if lines and lines[0] == "\b":
            shown.append("```sh\n" + "\n".join(lines[1:]) + "\n```")
        elif lines:
            shown.append(_named(" ".join(lines)))
    return "\n\n".join(shown)


def _options(params: Iterable[click.Parameter]) -> str:
    rows = ["| option | default | meaning |", "|---|---|---|"]
    for option in params:
        if isinstance(option, click.Option):
            rows.append(f"| {_shape(option)} | {_default(option)} | {_cell(_meaning(option))} |")
    return "\n".join(rows)


def _shape(option: click.Option) -> str:
    value = ""
    if not option.is_flag:
        value = f" {option.metavar}" if option.metavar else f" {_words(option)}"
        if option.nargs == 2 and not option.metavar:
            value *= 2
    flags = ", ".join([*option.opts, *option.secondary_opts])
    return _cell(f"`{flags}{value}`")


def _words(option: click.Option) -> str:
    if isinstance(option.type, click.Choice):
        return "|".join(option.type.choices)
    return {"integer": "N", "integer range": "N", "text": "X", "path": "PATH"}.get(
        option.type.name, "X"
    )


def _default(option: click.Option) -> str:
    if option.multiple:
        return "repeatable"
    shown = option.default
    return (
        f"`{shown}`"
        if option.show_default and shown is not None and isinstance(shown, str | int | float)
        else ""
    )


def _meaning(option: click.Option) -> str:
    return _named(option.help or "") + (" Required." if option.required else "")


def _named(text: str) -> str:
    """Set options in prose as code, since two hyphens make a dash."""
    return re.sub(r"(?<![\w`-])--[a-z][a-z-]*", r"`\g<0>`", text)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# ------------------------------------------------------------------------------- settings and words


def plan_settings() -> str:
    """List every field of a plan: its default, its option, and the text of its docstring."""
    texts = read_parameter_texts(Plan)
    shell = {p.name: p.opts[0] for p in _params(shared.plan_options) if p.name}
    rows = ["| setting | default | option | meaning |", "|---|---|---|---|"]
    for field in fields(Plan):
        default = _plain(field.default)
        option = f"`{shell[field.name]}`" if field.name in shell else ""
        rows.append(
            f"| `{field.name}` | {'' if default is None else f'`{default}`'} | {option} "
            f"| {_cell(texts[field.name].text.replace('``', '`'))} |"
        )
    return "\n".join(rows)


def reason_codes() -> str:
    """List every reason code and its words."""
    rows = ["| code | words in the report |", "|---|---|"]
    return "\n".join(
        [*rows, *(f"| `{code}` | {words} |" for code, words in messages.REASONS.items())]
    )


def guarantees() -> str:
    """Say what a confirmation by each judge is worth, for 34 candidates and the default plan."""
    rows = ["| judge | holds out | what the report says a confirmation is worth |", "|---|---|---|"]
    held = {"gate": "yes", "exact": "yes", "none": "no"}
    for name in judges.NAMES:
        judge = judges.get(name)
        rows.append(
            f"| `{name}` | {held[judge.confirmation]} | "
            f"{describe_level(judge, Plan(judge=name), 34)} |"
        )
    return "\n".join(rows)


# ------------------------------------------------------------------------------------- JSON Schemas

SCHEMAS = {
    "certificate.json": "groundfault.sequential.certificate:Certificate",
    "confirmation.json": "groundfault.sequential.stored_result:Confirmation",
    "diagnosis.json": "groundfault_lab.taxonomy.use.diagnosis:Diagnosis",
    "labels.json": "groundfault_lab.taxonomy.words.labelling:Labelling",
    "probe-summary.json": "groundfault_lab.probes.summary:ProbeSummary",
    "report.json": "groundfault.auditing.report_schema:ReportData",
    "taxonomy.json": "groundfault_lab.taxonomy.fitting.taxonomy:TaxonomyData",
}
"""Files of docs/reference/schemas, and the type that each describes."""


def json_schema(place: str) -> str:
    """Return the JSON Schema of a type, as text."""
    schema = msgspec.json.schema(load_object(place))
    header = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    return json.dumps(header | _dedent(schema), indent=1, ensure_ascii=False) + "\n"


def _dedent(schema: Any) -> Any:
    """Return a schema with docstrings as Python 3.13 has them, so that versions write the same."""
    if isinstance(schema, list):
        return [_dedent(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: inspect.cleandoc(value)
        if key == "description" and isinstance(value, str)
        else _dedent(value)
        for key, value in schema.items()
    }


def public_api() -> dict[str, str]:
    """Return every public name with its parameters, and each method of a class by its own name."""
    import groundfault
    from groundfault import plugins
    from groundfault_lab import testing

    names: dict[str, str] = {}
    for module in (groundfault, plugins, testing):
        door = module.__name__
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            names[f"{door}.{name}"] = _parameters(thing)
            # those of Python's own bases differ by its version
            bases = inspect.getmro(thing) if inspect.isclass(thing) else ()
            ours = [base for base in bases if base.__module__.startswith("groundfault")]
            for member in sorted({each for base in ours for each in vars(base) if each[0] != "_"}):
                attribute = inspect.getattr_static(thing, member)
                names[f"{door}.{name}.{member}"] = _parameters(attribute)
    return names


def _parameters(thing: Any) -> str:
    """Spell parameters without types, which say the same in another way in each Python."""
    thing = getattr(thing, "__func__", thing)
    try:
        parameters = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return ""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return ", ".join(
        ("key " if each.kind is each.KEYWORD_ONLY else "")
        + stars.get(each.kind, "")
        + each.name
        + ("=" if each.default is not each.empty else "")
        for each in parameters
    )


def extras() -> str:
    """Tabulate the extras, and what each adds."""
    rows = (f"| `{name}` | {text} |" for name, text in doctor.TEXTS.items())
    return "\n".join(["| extra | adds |", "|---|---|", *rows])


PARTS: dict[str, Callable[[], str]] = {
    "extras": extras,
    "command-line": command_line,
    "plan-settings": plan_settings,
    "reason-codes": reason_codes,
    "guarantees": guarantees,
}

if __name__ == "__main__":
    sys.exit(main())
