"""Built packages contain the views and type information."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import ROOT

import whyslow


def build(folder: Path, output: Path, kind: str) -> Path:
    """Builds without isolation, so that no network is needed."""
    script = f"import sys\nfrom hatchling import build\nprint(build.build_{kind}(sys.argv[1]))"
    command = [sys.executable, "-c", script, str(output)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return output / done.stdout.split()[-1]


def test_a_wheel_has_the_views_also_when_built_from_the_sources(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed [python]")
    sources = build(ROOT / "python", tmp_path, "sdist")
    with tarfile.open(sources) as archive:
        # Python before 3.11.4 has no filters; the archive is our own.
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
        archive.extractall(tmp_path / "unpacked", **safely)
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    views = {f"whyslow/sql/views/{file.name}" for file in (ROOT / "sql" / "views").iterdir()}
    assert views
    sql = ROOT / "sql"
    fleet = {f"whyslow/sql/{file.relative_to(sql)}" for file in sql.glob("fleet/**/*.sql")}
    assert len(fleet) > 20
    for folder in (ROOT / "python", unpacked):
        with zipfile.ZipFile(build(folder, tmp_path, "wheel")) as wheel:
            names = set(wheel.namelist())
        assert views <= names
        assert fleet <= names
        assert "whyslow/fleet/log4j2.properties" in names
        assert "whyslow/py.typed" in names
        assert "whyslow/sql/setup/table.sql" in names


def test_an_installed_wheel_reads_its_own_views(web_path: Path, tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed [python]")
    with zipfile.ZipFile(build(ROOT / "python", tmp_path, "wheel")) as wheel:
        wheel.extractall(tmp_path / "site")
    script = (
        "import sys, whyslow\n"
        "recording = whyslow.open(sys.argv[1])\n"
        "print(whyslow.__file__, recording.sql('SELECT op FROM io_stats').fetchall())"
    )
    environment = {"PYTHONPATH": str(tmp_path / "site"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-c", script, str(web_path)],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert str(tmp_path / "site") in done.stdout
    assert "sync" in done.stdout


def test_versions_are_one() -> None:
    about = (ROOT / "python" / "pyproject.toml").read_text()
    assert f'version = "{whyslow.__version__}"' in about
    assert f'version = "{whyslow.__version__}"' in (ROOT / "Cargo.toml").read_text()
