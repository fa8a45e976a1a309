"""The book is true: its examples run and print what it shows, its links lead somewhere, and nothing
is left out.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
import traceback
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any

import click
import numpy as np
import polars as pl
import pytest
from msgspec import structs

import groundfault
from groundfault import finders, judges
from groundfault.auditing import messages
from groundfault.auditing.report_schema import OverallChange
from groundfault.core.finding import Elsewhere, Estimate
from groundfault.core.plan import Plan
from groundfault.modes.mode import Alternative, DosePoint, ModeChange

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
SKILL = ROOT / "skills" / "groundfault" / "SKILL.md"
BOOK = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)
# pages of the two other distributions, and tables with code, which are no part of the site
BESIDE = [
    *sorted((ROOT / "lab" / "docs").glob("*.md")),
    *sorted((ROOT / "studies").glob("*/*.md")),
]
PAGES = [
    *BOOK,
    *BESIDE,
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    SKILL,
    *sorted((ROOT / "decisions").glob("*.md")),
]
# how-to pages that train models, run a study, label a holdout, or start another tool: every night
HEAVY = {
    "a-case",
    "beyond-memory",
    "diagnose-a-model",
    "generate-tasks",
    "improve-a-model",
    "study-deim",
    "taxonomy",
}
# a block that needs a client of another tool runs where the client is installed
CLIENTS = ("mlflow", "wandb", "opentelemetry.sdk")
# pages with such blocks run among the tests of clients too
WITH_CLIENTS = {"give-results-back"}
# pages that ask real language models: every night where those and torch are there
NETWORKS = {ROOT / "lab" / "docs" / "a-case-with-models.md"}
# pages that read shared data, and need no more than that
SHARED = {ROOT / "studies" / "results" / "first-mistakes.md"}
CHAT_MODEL = ROOT / "lab" / "docs" / "a-chat-model.md"
HOW_TO = [
    page
    for page in [*BOOK, *BESIDE]
    if page.parent.name in ("how-to", "docs") and page.parent != DOCS and page.name != "index.md"
]
ROOMS = ("tutorial", "reference", "explanation", "results")
HOLDS_EXAMPLES = re.compile("^```(python|console)$", re.MULTILINE)
RUN = [
    page
    for page in [*BOOK, *BESIDE, ROOT / "CONTRIBUTING.md"]
    if page.parent.name in (*ROOMS, ROOT.name)
    and HOLDS_EXAMPLES.search(page.read_text(encoding="utf-8"))
]

BLOCK = re.compile(
    r"^(?P<fence>`{3,})(?P<kind>[\w{}-]*)[^\n]*\n(?P<text>.*?)^(?P=fence)$",
    re.MULTILINE | re.DOTALL,
)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


generate = load(DOCS / "generate.py")


# -------------------------------------------------------------------------------- examples that run


def examples(page: Path) -> Iterator[tuple[str, str, str]]:
    """The blocks of a page that run: python or console, the text, and what a ``text`` block right
    below says.
    """
    text = page.read_text(encoding="utf-8")
    found = list(BLOCK.finditer(text))
    for block, after in zip_longest(found, found[1:]):
        if block["kind"] in ("python", "console"):
            joined = (
                after is not None
                and after["kind"] == "text"
                and not text[block.end() : after.start()].strip()
            )
            yield (
                block["kind"],
                block["text"],
                after["text"] if joined and after is not None else "",
            )


def run(page: Path) -> None:
    """Run a page's examples in order, as one reader would, and hold their output against what the
    page shows.
    """
    space: dict[str, Any] = {"__name__": "__main__"}
    for kind, text, shown in examples(page):
        if kind == "python" and any(
            f"\nfrom {name}" in f"\n{text}" or f"\nimport {name}" in f"\n{text}"
            for name in CLIENTS
            if not is_installed(name)
        ):
            continue
        if kind == "python":
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(text, named(page), "exec"), space)
            like(page, text, shown, printed.getvalue())
        else:
            status = 0
            for command, wanted in commands(text):
                if command == "echo $?":
                    assert wanted.strip() == str(status)
                    status = 0
                    continue
                assert status == 0, f"{page}: the command before {command!r} failed with {status}"
                status, printed_text = shell(command)
                like(page, command, wanted, printed_text)
            assert status == 0, f"{page}: {text!r} failed with {status}"


def is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Commands of a console block, and the lines printed below each."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.splitlines(keepends=True)
        size = 1
        while size < len(lines) and (
            lines[size - 1].endswith("\\\n") or lines[size].startswith(">")
        ):
            size += 1
        yield (
            "".join(re.sub("^> ?", "", line) for line in lines[:size]).strip(),
            "".join(lines[size:]),
        )


def shell(command: str) -> tuple[int, str]:
    """Run one command; groundfault in this process, since it takes seconds to start."""
    if command.startswith("groundfault ") and not re.search(
        r"[|<>;]", re.sub(r"'[^']*'", "", command)
    ):
        return inside(command)
    place = Path(sys.executable).parent
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PATH": f"{place}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def inside(command: str) -> tuple[int, str]:
    from groundfault.cli.main import main

    printed = io.StringIO()
    before = sys.argv
    sys.argv = shlex.split(command.replace("\\\n", " "))
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main()
    except SystemExit as done:
        return int(done.code or 0), printed.getvalue()
    except Exception:
        return 1, printed.getvalue() + traceback.format_exc()
    finally:
        sys.argv = before
    return 0, printed.getvalue()


def like(page: Path, what: str, wanted: str, printed: str) -> None:
    if not matches(wanted, printed):
        raise AssertionError(
            f"{page}: {what}\n--- the page shows\n{wanted}\n--- it prints\n{printed}"
        )


def matches(wanted: str, printed: str) -> bool:
    """Whether a page shows what is printed: white space aside, and ``...`` for anything; nothing
    shown fits all.
    """
    pattern = re.sub(r"(\\ )*\\\.\\\.\\\.(\\ )*", ".*", re.escape(" ".join(wanted.split())))
    return not wanted or re.fullmatch(pattern, " ".join(printed.split())) is not None


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in, and a terminal of 80 columns."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("GROUNDFAULT_LEDGER", raising=False)
    return tmp_path


@pytest.fixture(scope="session")
def answers(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The table that the how-to pages work on, made as their first page says."""
    place = tmp_path_factory.mktemp("answers")
    with contextlib.chdir(place):
        run(DOCS / "how-to" / "index.md")
    return (place / "answers.csv").read_bytes()


@pytest.mark.documents
@pytest.mark.parametrize("page", [p for p in RUN if p not in NETWORKS | SHARED], ids=named)
def test_examples_run(page: Path, desk: Path) -> None:
    if "from inspect_ai" in page.read_text(encoding="utf-8"):
        pytest.importorskip("inspect_ai")
    run(page)


@pytest.mark.documents
@pytest.mark.parametrize("page", sorted(SHARED), ids=named)
def test_pages_on_shared_data_run(
    page: Path, desk: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROUNDFAULT_SHARED", str(shared))
    run(page)


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(NETWORKS), ids=named)
def test_pages_with_real_language_models_run(
    page: Path, desk: Path, shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("torch", "transformers", "inspect_ai"):
        pytest.importorskip(name)
    monkeypatch.setenv("GROUNDFAULT_SHARED", str(shared))
    run(page)


@pytest.mark.documents
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(p, marks=pytest.mark.slow if p.stem in HEAVY else pytest.mark.clients)
        if p.stem in HEAVY or p.stem in WITH_CLIENTS
        else p
        for p in HOW_TO
        if p not in NETWORKS
    ],
    ids=named,
)
def test_how_to_pages_run(page: Path, desk: Path, answers: bytes) -> None:
    if "from mcp" in page.read_text(encoding="utf-8"):
        pytest.importorskip("mcp")
    (desk / "answers.csv").write_bytes(answers)
    if page == CHAT_MODEL:  # its readers copy this file
        shutil.copy(ROOT / "tests" / "fixtures" / "smollm2" / "answers.parquet", "smollm2.parquet")
    if page.stem in WITH_CLIENTS:  # its readers have exports of Langfuse and Phoenix
        makers = load(ROOT / "tests" / "exports" / "test_server_scores.py").MAKERS
        for tool, file in (("langfuse", "scores.json"), ("phoenix", "spans.json")):
            Path(file).write_text(json.dumps([makers[tool](number) for number in range(200)]))
    run(page)


def test_every_decision_is_listed() -> None:
    text = (ROOT / "decisions" / "README.md").read_text(encoding="utf-8")
    records = [path.name for path in (ROOT / "decisions").glob("0*.md")]
    assert [name for name in records if name not in text] == []


def test_the_tutorial_rejects_a_candidate_and_confirms_one() -> None:
    text = (DOCS / "tutorial" / "test-a-suspicion.md").read_text(encoding="utf-8")
    assert "confirmed" in text
    assert "not_replicated" in text


PLUG_IN = re.compile(r'"""(my_\w+)\.py: ')


def plug_ins() -> dict[str, str]:
    """The complete files of CONTRIBUTING.md, by module."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = [block["text"] for block in BLOCK.finditer(page) if block["kind"] == "python"]
    return {match[1]: text for text in blocks if (match := PLUG_IN.match(text))}


def test_each_kind_of_plug_in_has_one_complete_file() -> None:
    kinds = ("finder", "judge", "reader", "policy", "exporter")
    assert list(plug_ins()) == [f"my_{kind}" for kind in kinds]
    for module, text in plug_ins().items():
        ours = re.findall(r"^from (groundfault[\w.]*) import", text, re.MULTILINE)
        assert ours == ["groundfault.plugins", "groundfault_lab.testing"], module
        assert f"check_{module.removeprefix('my_')}(" in text


def test_plug_ins_of_the_page_are_found_by_name(desk: Path) -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for module, text in plug_ins().items():
        (desk / f"{module}.py").write_text(text)
    groups: dict[str, dict[str, str]] = {}
    for block in BLOCK.finditer(page):
        if block["kind"] == "toml":
            groups |= tomllib.loads(block["text"])["project"]["entry-points"]
    info = desk / "my_package-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1\n")
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in places.items())
        for group, places in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    (desk / "t.csv").write_text(
        "id,error,a,b\n" + "".join(f"{i},{i % 3 == 0:d},{i % 7},{i % 5}\n" for i in range(80))
    )
    table = "--id id --outcome error"
    (desk / "q.jsonl").write_text(
        "".join(f'{{"quiz": "q{i}", "player": "m", "points": {i % 10}}}\n' for i in range(40))
    )
    _, verified, exported, imported = run_with_plug_ins(
        desk,
        f"audit t.csv {table} --no-ledger --finders comparisons --judge bonferroni --out r",
        "verify r --no-ledger",
        "export r --to checklist -o todo.md",
        "import q.jsonl --json",
    )
    report = json.loads((desk / "r" / "report.json").read_text())
    assert report["judge"] == "bonferroni"
    assert [f["name"] for f in report["findings"]] == ["a > b"]
    assert "reproduces" in verified
    assert "wrote 0 lines" in exported
    account = json.loads(imported)
    assert [log["reader"] for log in account["logs"]] == ["quiz"]


def run_with_plug_ins(desk: Path, *commands: str) -> list[str]:
    """Run commands in one new process, which finds the package beside them; their outputs."""
    code = (
        "import json, sys; from commands import run_program\n"
        "print(json.dumps([run_program(*words.split()) for words in sys.argv[1:]]))"
    )
    places = [str(desk), str(Path(__file__).parent / "support"), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, "-c", code, *commands],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(places)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    endings = json.loads(done.stdout)
    assert [status for status, _, _ in endings] == [0] * len(commands), endings
    return [output for _, output, _ in endings]


# ------------------------------------------------------------------------------ nothing is left out


def test_generated_parts_are_up_to_date() -> None:
    stale = [
        named(page)
        for page in BOOK
        if generate.filled(page.read_text("utf-8")) != page.read_text("utf-8")
    ]
    assert not stale, f"run python docs/generate.py: {', '.join(stale)}"


def test_every_command_and_option_is_in_the_reference() -> None:
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    seen = 0
    for name, command in generate.commands():
        section = re.split(r"\n#+ ", text.split(f"# `{name}`\n")[1])[0]
        options = [p for p in command.params if isinstance(p, click.Option)]
        for option in options:
            assert all(re.search(rf"`[^`]*{re.escape(word)}\b", section) for word in option.opts), (
                name,
                option.opts,
            )
            assert option.help, f"{name} {option.opts[0]} has no help"
            seen += 1
    assert seen > 60


def shell_lines(text: str) -> Iterator[list[str]]:
    """The words of each command of groundfault that a page shows, up to a pipe or a comment."""
    for block in BLOCK.finditer(text):
        if block["kind"] in ("sh", "console", "yaml"):
            lines = [t for t, _ in commands(block["text"])] or block["text"].replace(
                "\\\n", " "
            ).splitlines()
            for line in lines:
                start = re.search(r"(^|[ /])groundfault [a-z]", line)
                if start is None or line.lstrip().startswith(("claude", "docker")):
                    continue
                words = shlex.shlex(line[start.end() - 1 :], posix=True, punctuation_chars=True)
                words.whitespace_split = True
                yield list(takewhile(lambda word: not set(word) <= set("|&;<>()"), words))


@pytest.mark.parametrize("page", [*PAGES, *BESIDE], ids=named)
def test_commands_that_a_page_shows_exist_with_their_options(page: Path) -> None:
    known = dict(generate.commands())
    for words in shell_lines(page.read_text(encoding="utf-8")):
        name = "groundfault"
        while words and f"{name} {words[0]}" in known:
            name = f"{name} {words.pop(0)}"
        assert name in known, (name, words)
        command = known[name]
        command.make_parser(click.Context(command, info_name=name)).parse_args(words)


# lines that ask a language model, a person, a server or another machine, or go on from such a
# line or another block; the demo and `label plan` run for other pages
NOT_ALONE = re.compile(
    r"openai/|hf/|inspect/|replay:|ask|browser|--reviewer|--coder|--agreement|postgresql"
    r"|described/|bank/ --samples"
    r"|^(open|mcp|demo|completion|label (plan|status|report)|lab (study|calibrate|anchor))"
    r"|^verify (groundfault-demo|certificate)"
)
GUIDES = [
    page
    for page in [*BOOK, ROOT / "README.md"]
    if page.parent.name in ("how-to", "tutorial", "docs", "explanation", ROOT.name)
    and re.search("^```(sh|yaml)$", page.read_text("utf-8"), re.MULTILINE)
]


@pytest.mark.slow
@pytest.mark.parametrize("page", GUIDES, ids=named)
def test_shell_lines_of_guides_run(page: Path, desk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On files by the names that the page takes for granted; examples with output run above."""
    monkeypatch.setenv("GROUNDFAULT_LEDGER", "off")
    text = page.read_text(encoding="utf-8")
    make_stand_ins(desk)
    for log in re.findall(r"logs/[\w-]+\.eval", text):
        shutil.copy(ROOT / "tests" / "fixtures" / "logs" / "inspect_0.3.285_base.eval", log)
    for block in BLOCK.finditer(text):
        for words in shell_lines(block[0]) if block["kind"] in ("sh", "yaml") else ():
            line = shlex.join(words)
            if not NOT_ALONE.search(line):
                status, printed = inside(f"groundfault {line}")
                assert status in ((0, 1) if words[0] == "gate" else (0,)), (line, printed)


def make_stand_ins(desk: Path) -> None:
    """Write tables and logs by the names that pages take for granted."""
    rng, fixtures = np.random.default_rng(0), ROOT / "tests" / "fixtures"
    language = rng.choice(["de", "en", "fr"], 300)
    error = (rng.random(300) < np.where(language == "de", 0.7, 0.15)).astype(int)
    table = pl.DataFrame(
        {
            "id": [f"q{number}" for number in range(300)],
            "language": language,
            "hard": rng.random(300) < 0.3,
            "words": rng.integers(20, 400, 300),
            "domain": rng.choice(["law", "sums"], 300),
            "passage": [f"p{number // 2}" for number in range(300)],
            "question": [f"What is {a} plus {b}?" for a, b in rng.integers(1, 99, (300, 2))],
            "error": error,
        }
    )
    ids = dict.fromkeys(("item_id", "example_id", "task", "topic"), "id")
    wide = table.with_columns(correct=1 - pl.col("error"), failed="error", trial=1, **ids)
    wide = wide.with_columns(model=pl.lit("m"), status=pl.lit("scored"))
    aside = ("answer", "response", "answer_parsed", "response_chars", "reason", "seconds")
    wide = wide.with_columns(pl.col("words").alias(name) for name in aside)
    for name in "answers results runs questions code sums models old new first second".split():
        wide.write_parquet(f"{name}.parquet")
        wide.write_csv(f"{name}.csv")
    for number in range(3):
        table.write_csv(f"run{number}.csv")
    (desk / "parquet").mkdir()
    table.write_parquet("parquet/part.parquet")
    shutil.copytree(fixtures / "scans", desk, dirs_exist_ok=True)
    for name in ("old", "new", "a", "b", "c"):
        (desk / "logs" / name).mkdir()
        side = "new" if name in ("new", "c") else "base"
        shutil.copy(fixtures / "logs" / f"inspect_0.3.285_{side}.eval", desk / "logs" / name)
    shutil.copytree(fixtures / "clients" / "lm_eval-0.4.13", desk / "lm-eval-results")
    for log in (desk / "lm-eval-results").iterdir():
        text = log.read_text("utf-8").replace('strict"', 'strict-match"')
        log.write_text(text.replace("qdpv68r5", "my-model"), "utf-8")
    shutil.copytree(fixtures / "clients" / "deepeval-4.3.1", desk / "runs")


def test_the_skill_names_commands_and_options_that_exist() -> None:
    text, known = SKILL.read_text(encoding="utf-8"), dict(generate.commands())
    blocks = "\n".join(re.findall(r"^ *```sh\n(.*?)^ *```$", text, re.MULTILINE | re.DOTALL))
    shown = filter(None, map(str.strip, blocks.splitlines()))
    lines = [*shown, *re.findall(r"`(groundfault [a-z]+ .*?)`", text)]
    assert len(lines) > 7
    for line in lines:
        command = known[" ".join(line.split()[:2])]
        flags = {
            flag for option in command.params for flag in (*option.opts, *option.secondary_opts)
        }
        assert set(re.findall(r"--[a-z-]+", line)) <= flags | {"--help"}, line
    assert re.match(r"---\nname: groundfault\ndescription: .{50,1024}\n---\n", text)


def test_guides_and_tutorials_show_the_flags_of_the_first_tasks() -> None:
    """A new reader types them from a page, without `--help` and without the reference."""
    shown = "".join(
        page.read_text("utf-8") for page in [*HOW_TO, *(DOCS / "tutorial").glob("*.md")]
    )
    source = (ROOT / "scripts" / "first_tasks.py").read_text(encoding="utf-8")
    tasks = source.split("TASKS = (", 1)[1].split("\n)\n", 1)[0]
    typed = set(re.findall(r"(?<= )--?[a-z][a-z-]*", tasks))
    assert len(typed) >= 10
    assert [flag for flag in sorted(typed) if f"{flag} " not in shown] == []


def test_every_public_name_is_in_the_reference() -> None:
    text = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    for name in groundfault.__all__:
        assert re.search(rf"^\.\. auto\w+:: groundfault\.{name}$", text, re.MULTILINE), name
    for name in (
        "World",
        "PlantedEffect",
        "Card",
        "calibrate",
        "check_judge",
        "check_finder",
        "check_exporter",
    ):
        assert f"groundfault_lab.testing.{name}" in text


def test_a_change_of_the_public_api_is_in_the_changelog() -> None:
    """Compare with the last release; a name of the API that changed has to be in the changelog."""
    before = json.loads(generate.PUBLIC_API.read_text(encoding="utf-8"))
    after = generate.public_api()
    assert len(after) > 300
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased = text.split("## Unreleased", 1)[1].split("\n## ", 1)[0]
    told = {name for name in changed if name.rpartition(".")[2] in unreleased}
    # a class that went took its methods along
    gone = told - after.keys()
    untold = [name for name in changed - told if name.rpartition(".")[0] not in gone]
    assert not untold, f"say in CHANGELOG.md what changed: {', '.join(sorted(untold))}"


def test_every_finder_is_in_the_reference() -> None:
    text = (DOCS / "reference" / "api.md").read_text(encoding="utf-8")
    for name, target in finders._REGISTRY.built_in.items():
        assert f".. autoclass:: {target.replace(':', '.')}" in text, name


def test_every_judge_has_its_theory() -> None:
    choice = (DOCS / "explanation" / "judges.md").read_text(encoding="utf-8")
    measured = (ROOT / "studies" / "results" / "judges.md").read_text(encoding="utf-8")
    lab = "".join(page.read_text("utf-8") for page in (ROOT / "lab" / "docs").glob("*.md"))
    for name, place in judges._REGISTRY.built_in.items():
        if place.startswith("groundfault_lab."):
            assert f"`{name}`" in choice, name
            assert f"| `{name}` |" in lab, f"no table of lab/docs explains {name}"
            continue
        for text in (choice, measured):
            (part,) = re.findall(rf"^## (?:.*)?`{name}`.*\n((?:(?!^## ).*\n)+)", text, re.MULTILINE)
            assert re.search("doi.org|arxiv.org|jstor.org|The same paper", part), name
        for head in ("The rule", "What is guaranteed", "When to use it", "Measured"):
            assert f"### {head}\n" in part, f"{name} lacks {head!r}"


def test_every_reason_code_is_explained() -> None:
    text = (DOCS / "reference" / "reasons.md").read_text(encoding="utf-8")
    for code in messages.REASONS:
        assert text.count(f"`{code}`") >= 2, f"{code} is listed, and not explained"


def test_every_plan_setting_is_explained() -> None:
    text = (DOCS / "reference" / "plan.md").read_text(encoding="utf-8")
    for name in Plan.__dataclass_fields__:
        assert text.count(f"`{name}`") >= 2, name


def test_every_field_of_a_report_is_described(desk: Path, answers: bytes) -> None:
    (desk / "answers.csv").write_bytes(answers)
    evidence = groundfault.Evidence.from_table(
        "answers.csv",
        id="question",
        model="model",
        outcome="correct",
        positive_is_good=True,
        null_outcome="refused",
    )
    report = groundfault.audit(
        evidence,
        groundfault.Plan(judge="janus"),
        ledger="ledger.db",
        robustness=3,
        candidates=[groundfault.Candidate("x", "d__table = 1")],
    )
    dose = DosePoint(column="words", low=1, high=2, n=3, errors=1)
    mode = structs.replace(
        report.modes[0],
        alternatives=(Alternative(rule="x", meaning="x", overlap=0.9),),
        doses=(dose,),
        change=MODE_CHANGE,
    )
    findings = tuple(
        replace(finding, estimate=ESTIMATE, elsewhere=ELSEWHERE) for finding in report.findings
    )
    report = structs.replace(
        report, modes=(mode,), findings=findings, change=CHANGE, counted_as_failed={"unparsed": 1}
    )
    check = groundfault.check(evidence)
    text = (DOCS / "reference" / "report-json.md").read_text(encoding="utf-8")
    audit_part, check_part = text.split("## What `check --json` writes")
    for part, data in ((audit_part, report.to_dict()), (check_part, check.to_dict())):
        cells = re.findall(r"^\| (`.*?) \|", part, re.MULTILINE)
        written = {path for cell in cells for path in re.findall(r"`([^`]+)`", cell)}
        real = {
            re.sub(r"^(findings\[\])\.(holdout|full)\.", r"\1.discovery.", p)
            for p in paths(json.loads(json.dumps(data)))
        }
        assert real - written == set(), "in the report, not in the reference"
        assert written - real == set(), "in the reference, not in the report"


ESTIMATE = Estimate(0.1, (0.0, 0.2))
ELSEWHERE = Elsewhere(9, 0.0, 0.1, (0.0, 0.2), 0.5, differs=False)
CHANGE = OverallChange(
    n=9, error_rates=(0.1, 0.2), change=0.1, interval=(0.0, 0.2), p=0.5, confirmed=False
)
MODE_CHANGE = ModeChange(
    before=1,
    before_outside=2,
    worse=3,
    better=1,
    difference=0.1,
    elsewhere=0.0,
    interval=(0.0, 0.2),
)
FREE = (
    "losses",
    "findings",
    "statuses",
    "counted_as_failed",
    "ineligible",
    "examples",
    "sources",
    "minimum_detectable_lift",
    "sensitivity",
    "plan",
    "roles",
    "detectable",
    "detectable_by",
    "unused",
    "texts",
)


def paths(value: Any, at: str = "") -> Iterator[str]:
    """Where a value's leaves are: ``a.b``, ``list[]``, and ``map.*`` where the keys come from the
    data or a setting.
    """
    key = at.rsplit(".", 1)[-1]
    if isinstance(value, dict) and key in FREE:
        nested = any(isinstance(inner, dict) for inner in value.values())
        yield f"{at}.*.*" if nested else f"{at}.*"
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from paths(inner, f"{at}.{name}" if at else name)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        for inner in value:
            yield from paths(inner, f"{at}[]")
    else:
        yield at


# ------------------------------------------------------------------------------ links and the build

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def anchors(page: Path) -> set[str]:
    """What a heading is called in a link, as GitHub and the book name it."""
    text = re.sub(BLOCK, "", page.read_text(encoding="utf-8"))
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads)
    return set(plain)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(BLOCK, "", page.read_text(encoding="utf-8"))
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        place, _, anchor = target.partition("#")
        aimed = (page.parent / place).resolve() if place else page
        assert aimed.exists(), f"{named(page)} links to {target}"
        if anchor and aimed.suffix == ".md":
            assert anchor in anchors(aimed), f"{named(page)} links to {target}"


def test_old_addresses_lead_on() -> None:
    moved = json.loads((DOCS / "moved.json").read_text(encoding="utf-8"))
    for old, new in moved.items():
        assert not (DOCS / f"{old}.md").exists(), old
        page, _, anchor = new.partition("#")
        assert not anchor or anchor in anchors(DOCS / f"{page}.md"), f"{old}: {new}"
        assert (DOCS / f"{page}.md").exists(), f"{old}: {new}"


def test_every_page_of_the_site_is_in_its_contents() -> None:
    listed: set[Path] = set()
    for index in (DOCS / "index.md", DOCS / "how-to" / "index.md"):
        for tree in re.findall(
            r"^```\{toctree\}\n(.*?)^```", index.read_text("utf-8"), re.M | re.S
        ):
            lines = [line for line in tree.splitlines() if line and line[0] != ":"]
            listed |= {(index.parent / f"{line}.md").resolve() for line in lines}
    off = load(DOCS / "conf.py").OFF_THE_SITE
    pages = {page for page in BOOK if not str(page.relative_to(DOCS)).startswith(off)}
    assert listed == pages - {DOCS / "index.md"}


@pytest.mark.parametrize("page", BOOK, ids=named)
def test_fences_of_notes_close(page: Path) -> None:
    lines = re.sub(BLOCK, "", page.read_text(encoding="utf-8")).splitlines()
    fences = [line for line in lines if ":::" in line]
    assert all(re.fullmatch(r":::\{\w+\}", line) for line in fences[::2]), fences
    assert all(line == ":::" for line in fences[1::2]), fences
    assert len(fences) % 2 == 0


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110


def test_terms_are_in_the_glossary() -> None:
    known = set(glossary())
    for page in BOOK:
        for term in re.findall(
            r"\{term\}`(?:[^`<]*<)?([^`>]+)>?`", page.read_text(encoding="utf-8")
        ):
            assert term.lower() in known, f"{named(page)} uses the term {term!r}"


def glossary() -> Iterator[str]:
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    for block in re.findall(r"^```\{glossary\}\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        yield from (
            line.strip().lower()
            for line in block.splitlines()
            if line and not line.startswith((" ", ":"))
        )


@pytest.mark.slow
def test_the_gallery_shows_what_audits_print(tmp_path: Path, shared: Path) -> None:
    page = tmp_path / "gallery.md"
    page.write_bytes((DOCS / "explanation" / "gallery.md").read_bytes())
    words = [sys.executable, str(ROOT / "scripts" / "gallery.py"), str(shared / "real"), str(page)]
    subprocess.run(words, check=True)
    assert page.read_text("utf-8") == (DOCS / "explanation" / "gallery.md").read_text("utf-8")


@pytest.mark.slow
def test_the_book_builds_without_a_warning(tmp_path: Path) -> None:
    for needed in ("sphinx", "furo", "myst_parser"):
        pytest.importorskip(needed, reason="pip install -e '.[docs]'")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-W",
            "--keep-going",
            "-q",
            str(DOCS),
            str(tmp_path / "html"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for page in (tmp_path / "html").rglob("*.html"):
        assert ":::" not in page.read_text(encoding="utf-8"), page
