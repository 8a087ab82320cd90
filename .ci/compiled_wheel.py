"""The build hook of the compiled wheel: mypyc compiles the hot modules as one group.

`pyproject.toml` names the modules (`tool.hatch.build.targets.wheel.hooks.custom`). The hook is off
unless HATCH_BUILD_HOOK_ENABLE_CUSTOM=1; an editable install is pure in any case. MYPYC_OPT_LEVEL
is the compiler's level of optimisation, 1 if not set: a test takes 0, because that builds sooner.

Nothing is written into the sources: a checkout stays pure, whatever was built from it. A wheel
holds the Python files too, for tracebacks and type checkers; an extension module goes before the
Python file of its name.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from mypyc.build import mypycify
from setuptools import Distribution

LEVEL_VARIABLE: Final = "MYPYC_OPT_LEVEL"
USUAL_LEVEL: Final = "1"
"""A second and a third level take twice the time, and gained nothing that was measured."""
HIDDEN: Final = "-fvisibility=hidden"
"""A call inside the library is direct, and the loader looks up 380 symbols in place of 3,700."""
GROUP: Final = "minibroker"
"""The extension modules share one library, `minibroker__mypyc`, beside the package."""


class CompiledWheel(BuildHookInterface[Any]):
    """Compiles the modules for a wheel, and puts them into it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the extension modules to a wheel. Raises SystemExit where mypy finds an error."""
        if version == "editable":
            return
        # Hatchling copies the files after this call, and removes nothing of ours.
        self._scratch = tempfile.TemporaryDirectory(prefix="minibroker-compiled-")
        libraries = Path(self._scratch.name, "libraries")
        with contextlib.chdir(self.root):  # mypy names modules by their paths from here
            compile_modules(self.config["modules"], Path(self._scratch.name), libraries)
        for library in sorted(path for path in libraries.rglob("*") if path.is_file()):
            target = library.relative_to(libraries).as_posix()
            build_data["force_include"][str(library)] = target
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the compiler left."""
        if version != "editable":
            self._scratch.cleanup()


def compile_modules(modules: list[str], scratch: Path, libraries: Path) -> None:
    """Compile the modules, paths below the working directory, into extension modules below
    `libraries`. Raises SystemExit where mypy finds an error.
    """
    # Other modules are read for their types; the packages of extras that they import are not here.
    settings = ["--config-file", "pyproject.toml", "--follow-imports", "silent"]
    extensions = mypycify(
        [*settings, "--cache-dir", os.devnull, *modules],
        opt_level=os.environ.get(LEVEL_VARIABLE, USUAL_LEVEL),
        debug_level="0",
        target_dir=str(scratch / "sources"),
        group_name=GROUP,
    )
    for extension in extensions:  # no system with MSVC has a compiled wheel
        extension.extra_compile_args.append(HIDDEN)
    distribution = Distribution({"name": GROUP, "ext_modules": extensions})
    command = distribution.get_command_obj("build_ext")
    command.build_lib = str(libraries)
    command.build_temp = str(scratch / "objects")
    command.parallel = os.cpu_count()
    distribution.run_command("build_ext")
