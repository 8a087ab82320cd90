"""`make wheels`: which dependencies of a base install have a wheel, for each system and Python.

    python -m tests.support.wheels

pip itself is asked what it would install there (`pip install --dry-run`), so this needs a package
index. A dependency whose marker leaves a system out needs no wheel for it. The exit code is 1 where
pip would have to compile.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Final, NamedTuple

from packaging.requirements import Requirement

from tests.support.readme import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
EXTRAS: Final = ("uvloop", "regex")
"""Extras whose wheels are in the table, too; they may be missing."""


class System(NamedTuple):
    """An operating system on a processor, in the words of pip and of markers."""

    name: str
    platforms: tuple[str, ...]
    """Tags of wheels that run there, the newest first."""
    sys_platform: str
    machine: str


def _linux(libc: str, machine: str) -> System:
    versions = ("_2_28", "_2_17", "2014") if libc == "manylinux" else ("_1_2", "_1_1")
    platforms = tuple(f"{libc}{version}_{machine}" for version in versions)
    name = "glibc" if libc == "manylinux" else "musl"
    return System(f"Linux {name} {machine}", platforms, "linux", machine)


SYSTEMS: Final = (
    _linux("manylinux", "x86_64"),
    _linux("manylinux", "aarch64"),
    _linux("musllinux", "x86_64"),
    _linux("musllinux", "aarch64"),
    System("macOS arm64", ("macosx_14_0_arm64",), "darwin", "arm64"),
    System("macOS x86_64", ("macosx_14_0_x86_64",), "darwin", "x86_64"),
    System("Windows AMD64", ("win_amd64",), "win32", "AMD64"),
    System("Windows ARM64", ("win_arm64",), "win32", "ARM64"),
    _linux("manylinux", "ppc64le"),
    _linux("manylinux", "s390x"),
)


def requirements() -> dict[str, list[Requirement]]:
    """Return what pyproject.toml asks for: `` for a base install, and each of `EXTRAS`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    texts = {"": project["dependencies"]}
    texts |= {extra: project["optional-dependencies"][extra] for extra in EXTRAS}
    return {extra: [Requirement(text) for text in lines] for extra, lines in texts.items()}


def is_needed(requirement: Requirement, system: System, python: str) -> bool:
    """Return whether the marker of a requirement takes this system in."""
    return requirement.marker is None or requirement.marker.evaluate(
        {
            "sys_platform": system.sys_platform,
            "platform_machine": system.machine,
            "python_version": python,
        }
    )


def has_wheel(requirement: Requirement, system: System, python: str) -> bool:
    """Return whether pip finds a wheel that runs there."""
    tags = [word for platform in system.platforms for word in ("--platform", platform)]
    command = [
        *(sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"),
        *("--dry-run", "--no-deps", "--only-binary", ":all:", "--target", "build/wheels"),
        *("--python-version", python, *tags, f"{requirement.name}{requirement.specifier}"),
    ]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0


def _cell(requirement: Requirement, system: System) -> str:
    """Return the Pythons for which there is a wheel, in few words."""
    needed = [python for python in PYTHONS if is_needed(requirement, system, python)]
    if not needed:
        return "left out"
    pythons = [python for python in needed if has_wheel(requirement, system, python)]
    if pythons == list(PYTHONS):
        return "all"
    return " ".join(pythons) if pythons else "none"


def _rows() -> Iterator[tuple[str, str, str, bool]]:
    """Yield system, requirement, Pythons with a wheel, and whether pip would have to compile."""
    for system in SYSTEMS:
        for extra, lines in requirements().items():
            for requirement in lines:
                cell = _cell(requirement, system)
                name = f"{requirement.name} [{extra}]" if extra else requirement.name
                yield system.name, name, cell, not extra and cell not in ("all", "left out")


def main() -> int:
    """Print the table; return 1 where a dependency of a base install has to be compiled."""
    must_compile = False
    for system, name, cell, compiles in _rows():
        print(f"{system:22} {name:20} {cell}{'  <- would be compiled' if compiles else ''}")
        must_compile |= compiles
    return int(must_compile)


if __name__ == "__main__":
    sys.exit(main())
