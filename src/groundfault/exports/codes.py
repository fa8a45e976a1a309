"""Codes for other tools: labels, scanners, and failing runs as tests that must not come back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

from groundfault.base.files import write_text
from groundfault.base.sheets import write_table
from groundfault.coding import Coding
from groundfault.errors import InputError, require_name

_SCANNER = """
@scanner(messages="all", name={name})
def {function}():
    return llm_scanner(question={question}, answer="boolean")
"""


def export_codes(coding: Coding, to: str, out: str | Path) -> str:
    """Write the codes and the coded runs for another tool, whole or not at all.

    Parameters
    ----------
    coding : Coding
    to : str
        ``table`` (ids, notes, step, inclusion and codes; CSV, Parquet or JSON lines),
        ``label-studio`` (tasks with their codes), ``scout`` (a module with a scanner of Inspect
        Scout for each code) or ``promptfoo`` (a test for each coded run that failed: none of its
        codes may come back).
    out : path

    Returns
    -------
    str
        The number of written items, such as "12 tests".

    Raises
    ------
    InputError
        If the tool is unknown, there is no code, or the file cannot be written.
    """
    require_name("tool", to, [*_TOOLS], InputError)
    if not coding.codes:
        raise InputError("no run has a code yet: code some runs, then export")
    if to == "table":
        write_table(labels := coding.labels(), out)
        return f"{labels.height:,} coded runs"
    content, number, what = _TOOLS[to](coding)
    write_text(Path(out), content)
    return f"{number:,} {what}"


def _write_json(content: object) -> str:
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _write_tasks(coding: Coding) -> tuple[str, int, str]:
    tasks = []
    for row, texts in coding.read_coded():
        keys = {"from_name": "codes", "to_name": "run", "type": "choices"}
        given = [code for code in coding.codes if row[code]]
        result = [{**keys, "value": {"choices": given}}] if given else []
        data = {"example_id": str(row[coding.evidence.roles.id or ""]), "note": row["note"]}
        data["run"] = "\n".join(f"{head}: {text}" for head, text in texts)
        tasks.append({"data": data, "annotations": [{"result": result}]})
    return _write_json(tasks), len(tasks), "tasks"


def _write_scanners(coding: Coding) -> tuple[str, int, str]:
    parts = ['"""Scanners of Inspect Scout, one for each code."""\n']
    parts.append("from inspect_scout import llm_scanner, scanner\n")
    for number, code in enumerate(coding.codes, 1):
        words = re.sub(r"\W+", "_", code, flags=re.ASCII).strip("_").lower()
        # quoted as Python quotes: a code is a text of a person, and no program
        parts.append(
            _SCANNER.format(
                name=ascii(code),
                function=f"code_{number}_{words}".rstrip("_"),
                question=ascii(coding.ask(code)),
            )
        )
    return "\n".join(parts), len(parts) - 2, "scanners"


def _write_tests(coding: Coding) -> tuple[str, int, str]:
    tests = []
    for row, texts in coding.read_coded("failing"):
        given = [code for code in coding.codes if row[code]]
        rubrics = [f"This does not happen: {code}. {coding.codes[code]}".strip() for code in given]
        checks = [
            # a template of promptfoo would fill what stands between braces
            {"type": "llm-rubric", "metric": code, "value": _protect(rubric)}
            for code, rubric in zip(given, rubrics, strict=True)
        ]
        asks = (text for head, text in texts if " user message" in head or "." not in head)
        question = next(asks, "")
        if checks and question:
            told, asked = row["note"] or ", ".join(given), {"prompt": _protect(question)}
            tests.append({"description": _protect(told), "vars": asked, "assert": checks})
    return _write_json({"tests": tests}), len(tests), "tests"


def _protect(words: str) -> str:
    """Return words in which promptfoo's templates find no expression."""
    return re.sub(r"\{(?=[{%#])", "{ ", words)


_TOOLS: dict[str, Callable[[Coding], tuple[str, int, str]]] = {
    "table": lambda _: ("", 0, ""),
    "label-studio": _write_tasks,
    "scout": _write_scanners,
    "promptfoo": _write_tests,
}
