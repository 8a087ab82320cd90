"""`TlsStream`: TLS of the control API, between a connection's streams and HTTP.

    socket ◄─ asyncio's streams ─► TlsStream ◄─ plain bytes ─► http.py

The steps of a handshake run on a worker thread: the private key's work takes 0.3 ms with RSA of
2048 bits, and 4 ms with 4096. The loops' own TLS does it on the loop. What follows a handshake is
cheap and stays there. OpenSSL bounds the bytes of a handshake, `http.py` its time.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from concurrent.futures import Executor

_READ_BYTES: Final = 16 << 10


class TlsStream:
    """Reads and writes through TLS, as the broker's side. One task owns it; during a step of the
    handshake a worker has the TLS object.
    """

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    async def shake_hands(self, workers: Executor) -> None:
        """Do the handshake. The client gets an alert if it fails. Raises OSError, of which
        `ssl.SSLError` is one.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                await loop.run_in_executor(workers, self._tls.do_handshake)
            except ssl.SSLWantReadError:
                self._flush()
            except ssl.SSLError:
                self._flush()
                raise
            else:
                self._flush()
                return
            if not await self._receive():
                raise ConnectionResetError("the client left in the TLS handshake")

    async def read(self, bytes_max: int) -> bytes:
        """Return bytes of the client, none at its end. Raises OSError."""
        while True:
            try:
                return self._tls.read(bytes_max)
            except ssl.SSLZeroReturnError:
                return b""
            except ssl.SSLWantReadError:
                self._flush()
            if not await self._receive():
                return b""

    async def _receive(self) -> bool:
        """Take what the socket has; return False where the client sends no more."""
        received = await self._reader.read(_READ_BYTES)
        self._incoming.write(received)
        return bool(received)

    def write(self, data: bytes) -> None:
        """Encrypt and send."""
        self._tls.write(data)
        self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._writer.write(self._outgoing.read())

    async def drain(self) -> None:
        """Return when the socket has taken enough to write on. Raises OSError."""
        await self._writer.drain()

    def close(self) -> None:
        """Say that nothing more is sent, and close behind it. Nobody waits for the client to say
        so, too.
        """
        with suppress(ssl.SSLError):  # the client has not said it yet
            self._tls.unwrap()
        self._flush()
        self._writer.close()

    async def wait_closed(self) -> None:
        """Return when all is sent and the socket closed. Raises OSError."""
        await self._writer.wait_closed()
