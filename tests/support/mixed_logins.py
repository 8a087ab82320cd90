"""Dialogues of a client that mixes what does not belong together, besides `sasl_dialogues`.

Both versions of the handshake, a mechanism that the listener lacks, messages of an earlier login,
the binding to a channel that is none, versions of TLS that nobody should speak.
"""

from __future__ import annotations

import os
import socket
import ssl
import struct
from operator import methodcaller as do
from typing import TYPE_CHECKING, Final

from tests.support.certificates import STORES
from tests.support.sasl_dialogues import (
    AGAIN,
    DIALOGUES,
    ENDED,
    HELLO,
    HELLO_V0,
    NOTED_HELLO,
    PLAIN,
    RAW,
    SASL,
    SCRAM_256,
    SERVED,
    SIGNED,
    TOKENS,
    VERSIONS,
    Talk,
    add,
    play,
    prove,
)
from tests.support.sasl_dialogues import SETTINGS as COMMON

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DIALOGUES", "ENCRYPTED", "LISTENERS", "PROTOCOLS", "SCRAMS", "SETTINGS", "play"]

SCRAMS, ENCRYPTED = "SCRAMS", "ENCRYPTED"
LISTENERS: Final = (SASL, AGAIN, TOKENS, SIGNED, SCRAMS, ENCRYPTED)
PROTOCOLS: Final = dict.fromkeys(LISTENERS, "SASL_PLAINTEXT") | {ENCRYPTED: "SASL_SSL"}
_STORE: Final = "listener.name.encrypted.ssl.keystore"
_SCRAM_KEYS: Final = [key for key in COMMON if key.startswith("listener.name.sasl.scram")]
SETTINGS: Final = {
    **COMMON,
    "listener.name.scrams.sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    **{
        key.replace(".sasl.", f".{name}.", 1): COMMON[key]
        for name in ("scrams", "encrypted")
        for key in _SCRAM_KEYS
    },
    "listener.name.encrypted.plain.sasl.jaas.config": COMMON[
        "listener.name.sasl.plain.sasl.jaas.config"
    ],
    f"{_STORE}.type": "JKS",
    f"{_STORE}.location": str(STORES / "keys.jks"),
    f"{_STORE}.password": "store-secret",
    "listener.name.encrypted.ssl.key.password": "key-secret",
}
"""Settings of the broker besides its listeners, for all dialogues."""


# A mechanism that the listener lacks.


add(
    SCRAMS,
    {
        "a_handshake_of_plain_where_scram_is_asked_for": (NOTED_HELLO, PLAIN, ENDED),
        "a_handshake_of_plain_in_version_0_where_scram_is_asked_for": (
            do("ask", "sasl_handshake", 0, mechanism="PLAIN"),
            RAW,
        ),
        "another_mechanism_after_an_unknown_one": (
            NOTED_HELLO,
            do("ask", "sasl_handshake", 1, mechanism="SCRAM-SHA-256"),
            do("scram"),
        ),
        "a_plain_token_for_scram": (SCRAM_256, PLAIN, ENDED),
        "a_raw_plain_token_for_scram": (do("handshake", "SCRAM-SHA-512", version=0), RAW),
    },
)


add(SASL, {"a_scram_message_for_plain": (HELLO, prove(b"n,,n=alice,r=clientnonce"), ENDED)})


# Both versions of the handshake.


add(
    SASL,
    {
        "handshake_0_then_handshake_1": (HELLO_V0, NOTED_HELLO, ENDED),
        "handshake_0_twice": (HELLO_V0, do("ask", "sasl_handshake", 0, mechanism="PLAIN"), ENDED),
        "handshake_1_then_handshake_0": (
            HELLO,
            do("ask", "sasl_handshake", 0, mechanism="PLAIN"),
            RAW,
        ),
        "authenticate_after_handshake_0": (HELLO_V0, PLAIN, ENDED),
        "raw_scram_messages_after_handshake_1": (
            SCRAM_256,
            do("send", b"n,,n=alice,r=clientnonce"),
        ),
        "a_raw_token_after_the_login": (HELLO, PLAIN, RAW),
        "a_request_after_raw_tokens": (HELLO_V0, RAW, NOTED_HELLO, SERVED),
    },
)


# Messages of an earlier login, and the binding to a channel.


def _begin(talk: Talk, is_tls: bool) -> None:
    if is_tls:
        talk.encrypt()
    talk.handshake("SCRAM-SHA-256")


def _replay(is_tls: bool, part: str) -> Callable[[Talk], None]:
    """Return a dialogue that repeats the last message of an earlier login, or its proof."""

    def run(talk: Talk) -> None:
        first = Talk(*talk.peer)
        texts: list[str] = []
        _begin(first, is_tls)
        first.scram(change={"signed": lambda text: texts.append(text) or text})  # type: ignore[func-returns-value]
        first.close()
        talk.notes.append(first.notes)
        _begin(talk, is_tls)
        proof = texts[0].rpartition(",p=")[2]
        talk.scram(
            change={
                "signed": lambda text: (
                    texts[0] if part == "message" else text.rpartition(",p=")[0] + f",p={proof}"
                )
            }
        )
        talk.metadata()

    return run


def _bound(is_tls: bool, changes: dict[str, Callable[[str], str]]) -> Callable[[Talk], None]:
    """Return a dialogue of SCRAM with other messages."""

    def run(talk: Talk) -> None:
        _begin(talk, is_tls)
        talk.scram(change=changes)
        talk.metadata()

    return run


def _header(gs2: str) -> Callable[[str], str]:
    return lambda text: gs2 + text.removeprefix("n,,")


def _binding(encoded: str) -> Callable[[str], str]:
    return lambda text: text.replace("c=biws", f"c={encoded}")


_BINDINGS: Final[dict[str, dict[str, Callable[[str], str]]]] = {
    "scram binds to tls-unique": {"first": _header("p=tls-unique,,")},
    "scram binds to tls-exporter": {"first": _header("p=tls-exporter,,")},
    "scram could bind": {"first": _header("y,,")},
    "scram could bind and says so again": {"first": _header("y,,"), "last": _binding("eSws")},
    "scram says at the end that it could bind": {"last": _binding("eSws")},
    "scram binds at the end": {"last": _binding("cD10bHMtdW5pcXVlLCxBQUFB")},
    "scram has an empty binding": {"last": _binding("")},
    "scram has a binding that is no base64": {"last": _binding("!")},
}
for _listener in (SASL, AGAIN, SCRAMS, ENCRYPTED):
    for _part in ("message", "proof"):
        _name = f"scram repeats the {_part} of an earlier login, {_listener}"
        add(_listener, {_name: (_replay(_listener == ENCRYPTED, _part),)})
    for _name, _changes in _BINDINGS.items():
        add(_listener, {f"{_name}, {_listener}": (_bound(_listener == ENCRYPTED, _changes),)})


# TLS.


def _hello(version: int) -> bytes:
    """Return the first message of a client that knows no newer version (0x0301 is TLS 1.0)."""
    suites = struct.pack(">HHHHHH", 10, 0xC013, 0xC014, 0xC009, 0x002F, 0x0035)
    curves = struct.pack(">HHHH", 10, 4, 2, 23) + struct.pack(">HHBB", 11, 2, 1, 0)
    body = struct.pack(">H", version) + os.urandom(32) + b"\0" + suites + b"\1\0"
    body += struct.pack(">H", len(curves)) + curves
    message = b"\1" + len(body).to_bytes(3, "big") + body
    return struct.pack(">BHH", 22, min(version, 0x0301), len(message)) + message


def _greet(version: int) -> Callable[[Talk], None]:
    """Return a dialogue that notes the alert which a hello gets."""

    def run(talk: Talk) -> None:
        with socket.create_connection(talk.peer, timeout=180) as raw:
            raw.sendall(_hello(version))
            answer = bytearray()
            while len(answer) < 7 and (data := raw.recv(7 - len(answer))):
                answer += data
            kind = answer[0] if answer else 0
            talk.notes.append({"record": kind, "alert": list(answer[5:7])})

    return run


for _name, _version in (("SSL 3", 0x0300), ("TLS 1.0", 0x0301), ("TLS 1.1", 0x0302)):
    add(ENCRYPTED, {f"a hello of {_name}": (_greet(_version),)})


def _hello_in_the_clear(talk: Talk) -> None:
    try:
        talk.encrypt()
    except (ssl.SSLError, OSError):
        talk.notes.append("no TLS")


add(SASL, {"a_hello_of_tls_where_none_is_asked_for": (_hello_in_the_clear,)})
add(
    ENCRYPTED,
    {
        "a_login_behind_tls": (do("encrypt"), HELLO, PLAIN, SERVED),
        "a_request_in_the_clear_where_tls_is_asked_for": (VERSIONS,),
    },
)
