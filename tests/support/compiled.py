"""`make compiled-test`: an environment with the compiled wheel, and the tests without the sources.

    python -m tests.support.compiled build/compiled/wheels/minibroker-….whl build/compiled

Makes DIRECTORY/environment and DIRECTORY/tree. The environment has the wheel, and whatever else the
environment that runs this has: only `minibroker` is another one. The tree has everything that git
knows of the repository except `minibroker`. Run there, tests and the brokers that they start import
the compiled package; from the checkout they would import the sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support.installed import install
from tests.support.readme import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

PACKAGE: Final = "minibroker"
BUILD: Final = "build"
"""Directory of what make fetches for tests; the tree gets a link to it."""
LEVEL_VARIABLE: Final = "MYPYC_OPT_LEVEL"
USUAL_LEVEL: Final = "1"
"""The level of the wheels that are released."""
_ENABLED: Final = {"HATCH_BUILD_HOOK_ENABLE_CUSTOM": "1"}


def main(arguments: Sequence[str]) -> int:
    """Make environment and tree for the wheel and below the directory that the arguments name."""
    wheel, directory = (Path(argument).absolute() for argument in arguments)
    for name in ("environment", "tree"):
        shutil.rmtree(directory / name, ignore_errors=True)
    install_beside_tests(wheel, directory / "environment")
    copy_without_package(directory / "tree")
    check_kind(directory)
    return 0


def build_wheel(directory: Path, level: str) -> Path:
    """Compile the package of this checkout with this level of optimisation; return its wheel below
    `directory`. Takes a minute. Raises CalledProcessError.
    """
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", str(directory), str(ROOT)],
        env={**os.environ, **_ENABLED, LEVEL_VARIABLE: level},
        check=True,
    )
    (wheel,) = directory.glob(f"{PACKAGE}-*.whl")
    return wheel


def missing_compiler() -> str | None:
    """Return a sentence where nothing can be compiled here, else None."""
    compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        return f"no C compiler: {compiler} is not installed (Debian: apt install gcc libc6-dev)"
    header = Path(sysconfig.get_paths()["include"], "Python.h")
    if not header.exists():
        return f"no C compiler: {header} is not there (Debian: apt install python3-dev)"
    return None


def install_beside_tests(wheel: Path, environment: Path) -> Path:
    """Install the wheel in a new environment that sees this environment's other packages; return
    the directory of its programs.
    """
    programs = install(str(wheel), environment, "--no-deps")
    (packages,) = environment.glob("lib/python*/site-packages")
    # A path in a .pth file is searched last, and its own .pth files are not read: so the checkout,
    # which is installed there as editable, stays hidden.
    (packages / "tests.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
    return programs


def check_kind(directory: Path) -> None:
    """Raise CalledProcessError unless the tests below this directory would import the wheel."""
    code = "from minibroker.compilation import package_kind; assert package_kind() == 'compiled'"
    variables = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    python = directory / "environment" / "bin" / "python"
    subprocess.run([python, "-c", code], cwd=directory / "tree", env=variables, check=True)


def copy_without_package(tree: Path) -> None:
    """Copy the files of the checkout that are no part of the package."""
    git = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(git, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in names:
        source = ROOT / name
        if name and source.is_file() and Path(name).parts[0] not in (PACKAGE, BUILD):
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, tree / name)
    (tree / BUILD).symlink_to(ROOT / BUILD)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
