"""Ends the ZooKeeper session of another client, as its expiry does.

A client that knows the id and the password of a session takes it over, and may close it. The
password follows from the id (ZooKeeperServer.generatePasswd).
"""

from __future__ import annotations

import struct

from kazoo.client import KazooClient

WAIT_S = 60
PASSWORD_SECRET = 0xB3415C00
"""Number that ZooKeeper's server mixes with a session's id."""
RANDOM_MULTIPLIER, RANDOM_ADDEND, RANDOM_MASK = 0x5DEECE66D, 0xB, (1 << 48) - 1
"""The generator of `java.util.Random`."""


def end_session(hosts: str, session_id: int) -> bool:
    """End this session: its ephemeral nodes go at once. Return whether it was alive before."""
    client = KazooClient(hosts, client_id=(session_id, password_of(session_id)), timeout=WAIT_S)
    client.start(WAIT_S)
    was_alive: bool = client.client_id[0] == session_id
    client.stop()
    client.close()
    return was_alive


def password_of(session_id: int) -> bytes:
    """Return the 16 bytes that `java.util.Random` gives after the seed `session_id` ^ secret."""
    state = (session_id ^ PASSWORD_SECRET ^ RANDOM_MULTIPLIER) & RANDOM_MASK
    words = []
    for _ in range(4):
        state = (state * RANDOM_MULTIPLIER + RANDOM_ADDEND) & RANDOM_MASK
        words.append(state >> 16)
    return struct.pack("<4I", *words)
