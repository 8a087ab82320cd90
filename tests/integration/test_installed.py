"""The wheel in an empty environment: what a base install brings, and that it serves alone."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.build_files import required
from tests.support.container import WHEELS
from tests.support.installed import (
    BASE_BYTES_MAX,
    install,
    installed_size,
    type_first_commands,
)
from tests.support.readme import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an environment with a base install, made without a package index."""
    required(WHEELS / ".done")
    wheels = tmp_path_factory.mktemp("wheels")
    offline = ("--no-index", "--find-links", str(WHEELS))
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *offline, "--no-deps", "--wheel-dir", wheels, ROOT], check=True)
    (wheel,) = wheels.glob("minibroker-*.whl")
    environment = tmp_path_factory.mktemp("installed") / "environment"
    install(str(wheel), environment, "--no-compile", *offline)
    return environment


def packages_of(environment: Path) -> set[str]:
    """Return the names of the packages that are installed."""
    (packages,) = environment.glob("lib/python*/site-packages")
    return {path.name.partition("-")[0] for path in packages.glob("*.dist-info")}


def test_a_base_install_is_small(environment: Path) -> None:
    assert packages_of(environment) == {"minibroker", "kazoo", "cramjam", "crc32c", "xxhash"}
    assert installed_size(environment).wheels <= BASE_BYTES_MAX


def test_a_base_install_serves_the_first_commands(environment: Path, tmp_path: Path) -> None:
    type_first_commands(tmp_path, environment / "bin")
