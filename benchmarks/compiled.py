"""`python -m benchmarks.compiled MODULE …`: any benchmark with brokers of the compiled package.

    python -m benchmarks.compiled benchmarks.replicated --help

Every broker that the program starts is of the compiled package of this checkout; the program itself
and its clients stay those of the checkout. `python -m benchmarks` and `benchmarks.diff` have
`--compiled` for the same. The package is built once for each state of the sources, in a minute.
"""

import compileall
import hashlib
import os
import runpy
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path
from typing import Final

from tests.support.build_files import ROOT, alone
from tests.support.compiled import USUAL_LEVEL, build_wheel

PACKAGES: Final = ROOT / "build" / "bench-compiled"
_SOURCES: Final = (".ci/compiled_wheel.py", "minibroker/**/*.py")
_DIGEST_CHARACTERS: Final = 12
_CHECK: Final = (
    "from minibroker.compilation import package_kind; assert package_kind() == 'compiled'"
)


def compiled_package() -> Path:
    """Return a directory with the compiled package of this checkout; it is built if need be.

    Raises CalledProcessError.
    """
    directory = PACKAGES / _digest()
    with alone():
        if not directory.exists():
            part = directory.with_suffix(".part")
            with tempfile.TemporaryDirectory(prefix="minibroker-wheel-") as scratch:
                print("compiling, which takes a minute", file=sys.stderr, flush=True)
                with zipfile.ZipFile(build_wheel(Path(scratch), USUAL_LEVEL)) as wheel:
                    wheel.extractall(part)
            part.rename(directory)
            compileall.compile_dir(directory, quiet=2)  # as pip does, for the first start
    variables = {**os.environ, "PYTHONPATH": str(directory)}
    subprocess.run([sys.executable, "-P", "-c", _CHECK], env=variables, check=True)
    return directory


def _digest() -> str:
    """Return a digest of all that the package is made of."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    hooks = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["hooks"]
    digest = hashlib.sha256(f"{sys.version}\0{hooks}".encode())
    for pattern in _SOURCES:
        for path in sorted(ROOT.glob(pattern)):
            digest.update(f"{path.relative_to(ROOT)}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:_DIGEST_CHARACTERS]


def use_compiled() -> None:
    """Make every Python that this process starts import the compiled package.

    Raises CalledProcessError.
    """
    os.environ["PYTHONPATH"] = os.pathsep.join((str(compiled_package()), str(ROOT)))
    os.environ["PYTHONSAFEPATH"] = "1"  # the working directory, which has the sources, comes last


def main() -> None:
    """Run the module that the first argument names, with the other arguments."""
    if len(sys.argv) == 1 or sys.argv[1].startswith("-"):  # also --help
        sys.exit(__doc__)
    use_compiled()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
