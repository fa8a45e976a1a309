"""The scanner of the how-to makes results of Inspect Scout out of annotated logs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run_program

ROOT = Path(__file__).resolve().parents[2]
LOG = ROOT / "tests" / "fixtures" / "logs" / "inspect_0.3.285_base.eval"
READ = """
import sys
from inspect_scout import scan_results_df
found = scan_results_df(sys.argv[1]).scanners["failure_mode"]
assert found["value"].all() and found["answer"].str.contains("all").all()
print(len(found), "transcripts")
"""


@pytest.mark.clients
def test_the_scanner_of_the_page_finds_the_slices(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pythons = [sys.executable, os.environ.get("CLIENT_PYTHON", sys.executable)]
    there = [
        each
        for each in pythons
        if not subprocess.run([each, "-c", "import inspect_scout"], check=False).returncode
    ]
    if not there:
        pytest.skip("no inspect_scout here, and CLIENT_PYTHON names no Python that has it")
    page = (ROOT / "docs" / "how-to" / "give-results-back.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"^```py\n(from inspect_scout.*?)^```$", page, re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("failure_mode.py").write_text(code, encoding="utf-8")
    Path("read.py").write_text(READ, encoding="utf-8")
    shutil.copy(LOG, "base.eval")
    audit = "audit base.eval --no-ledger --out report --candidate".split()
    status, _, errors = run_program(*audit, "all: LENGTH(prompt) > 0")
    assert status == 0, errors
    export = "export report --to inspect -o annotated --all-candidates".split()
    assert run_program(*export)[0] == 0
    scout = [str(Path(there[0]).with_name("scout")), "scan", "failure_mode.py", "-T", "annotated"]
    monkeypatch.delenv("PYTHONPATH", raising=False)
    subprocess.run([*scout, "--display", "none"], check=True)
    (place,) = Path("scans").iterdir()
    read = subprocess.run([there[0], "read.py", str(place)], capture_output=True, text=True)
    assert read.returncode == 0, read.stderr
    assert int(read.stdout.split()[0]) > 0
