"""The state directory of `up`, `status`, `stop` and `reset`: one broker in the background.

    broker.lock     locked for as long as the broker lives: it inherits the lock
    broker.pid      its process id
    broker.json     its address, its options, its data (`Background`)
    broker.log      its output; broker.previous.log is that of the run before
    change.lock     locked by a command that starts or ends the broker

The directory belongs to the user, not to the data: so `status` and `stop` work from anywhere, also
for a broker without data. Whether the broker lives is what the lock says. A process id alone may
be that of another process by now.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from minibroker.cli.declaration import Option
from minibroker.cli.errors import CommandError
from minibroker.cli.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BACKGROUND: Final = "Background"
"""The title of the options in the help page."""
LISTENING: Final = "minibroker listening on "
CONTROL: Final = "minibroker control on "
REGISTRY: Final = "minibroker registry on "
"""Begin of the lines that tell the addresses."""
_DIRECTORY_MODE: Final = 0o700
_FILE_MODE: Final = 0o600
"""The options of a broker may have passwords."""
_LOOK_S: Final = 0.5
"""Time for which a lock is waited for that `status` may hold for a moment."""
_TAIL_BYTES: Final = 16_384
_TAIL_LINES: Final = 20


class StateOptions(NamedTuple):
    """The option of all four verbs."""

    state_dir: Annotated[
        str | None,
        Option(
            "--state-dir",
            Kind("DIR", completes="directory"),
            "directory of the pid file and the log: one for each broker in the background",
            BACKGROUND,
            default="$XDG_STATE_HOME/minibroker, or ~/.local/state/minibroker",
        ),
    ] = None


class Background(NamedTuple):
    """A broker in the background, as `up` has started it."""

    pid: int
    addresses: str
    """HOST:PORT of each broker, with commas between."""
    control: list[str]
    """The URL of each control API."""
    started_ms: int
    words: list[str]
    """The words of `serve`."""
    directory: str
    """The working directory."""
    data: list[str]
    """The directories of the data; none for a broker in memory."""
    in_zookeeper: bool
    """The metadata are kept in ZooKeeper."""
    is_stopped: bool = False
    """`stop` has ended it."""
    registry: Sequence[str] = ()
    """The URL of each schema registry."""
    version: str = ""
    """The version that runs, and its kind of package; empty for one that did not write it yet."""

    @property
    def ready_lines(self) -> list[str]:
        """Return the lines that `serve` writes when clients can connect."""
        return [
            f"{LISTENING}{self.addresses}\n",
            *(f"{CONTROL}{url}\n" for url in self.control),
            *(f"{REGISTRY}{url}\n" for url in self.registry),
        ]


class StateDirectory:
    """The files of a state directory."""

    def __init__(self, options: StateOptions, environment: Mapping[str, str]) -> None:
        self.directory = Path(options.state_dir or _default(environment))
        self.log = self.directory / "broker.log"
        self.previous_log = self.directory / "broker.previous.log"
        self.lock = self.directory / "broker.lock"
        self._pid_file = self.directory / "broker.pid"
        self._details = self.directory / "broker.json"
        self._change = self.directory / "change.lock"

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Be the only command that starts or ends the broker; another one waits.

        Raises CommandError: the directory cannot be made or written.
        """
        try:
            self.directory.mkdir(_DIRECTORY_MODE, parents=True, exist_ok=True)
            descriptor = _open(self._change)
        except OSError as error:
            raise CommandError(
                f"the state directory {self.directory} cannot be written: {error.strerror}; give "
                "another one with --state-dir"
            ) from None
        try:
            _locks().flock(descriptor, _locks().LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def take(self, timeout_s: float = _LOOK_S) -> int | None:
        """Return a descriptor that holds the lock of the broker, None if a broker has it."""
        descriptor = _open(self.lock)
        if _locked(descriptor, timeout_s):
            return descriptor
        os.close(descriptor)
        return None

    def lives(self) -> bool:
        """Return whether the broker lives, or is being started."""
        fcntl = _locks()
        try:
            descriptor = os.open(self.lock, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def read(self) -> Background | None:
        """Return the broker that was started last; None if there is none, or it is starting."""
        try:
            fields = json.loads(self._details.read_text(encoding="utf-8"))
            return Background(**fields)
        except FileNotFoundError:
            return None
        except (ValueError, TypeError):
            raise CommandError(
                f"{self._details} is damaged: end the broker by hand, and remove the file"
            ) from None

    def write(self, background: Background) -> None:
        """Write the broker that runs, or that was stopped."""
        part = self._details.with_suffix(".part")
        _write(part, json.dumps(background._asdict(), indent=1) + "\n")
        part.replace(self._details)

    def write_pid(self, pid: int) -> None:
        """Write the process id of a broker that is starting."""
        _write(self._pid_file, f"{pid}\n")

    def read_pid(self) -> int | None:
        """Return the process id of the broker, None if its start was interrupted."""
        try:
            return int(self._pid_file.read_text(encoding="ascii"))
        except (FileNotFoundError, ValueError):
            return None

    def begin(self) -> None:
        """Forget the last broker, and keep its log as the previous one."""
        self._pid_file.unlink(missing_ok=True)
        self._details.unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            self.log.replace(self.previous_log)

    def end(self, background: Background | None) -> None:
        """Note that the broker was stopped."""
        self._pid_file.unlink(missing_ok=True)
        if background is not None:
            self.write(background._replace(is_stopped=True))

    def last_lines(self) -> str:
        """Return the end of the log, each line behind two blanks."""
        with self.log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").splitlines()
        return "".join(f"  {line}\n" for line in lines[-_TAIL_LINES:])


def _default(environment: Mapping[str, str]) -> str:
    """Return the directory by the rules of XDG: a path that is not absolute does not count."""
    home = environment.get("XDG_STATE_HOME", "")
    if not os.path.isabs(home):  # noqa: PTH117  it is text of a variable
        home = os.path.expanduser("~/.local/state")  # noqa: PTH111  as above
    return f"{home}/minibroker"


def _locks() -> Any:
    """Return the module of file locks. Raises CommandError where there is none."""
    try:
        import fcntl  # noqa: PLC0415  Windows has none
    except ImportError:
        raise CommandError(
            "a broker in the background needs file locks of POSIX: run minibroker serve"
        ) from None
    return fcntl


def _locked(descriptor: int, timeout_s: float) -> bool:
    """Lock a file for this process and its children; return False if another one keeps it."""
    fcntl = _locks()
    done = threading.Event()

    def lock() -> None:
        with suppress(OSError):  # closed, after the time is over
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            done.set()

    threading.Thread(target=lock, daemon=True).start()
    return done.wait(timeout_s)


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)


def _write(path: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, _FILE_MODE), "w", encoding="utf-8") as file:
        file.write(text)
