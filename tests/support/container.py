"""The image's files and its entry points without Docker: the same steps, in a directory.

`build_layer` takes the steps of the Dockerfile (the wheel, `image/install.sh`). A `Container`
mounts the layer over this machine's own system, which replaces the base image, in a mount namespace
of its own, and runs a command there as the image's user. Paths, users, permissions and scripts are
the image's; the network is this machine's (so ports have to be free).
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.support.build_files import BUILD, required
from tests.support.processes import ManagedProcess

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.compose_network import Place

ROOT: Final = Path(__file__).parents[2]
WHEELS: Final = BUILD / "image-wheels"
IMAGE: Final = ROOT / "minibroker" / "container" / "image"
USER: Final = 1000
START_SECONDS: Final = 240.0
OWNED: Final = (
    "home/minibroker",
    "var/lib/kafka",
    "etc/kafka",
    "etc/confluent",
    "opt/kafka/config",
    "opt/bitnami/kafka/config",
    "bitnami",
    "kafka",
)
"""Directories of the image's user."""

# What is written goes into memory, the layer and the system below it are never written to. Two
# directories of one file system cannot lie over each other: then the layer is copied. `$1` is
# the layer, `$2` the Python of the base image, `$3` a directory for the mounts (beside it, `-files`
# are those that the user mounts); the rest is the container's command.
_ENTER: Final = """
layer=$1 python=$2 mounts=$3; shift 3
mount -t tmpfs tmpfs "$mounts"
mkdir "$mounts/work" "$mounts/root" "$mounts/upper"
lower=$layer:/
if [ "$(stat -c %d "$layer")" = "$(stat -c %d /)" ]; then
  cp -a "$layer/." "$mounts/upper"; lower=/
fi
cp -a "$mounts-files/." "$mounts/upper"
mount -t overlay -o "lowerdir=$lower,upperdir=$mounts/upper,workdir=$mounts/work" overlay \
  "$mounts/root"
mount --bind "$python" "$mounts/root/opt/python"
mount --rbind /dev "$mounts/root/dev"
mount -t tmpfs tmpfs "$mounts/root/tmp"
chmod 1777 "$mounts/root/tmp"
exec chroot "$mounts/root" "$@"
"""
_WITH_HOST_NAME: Final = 'hostname "$1"; shift; exec "$@"'
_ENVIRONMENT: Final = (
    "env",
    "-i",
    "PATH=/opt/python/bin:/usr/local/bin:/usr/bin:/bin",
    "LANG=C.UTF-8",
    "LD_LIBRARY_PATH=/opt/python/lib",  # its compiled-in path is not there
)


def missing() -> str | None:
    """Return why no container can run here, None if one can."""
    if os.geteuid() != 0:
        return "only root may lay one file system over another"
    probe = subprocess.run(
        ["unshare", "--mount", "sh", "-c", "mount -t tmpfs tmpfs /mnt"],
        capture_output=True,
        text=True,
        check=False,
    )
    return probe.stderr.strip() if probe.returncode else None


def build_layer(directory: Path) -> Path:
    """Return everything that the image adds to its base, owned as in the image; takes seconds."""
    required(WHEELS / ".done")
    wheels, layer = directory / "wheels", directory / "layer"
    shutil.copytree(WHEELS, wheels)
    offline = ["--quiet", "--disable-pip-version-check", "--no-index", "--find-links", str(wheels)]
    pip = [sys.executable, "-m", "pip", "wheel", *offline, "--no-deps"]
    subprocess.run([*pip, "--wheel-dir", str(wheels), str(ROOT)], check=True)
    install = ["sh", str(IMAGE / "install.sh"), str(layer), str(wheels), sys.executable]
    subprocess.run(install, check=True)
    for name in OWNED:
        for path in (layer / name, *(layer / name).rglob("*")):
            os.chown(path, USER, USER, follow_symlinks=False)
    (layer / "opt" / "python").mkdir()
    return layer


class Container:
    """One run of a command on a layer; its output goes to `log`."""

    def __init__(
        self,
        layer: Path,
        directory: Path,
        command: Sequence[str] = ("/etc/kafka/docker/run",),
        *,
        variables: Mapping[str, str] | None = None,
        place: Place | None = None,
        hostname: str | None = None,
        files: Mapping[str, str | bytes] | None = None,
    ) -> None:
        """Take this run's own `directory`, for the log and the mounts.

        `place`: the network, None for this machine's. `files`: path → content, which the user
        mounts.
        """
        self._mounts = directory / "mounts"
        self._mounts.mkdir(parents=True)
        mounted = directory / "mounts-files"
        mounted.mkdir()
        for path, content in (files or {}).items():
            target = mounted / path.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content if isinstance(content, bytes) else content.encode())
            target.chmod(0o755)
        self._network = [] if place is None else ["nsenter", f"--net={place.path}"]
        self.log = directory / "container.log"
        environment = [f"{key}={value}" for key, value in (variables or {}).items()]
        inside = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", *command]
        enter = "; ".join(("set -e", "mount --make-rprivate /", _ENTER.strip()))
        arguments = [str(layer), sys.base_prefix, str(self._mounts)]
        # `chroot` starts in the root; the image's working directory is its user's home.
        home = ["sh", "-c", f"cd /home/minibroker; exec {shlex.join(inside)}"]
        prefix = (
            []
            if hostname is None
            else ["unshare", "--uts", "sh", "-c", _WITH_HOST_NAME, "sh", hostname]
        )
        self.process = ManagedProcess(
            [
                *self._network,
                *prefix,
                "unshare",
                "--mount",
                "sh",
                "-c",
                enter,
                "sh",
                *arguments,
                *_ENVIRONMENT,
                *environment,
                *home,
            ],
            self.log,
        )

    @property
    def root(self) -> Path:
        """Return the container's root, seen from here, while it runs."""
        return Path("/proc", str(self.process.popen.pid), "root")

    def copy_in(self, path: str, content: str) -> None:
        """Copy a file in like `docker cp`: it is root's, and everybody may read and run it."""
        target = self.root / path.lstrip("/")
        part = target.with_suffix(".part")
        part.write_text(content)
        part.chmod(0o755)
        part.rename(target)  # whole at once: scripts wait for the name

    def execute(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command like `docker exec`."""
        inner = f"/proc/{self.process.popen.pid}/ns"
        enter = ["nsenter", f"--mount={inner}/mnt", f"--uts={inner}/uts", f"--net={inner}/net"]
        user = [f"--userspec={USER}:{USER}", str(self._mounts / "root")]
        return subprocess.run(
            [*enter, "chroot", *user, *_ENVIRONMENT, *command],
            capture_output=True,
            text=True,
            timeout=START_SECONDS,
            check=False,
        )

    def wait_for_line(self, part: str) -> str:
        """Return the first line of the log with `part` in it; raise if the container ended."""
        self.process.wait_until(lambda: part in self.log.read_text(), START_SECONDS, part)
        return next(line for line in self.log.read_text().splitlines() if part in line)

    def wait_until_entered(self) -> None:
        """Wait until the command runs: from now on there is a root."""
        command = Path("/proc", str(self.process.popen.pid), "status")
        self.process.wait_until(
            lambda: f"Uid:\t{USER}" in command.read_text(), START_SECONDS, "the container's command"
        )

    def stop(self) -> None:
        """Send SIGTERM to every process in it, then remove everything, mounts included."""
        if self.process.is_running:
            os.killpg(self.process.popen.pid, signal.SIGTERM)
        self.process.stop()
