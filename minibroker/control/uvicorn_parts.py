"""The parts of uvicorn that `server` stands on, without uvicorn's program.

`import uvicorn` brings its command line and its own server too: click, the processes that it
supervises, multiprocessing, e-mail: 47 modules, 1.9 MB of memory and 13 ms of CPU, of which a
server inside another process uses nothing. Both modules are left out until somebody else in the
process asks for `uvicorn.run`, `Server` or `main`. No public way leaves them out: uvicorn's package
imports them itself. With them a registry of all formats takes 17 MB, and not 15.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

_PROGRAM: Final = "uvicorn.main"
_OF_PROGRAM: Final = ("Server", "main", "run")
"""Names that the package takes from its program."""
_SERVER: Final = "uvicorn.server"


class ServerState:
    """The state that the protocols of a server share; uvicorn's own stands beside its server."""

    def __init__(self) -> None:
        self.total_requests = 0
        self.connections: set[Any] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.default_headers: list[tuple[bytes, bytes]] = []


def _import_without_program() -> None:
    """Import the protocol with stand-ins for two modules, and have others find the real ones."""
    stand_ins = {name: ModuleType(name) for name in (_PROGRAM, _SERVER)}
    vars(stand_ins[_PROGRAM]).update(dict.fromkeys(_OF_PROGRAM))
    vars(stand_ins[_SERVER])["ServerState"] = ServerState
    sys.modules.update(stand_ins)
    try:
        import_module("uvicorn.protocols.http.h11_impl")
    finally:
        for name in stand_ins:
            del sys.modules[name]
    package = vars(sys.modules["uvicorn"])
    for name in _OF_PROGRAM:
        package.pop(name, None)
    package["__getattr__"] = _program_part


def _program_part(name: str) -> Any:
    """Return what the package `uvicorn` has from its program. Raises AttributeError."""
    if name not in _OF_PROGRAM:
        raise AttributeError(f"module 'uvicorn' has no attribute {name!r}")
    program = vars(import_module(_PROGRAM))
    vars(sys.modules["uvicorn"]).update({part: program[part] for part in _OF_PROGRAM})
    return program[name]


if "uvicorn" not in sys.modules:
    _import_without_program()

from uvicorn.config import Config  # noqa: E402  behind the package
from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: E402

__all__ = ["Config", "H11Protocol", "ServerState"]
