"""`RecordedBroker`: a broker in the test's process that answers as it was recorded.

    with RecordedBroker("conversation.jsonl") as broker:
        run_my_service(bootstrap_servers=broker.bootstrap)
        assert broker.refusals == []

`minibroker proxy --record` and `minibroker trace --json` write such files. A test can change one:
an error code in an answer, a duration, an answer that does not come.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minibroker.clock import SystemClock
from minibroker.testing.loop_thread import InThread, LoopThread

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from minibroker.trace.exchange import Exchange
    from minibroker.trace.script import Script

EXCHANGES_MAX: Final = 10_000
"""Most exchanges, and most refusals, that are kept."""


class RecordedBroker(InThread):
    """A scripted broker. Its start raises DialogueError or OSError for the file.

    Args:
        dialogue: the file of a conversation, JSON lines.
        host: address of the listener.
        port: its port, 0: a free one.
    """

    def __init__(self, dialogue: str | Path, *, host: str = "127.0.0.1", port: int = 0) -> None:
        self._path = Path(dialogue)
        self._address = (host, port)
        self._thread = LoopThread(self._serving)
        self._own_address = ("", 0)
        self.exchanges: list[Exchange] = []
        """The requests that were answered so far, oldest first, with their messages."""
        self.refusals: list[str] = []
        """A sentence for each request that was not recorded."""

    @property
    def bootstrap(self) -> str:
        """Return `HOST:PORT` for a client's bootstrap.servers."""
        if not self._thread.is_running:
            raise RuntimeError("this broker is not running: use it in a with block")
        host, port = self._own_address
        return f"{host}:{port}"

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        from minibroker.proxy.addresses import rewrite_all  # noqa: PLC0415  only who asks pays
        from minibroker.trace.scripted_broker import ScriptedBroker  # noqa: PLC0415

        broker = ScriptedBroker(
            await asyncio.to_thread(_read, self._path),
            rewrite_all,
            SystemClock().now_ms,
            on_exchange=self._note_exchange,
            on_refused=self._note_refusal,
        )
        self._own_address = await broker.start(*self._address)
        yield
        await broker.stop()

    def _note_exchange(self, exchange: Exchange) -> None:
        if len(self.exchanges) < EXCHANGES_MAX:
            self.exchanges.append(exchange)

    def _note_refusal(self, sentence: str) -> None:
        if len(self.refusals) < EXCHANGES_MAX:
            self.refusals.append(sentence)


def _read(path: Path) -> Script:
    """Return the script of a file. Raises DialogueError, OSError."""
    from minibroker.trace.json_lines import read_exchanges  # noqa: PLC0415  only who asks pays
    from minibroker.trace.script import Script  # noqa: PLC0415

    script = Script()
    with path.open(encoding="utf-8", errors="replace") as lines:
        for exchange in read_exchanges(lines):
            script.add(exchange)
    return script
