"""The programs of `examples/`."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.mark.needs("network_egress")
def test_a_job_is_done_from_an_upload_to_its_picture(state: str, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES / "project", tmp_path / "project")
    command = [sys.executable, str(EXAMPLES / "plot.py")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.splitlines()[-1] == "168 primes below 1000"
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_it_is_no_longer_than_with_the_sdk_of_e2b() -> None:
    for name in ("plot.py", "plot.ts"):
        ours, theirs = (len((EXAMPLES / folder / name).read_text().splitlines()) for folder in ("", "e2b"))
        assert ours <= theirs, name
