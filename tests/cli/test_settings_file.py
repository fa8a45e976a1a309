"""The settings file: what it sets, who wins, where it is read from, and how ``init`` writes it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from groundfault.cli.main import cli
from groundfault.cli.settings_file import find_settings_file, list_keys, read_settings_file
from groundfault.core.plan import Plan
from groundfault.core.roles import Roles
from groundfault.errors import InputError

N = 120


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a table in which one language fails."""
    home = tmp_path / "project"
    (home / ".git").mkdir(parents=True)
    rows = [f"q{i},{int(i % 3 != 0)},{('de', 'en', 'fr')[i % 3]}" for i in range(N)]
    (home / "r.csv").write_text("\n".join(["id,correct,lang", *rows]) + "\n")
    monkeypatch.chdir(home)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    return home


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def audit(*words: object) -> dict[str, object]:
    result = run("audit", *words, "--json", "-")
    assert result.exit_code == 0, (result.output, result.exception)
    return dict(json.loads(result.stdout))


def test_init_looks_at_a_table_and_an_audit_then_needs_no_flag(project: Path) -> None:
    begun = run("init", "r.csv")
    assert begun.exit_code == 0, begun.output
    assert "next: groundfault audit r.csv" in begun.stdout
    report = audit("r.csv")
    roles = report["manifest"]["roles"]
    assert (roles["outcome"], roles["id"], roles["positive_is_good"]) == ("correct", "id", True)
    assert report["manifest"]["settings_file"].startswith('groundfault.toml: outcome = "correct"')
    assert "lang is de" in run("audit", "r.csv", "--why").stdout
    assert "Set by groundfault.toml" in " ".join(run("audit", "r.csv", "--why").stdout.split())
    again = run("init", "r.csv")
    assert "exists here" in str(again.exception)


def test_init_takes_columns_by_flag_and_asks_where_no_name_tells(project: Path) -> None:
    Path("odd.csv").write_text("key,good,lang\n" + "".join(f"{i},{i % 2},x\n" for i in range(20)))
    assert "name it by --outcome" in str(run("init", "odd.csv").exception)
    begun = run("init", "odd.csv", "--outcome", "good", "--positive-is-good", "--id", "key")
    assert begun.exit_code == 0, begun.exception
    assert 'outcome = "good"' in Path("groundfault.toml").read_text()


def test_init_takes_verdicts_and_ids_by_their_words_where_no_name_tells(project: Path) -> None:
    rows = "".join(
        f"q{i},{'de' if i % 3 else 'en'},{'Passed' if i % 2 else 'failed'}\n" for i in range(20)
    )
    Path("odd.csv").write_text("key,Sprache,Ergebnis\n" + rows)
    run("init", "odd.csv")
    settings = Path("groundfault.toml").read_text()
    assert 'outcome = "Ergebnis"' in settings
    assert 'id = "key"' in settings


def test_init_refuses_what_a_command_would_refuse(project: Path) -> None:
    both = run("init", "r.csv", "--outcome", "correct", "--positive-is-good", "--scorer", "match")
    assert "--scorer is for logs and --outcome for tables" in str(both.exception)
    assert not Path("groundfault.toml").exists()


def test_init_names_the_scorer_of_a_log(project: Path) -> None:
    logs = Path(__file__).parents[1] / "fixtures" / "clients" / "lm_eval-0.4.13"
    begun = run("init", logs)
    assert begun.exit_code == 0, begun.exception
    assert "# " in Path("groundfault.toml").read_text()
    assert "outcome" not in read_settings_file(Path("groundfault.toml"))


def test_flags_win_and_a_flag_drops_the_settings_that_it_excludes(project: Path) -> None:
    Path("groundfault.toml").write_text(
        'outcome = "correct"\npositive-is-good = true\nid = "id"\nignore = []\n'
        'alpha = 0.05\nledger = "l.db"\n'
    )
    assert audit("r.csv")["plan"]["alpha"] == "0.05"
    assert audit("r.csv", "--alpha", "0.2", "--no-ledger")["plan"]["alpha"] == "0.2"
    Path("groundfault.toml").write_text('scorer = "match"\nledger = "l.db"\n')
    report = audit("r.csv", "--outcome", "correct", "--positive-is-good", "--no-ledger")
    assert report["manifest"]["settings_file"] == ""


def test_the_table_in_pyproject_counts_and_a_setting_of_the_gate(project: Path) -> None:
    Path("pyproject.toml").write_text(
        '[tool.other]\nx = 1\n[tool.groundfault]\noutcome = "correct"\npositive_is_good = true\n'
        'gate_fail_on = "n_on < 0"\n'
    )
    written = run("audit", "r.csv", "--id", "id", "--out", "report")
    assert "note: pyproject.toml sets outcome, positive_is_good" in written.stderr
    gate = run("gate", "report")
    assert gate.exit_code == 0, gate.output
    assert "note: pyproject.toml sets gate_fail_on" in gate.stderr


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("alhpa = 0.1", "no setting 'alhpa'; did you mean 'alpha'?"),
        ('reopen = "because"', "no setting 'reopen'"),
        ('command = "rm -rf"', "no setting 'command'"),
        ("zzz = 1", "no setting 'zzz'. A key is a flag of groundfault audit --help-all"),
        ("seed = 1.5", "seed = 1.5"),
        ('id = ["a", "b"]', "one value is expected"),
        ("[plan]\nalpha = 0.1", "no setting 'plan'"),
        ("id = true", "true and false are for flags"),
        ("positive_is_good = 1", "true and false are for flags"),
        ("alpha = ", "is not valid TOML"),
    ],
)
def test_a_wrong_setting_is_one_error_that_names_file_and_key(
    project: Path, line: str, message: str
) -> None:
    Path("groundfault.toml").write_text(line + "\n")
    failed = run("check", "r.csv", "--outcome", "correct", "--positive-is-good")
    assert isinstance(failed.exception, InputError)
    assert message in str(failed.exception)
    assert "groundfault.toml" in str(failed.exception)


@pytest.mark.parametrize("text", ["tool = 3", "[tool]\ngroundfault = 3"])
def test_a_table_in_pyproject_that_is_none_is_named(text: str, project: Path) -> None:
    Path("pyproject.toml").write_text(text)
    error = run("audit", "r.csv", "--id", "id").exception
    assert "is not a table: write [tool.groundfault]" in str(error)


def test_only_this_folder_and_those_above_up_to_the_repository_are_searched(project: Path) -> None:
    (project / "groundfault.toml").write_text('ledger = "l.db"\n')
    (project.parent / "groundfault.toml").write_text("alpha = 0.3\n")
    deep = project / "a" / "b"
    deep.mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(deep)
        place = find_settings_file()
        assert place == project / "groundfault.toml"
        assert read_settings_file(place)["ledger"] == str(project / "l.db")
        (project / "groundfault.toml").unlink()
        assert find_settings_file() is None, "the file above the repository is not read"
        (project / ".git").rmdir()
        assert find_settings_file() is None, "in no repository only the current folder counts"


def test_a_settings_file_beside_the_data_is_not_read(project: Path) -> None:
    data = project / "data"
    data.mkdir()
    (project / "r.csv").rename(data / "r.csv")
    (data / "groundfault.toml").write_text("alpha = 0.3\n")
    report = audit("data/r.csv", "--outcome", "correct", "--positive-is-good")
    assert report["plan"]["alpha"] == "0.1"


def test_a_step_of_a_case_takes_nothing_from_a_file(project: Path) -> None:
    Path("groundfault.toml").write_text('outcome = "no_such_column"\n')
    words = ("--outcome", "correct", "--positive-is-good", "--id", "id")
    assert run("case", "new", "case", "--from", "r.csv", *words).exit_code == 0
    done = run("audit", "--case", "case")
    assert done.exit_code == 0, done.exception


def test_the_keys_are_the_fields_of_the_plan_and_the_roles_and_few_more() -> None:
    keys = list_keys()
    assert {"alpha", "seed", "holdout", "outcome", "scorer", "ledger", "gate_level"} <= keys.keys()
    fields = {option.name for option in keys.values()}
    hidden = {"judge_settings", "known", "numbered"}
    assert {*Plan.__dataclass_fields__, *Roles.__dataclass_fields__} - hidden <= fields
    assert not {"case_folder", "where", "reopen", "out", "program"} & fields
