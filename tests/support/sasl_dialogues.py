"""Dialogues of a client that proves its identity, well or badly: what it sends and what it sees.

The same dialogues are recorded from Apache Kafka (`tests/golden/record_sasl.py`) and played on
minibroker. A dialogue notes every answer and every end of a connection; what cannot be equal
(nonces, times, lists of versions) is left out.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import ssl
import struct
import time
from collections.abc import Callable, Sequence
from operator import methodcaller as do
from typing import TYPE_CHECKING, Any, Final

from tests.support import signed_tokens
from tests.support.codec import codec_of
from tests.support.signed_tokens import AUDIENCE, FAR_S, ISSUER
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Mapping

ALICE: Final = ("alice", "alice-secret")
BOB: Final = ("bob", "bob-secret")
SASL, AGAIN, TOKENS, SIGNED = "SASL", "AGAIN", "TOKENS", "SIGNED"
SESSION_MS: Final = 3_600_000
_PLAIN: Final = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required"
    ' user_alice="alice-secret" user_bob="bob-secret";'
)
_OAUTH: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
VALIDATOR: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
)
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
SETTINGS: Final = {
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms": "1",
    "listener.name.again.connections.max.reauth.ms": str(SESSION_MS),
    "sasl.server.max.receive.size": "2000",
    "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
    "listener.name.tokens.oauthbearer.sasl.jaas.config": (
        f'{_OAUTH} unsecuredLoginStringClaim_sub="broker"'
        ' unsecuredValidatorRequiredScope="read write";'
    ),
    "listener.name.signed.sasl.enabled.mechanisms": "OAUTHBEARER",
    "listener.name.signed.oauthbearer.sasl.jaas.config": f"{_OAUTH};",
    "listener.name.signed.oauthbearer.sasl.server.callback.handler.class": VALIDATOR,
    "listener.name.signed.oauthbearer.sasl.oauthbearer.expected.audience": f"other,{AUDIENCE}",
    "listener.name.signed.sasl.oauthbearer.expected.issuer": ISSUER,
    **{
        f"listener.name.{name}.{mechanism}.sasl.jaas.config": line
        for name in ("sasl", "again")
        for mechanism, line in (
            ("plain", _PLAIN),
            ("scram-sha-256", _SCRAM),
            ("scram-sha-512", _SCRAM),
        )
    },
}
"""Settings of the broker besides its listeners: PLAINTEXT, the others on SASL_PLAINTEXT."""
JWKS_URL: Final = "listener.name.signed.oauthbearer.sasl.oauthbearer.jwks.endpoint.url"
"""The setting that is missing in `SETTINGS`: it names a file of `signed_tokens.write_jwks`."""
CLOSED: Final = "closed"
Step = Callable[["Talk"], Any]
Change = Callable[[str], str]
DIALOGUES: Final[dict[str, tuple[str, Sequence[Step]]]] = {}
"""Name → listener, and the steps of the client."""
HELLO: Final[Step] = do("handshake")
HELLO_V0: Final[Step] = do("handshake", version=0)
NOTED_HELLO: Final[Step] = do("ask", "sasl_handshake", 1, mechanism="PLAIN")
SCRAM_256: Final[Step] = do("handshake", "SCRAM-SHA-256")
SCRAM_512: Final[Step] = do("handshake", "SCRAM-SHA-512")
PLAIN: Final[Step] = do("plain")
PLAIN_V0: Final[Step] = do("plain", version=0)
VERSIONS: Final[Step] = do("ask", "api_versions", 0)
METADATA: Final[Step] = do("ask", "metadata", 1, topics=[])
SERVED: Final[Step] = do("metadata")
ENDED: Final[Step] = do("end")


def add_scram_users(host: str, port: int) -> None:
    """Give alice her SCRAM credentials, on a PLAINTEXT listener."""
    with WireClient(host, port) as client:
        for code, name in ((1, "sha256"), (2, "sha512")):
            salt = b"salt of alice"
            salted = hashlib.pbkdf2_hmac(name, ALICE[1].encode(), salt, 4096)
            change = {
                "name": ALICE[0],
                "mechanism": code,
                "iterations": 4096,
                "salt": salt,
                "salted_password": salted,
            }
            answer = client.call(
                "alter_user_scram_credentials", 0, deletions=[], upsertions=[change]
            )
            assert answer["results"][0]["error_code"] == 0, answer


class Talk:
    """One connection, and what its client saw."""

    def __init__(self, host: str, port: int) -> None:
        self.peer = host, port
        self._client = WireClient(host, port)
        self.notes: list[Any] = []

    def close(self) -> None:
        """End the connection."""
        self._client.close()

    def encrypt(self) -> None:
        """Begin TLS, with whatever certificate. Raises OSError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        self._client.socket = context.wrap_socket(self._client.socket)

    def ask(self, api: str, version: int, /, **fields: Any) -> dict[str, Any]:
        """Send a request; note the answer, or that the broker closed, and return it."""
        answer = self.quietly(api, version, **fields)
        self.notes.append(_fields_of(api, answer))
        return answer

    def quietly(self, api: str, version: int, /, **fields: Any) -> dict[str, Any]:
        """Do `ask` without a note; {} where the broker closed."""
        try:
            return self._client.call(api, version, **fields)
        except ConnectionError:
            return {}

    def send(self, body: bytes) -> None:
        """Send one frame; note the bytes of the answer in hexadecimal, or that it closed."""
        self.notes.append(self.token(body))

    def token(self, body: bytes) -> str:
        """Do `send` without a note."""
        try:
            self._client.send_frame(body)
            return self._client.receive_frame().hex()
        except ConnectionError:
            return CLOSED

    def send_only(self, body: bytes) -> None:
        """Send one frame, which has no answer."""
        self._client.send_frame(body)

    def send_header(self, api: str, version: int, *, size: int | None = None) -> None:
        """Send a request of a version that does not exist, with an empty body; note so many digits
        of the answer.
        """
        name = b"\0\4wire"
        head = struct.pack(">hhi", codec_of(api).api_key, version, 9) + name
        self.notes.append(self.token(head + b"\0")[:size])

    def send_size(self, size: int) -> None:
        """Send the size of a frame that nobody should read; note what follows."""
        self._client.send_bytes(struct.pack(">i", size) + b"\0\0\0\0")
        self.end()

    def end(self) -> None:
        """Note whether the broker closes now."""
        self.notes.append(CLOSED if self._client.is_closed_by_peer() else "bytes")

    # Steps of several dialogues.

    def handshake(self, mechanism: str = "PLAIN", version: int = 1) -> None:
        """Do a handshake that succeeds, without a note."""
        answer = self.quietly("sasl_handshake", version, mechanism=mechanism)
        assert answer.get("error_code") == 0, answer

    def plain(self, user: tuple[str, str] = ALICE, version: int = 1) -> None:
        """Prove an identity by PLAIN; note the answer."""
        self.ask("sasl_authenticate", version, auth_bytes=plain_token(*user))

    def scram(
        self,
        mechanism: str = "SCRAM-SHA-256",
        *,
        user: tuple[str, str] = ALICE,
        change: Mapping[str, Callable[[str], str]] | None = None,
    ) -> None:
        """Prove an identity by SCRAM; note each answer. `change`: first, last → another message."""
        changes = change or {}
        name = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
        bare = f"n={user[0]},r=clientnonce"
        first = changes.get("first", str)("n,," + bare)
        answer = self.quietly("sasl_authenticate", 1, auth_bytes=first.encode())
        if not answer or answer["error_code"]:
            self.notes.append(_fields_of("sasl_authenticate", answer))
            return
        server_first = answer["auth_bytes"].decode()
        parts = dict(part.partition("=")[::2] for part in server_first.split(","))
        salted = hashlib.pbkdf2_hmac(
            name, user[1].encode(), base64.b64decode(parts["s"]), int(parts["i"])
        )
        unsigned = changes.get("last", str)(f"c=biws,r={parts['r']}")
        signed = f"{bare},{server_first},{unsigned}".encode()
        client_key = hmac.digest(salted, b"Client Key", name)
        signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
        proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        last = changes.get("signed", str)(f"{unsigned},p={base64.b64encode(proof).decode()}")
        answer = self.quietly("sasl_authenticate", 1, auth_bytes=last.encode())
        self.notes.append({"iterations": parts["i"], **_fields_of("sasl_authenticate", answer)})
        if answer and not answer["error_code"]:
            server_key = hmac.digest(salted, b"Server Key", name)
            expected = base64.b64encode(hmac.digest(server_key, signed, name)).decode()
            assert answer["auth_bytes"].decode() == f"v={expected}"

    def metadata(self) -> None:
        """Note whether requests are served."""
        answer = self.quietly("metadata", 1, topics=[])
        self.notes.append("served" if answer.get("brokers") else CLOSED)


def plain_token(user: str, password: str, authorization: str = "") -> bytes:
    """Return the token of PLAIN."""
    return f"{authorization}\0{user}\0{password}".encode()


def _fields_of(api: str, answer: dict[str, Any]) -> Any:
    """Return what of an answer can be equal."""
    if not answer:
        return {"end": CLOSED}
    if api == "api_versions":
        return {"error_code": answer["error_code"], "has_keys": bool(answer["api_keys"])}
    if api == "sasl_authenticate":
        fields = {key: value for key, value in answer.items() if key != "auth_bytes"}
        if answer["auth_bytes"].startswith(b"{"):
            fields["json"] = answer["auth_bytes"].decode()
        if fields.get("session_lifetime_ms", 0) > SESSION_MS:  # until a token's end
            fields["session_lifetime_ms"] = "long"
        fields["has_bytes"] = bool(answer["auth_bytes"])
        return fields
    return answer


def add(listener: str, dialogues: Mapping[str, Sequence[Step]]) -> None:
    """Add dialogues: name → the steps of the client."""
    for name, steps in dialogues.items():
        DIALOGUES[name] = (listener, steps)


def prove(token: bytes, version: int = 1) -> Step:
    """Return the step that sends a token of a mechanism and notes the answer."""
    return do("ask", "sasl_authenticate", version, auth_bytes=token)


def scram(first: Change = str, last: Change = str, signed: Change = str) -> Step:
    """Return the step of SCRAM with other messages."""
    return do("scram", change={"first": first, "last": last, "signed": signed})


def play(host: str, ports: Mapping[str, int], name: str) -> list[Any]:
    """Return what the client of a dialogue saw."""
    listener, steps = DIALOGUES[name]
    talk = Talk(host, ports[listener])
    try:
        for step in steps:
            step(talk)
    finally:
        talk.close()
    return talk.notes


# Before the handshake.


def software_name(software: str) -> Step:
    """Return the step that asks for versions, with the name of the client's software."""
    return do("ask", "api_versions", 3, client_software_name=software, client_software_version="1")


RAW: Final[Step] = do("send", plain_token(*ALICE))


add(
    SASL,
    {
        "metadata_comes_first": (SERVED,),
        "a_kerberos_token_comes_first": (do("send", b"\x60\x82\x02\x10" + bytes(20)),),
        "an_unknown_api_comes_first": (do("send", struct.pack(">hhih", 999, 0, 1, -1)),),
        "an_empty_frame_comes_first": (do("send", b""),),
        "authenticate_comes_first": (PLAIN,),
        "a_large_frame_comes_first": (do("send_size", 2001),),
        "a_negative_size_comes_first": (do("send_size", -1),),
        "versions_then_handshake": (software_name("a"), NOTED_HELLO, PLAIN, SERVED),
        "versions_twice": (VERSIONS, VERSIONS),
        "an_unknown_version_of_api_versions": (
            do("send_header", "api_versions", 99, size=12),
            VERSIONS,
            HELLO,
            PLAIN,
        ),
        "a_wrong_name_of_the_client_software": (software_name("-"), VERSIONS, HELLO, PLAIN),
    },
)


# The handshake.


add(
    SASL,
    {
        "an_unknown_mechanism": (do("ask", "sasl_handshake", 1, mechanism="GSSAPI"), ENDED),
        "an_unknown_mechanism_in_version_0": (
            do("ask", "sasl_handshake", 0, mechanism="plain"),
            ENDED,
        ),
        "an_unknown_version_of_the_handshake": (do("send_header", "sasl_handshake", 9),),
        "metadata_after_the_handshake": (HELLO, METADATA, ENDED),
        "versions_after_the_handshake": (HELLO, VERSIONS, ENDED),
        "a_handshake_after_the_handshake": (HELLO, NOTED_HELLO, ENDED),
        "a_group_request_after_the_handshake": (
            HELLO,
            do("ask", "find_coordinator", 2, key="g", key_type=0),
            ENDED,
        ),
        "a_raw_token_after_handshake_1": (HELLO, RAW),
        "an_unknown_version_of_authenticate": (HELLO, do("send_header", "sasl_authenticate", 9)),
        "a_large_token": (HELLO, do("send_size", 2001)),
    },
)


# PLAIN.


add(
    SASL,
    {
        "plain_in_version_0": (HELLO, PLAIN_V0, SERVED),
        "plain_in_version_2": (HELLO, do("plain", version=2), SERVED),
        "plain_with_raw_tokens": (HELLO_V0, RAW, SERVED),
        "a_wrong_password_with_raw_tokens": (HELLO_V0, do("send", plain_token("alice", "no"))),
        "a_wrong_password": (HELLO, do("plain", ("alice", "no")), ENDED),
        "a_wrong_password_in_version_0": (HELLO, do("plain", ("alice", "no"), version=0), ENDED),
        "an_unknown_user": (HELLO, do("plain", ("nobody", "alice-secret")), ENDED),
        "no_user": (HELLO, do("plain", ("", "alice-secret")), ENDED),
        "no_password": (HELLO, do("plain", ("alice", "")), ENDED),
        "two_tokens": (HELLO, prove(b"alice\0alice-secret"), ENDED),
        "five_tokens": (HELLO, prove(b"\0alice\0alice-secret\0x\0y"), ENDED),
        "no_token": (HELLO, prove(b""), ENDED),
        "the_own_authorization_id": (
            HELLO,
            prove(plain_token(*ALICE, authorization="alice")),
            SERVED,
        ),
        "another_authorization_id": (HELLO, prove(plain_token(*ALICE, authorization="bob")), ENDED),
        "bytes_that_are_no_text": (HELLO, prove(b"\0\xff\xfe\0\xff"), ENDED),
    },
)


# Afterwards.


add(
    SASL,
    {
        "a_handshake_afterwards": (HELLO, PLAIN, NOTED_HELLO, SERVED),
        "authenticate_afterwards": (HELLO, PLAIN, PLAIN, SERVED),
        "versions_afterwards": (HELLO, PLAIN, VERSIONS, SERVED),
    },
)


# SCRAM.


add(
    SASL,
    {
        "scram_sha_256": (SCRAM_256, do("scram"), SERVED),
        "scram_sha_512": (SCRAM_512, do("scram", "SCRAM-SHA-512"), SERVED),
        "scram_with_a_wrong_password": (SCRAM_256, do("scram", user=("alice", "no")), ENDED),
        "scram_with_an_unknown_user": (
            SCRAM_512,
            do("scram", "SCRAM-SHA-512", user=("nobody", "no")),
            ENDED,
        ),
        "scram_with_a_malformed_first_message": (SCRAM_256, scram(first=lambda _: "hello"), ENDED),
        "scram_with_channel_binding": (
            SCRAM_256,
            scram(first=lambda text: text.replace("n,,", "p=tls-unique,,")),
            ENDED,
        ),
        "scram_with_another_authorization_id": (
            SCRAM_256,
            scram(first=lambda text: text.replace("n,,", "n,a=bob,")),
            ENDED,
        ),
        "scram_with_an_unknown_delegation_token": (
            SCRAM_256,
            scram(first=lambda text: text + ",tokenauth=true"),
            ENDED,
        ),
        "scram_with_another_nonce": (SCRAM_256, scram(last=lambda text: text + "x"), ENDED),
        # It writes the client's nonce twice.
        "scram_with_the_nonce_of_librdkafka_before_2_6_1": (
            SCRAM_256,
            scram(last=lambda text: text.replace("r=", "r=clientnonce")),
            SERVED,
        ),
        "scram_with_a_malformed_last_message": (SCRAM_256, scram(signed=lambda _: "hello"), ENDED),
        "scram_without_a_proof": (
            SCRAM_256,
            scram(signed=lambda text: text.partition(",p=")[0] + ",p="),
            ENDED,
        ),
    },
)


# Sessions that end.


add(
    AGAIN,
    {
        "a_session_has_a_length": (HELLO, PLAIN, SERVED),
        "a_session_in_version_0": (HELLO, PLAIN_V0, SERVED),
        "a_session_is_renewed": (HELLO, PLAIN, NOTED_HELLO, PLAIN, SERVED),
        "a_session_of_scram_is_renewed": (
            SCRAM_512,
            do("scram", "SCRAM-SHA-512"),
            SCRAM_512,
            do("scram", "SCRAM-SHA-512"),
            SERVED,
        ),
        "a_session_is_renewed_twice_in_a_moment": (HELLO, PLAIN, HELLO, PLAIN, NOTED_HELLO, SERVED),
        "another_mechanism_renews": (
            HELLO,
            PLAIN,
            do("ask", "sasl_handshake", 1, mechanism="SCRAM-SHA-256"),
            do("scram"),
        ),
        "an_unknown_mechanism_renews": (
            HELLO,
            PLAIN,
            do("ask", "sasl_handshake", 1, mechanism="GSSAPI"),
            ENDED,
        ),
        "another_user_renews": (HELLO, PLAIN, HELLO, do("plain", BOB), ENDED),
        "a_wrong_password_renews": (
            SCRAM_256,
            do("scram"),
            SCRAM_256,
            do("scram", user=("alice", "no")),
            ENDED,
        ),
        "metadata_while_a_session_is_renewed": (HELLO, PLAIN, HELLO, METADATA, ENDED),
        "authenticate_without_a_handshake": (HELLO, PLAIN, PLAIN, SERVED),
    },
)


# OAUTHBEARER.

CLAIMS: Final = {"sub": "alice", "exp": FAR_S, "iat": 1, "scope": ["read", "write", "more"]}


def _part(value: Any) -> str:
    return base64.b64encode(json.dumps(value).encode()).decode().rstrip("=")


def _token(claims: Any = None, *, header: Any = None, end: str = "") -> str:
    """Return an unsecured token, whose claims are `CLAIMS` with these changes."""
    all_claims = {
        key: value for key, value in {**CLAIMS, **(claims or {})}.items() if value is not None
    }
    return f"{_part(header or {'alg': 'none'})}.{_part(all_claims)}.{end}"


def _bearer(token: str, *, authorization: str = "", auth: str = "auth=Bearer ") -> bytes:
    return f"n,{authorization},\x01{auth}{token}\x01\x01".encode()


def _give(talk: Talk, message: bytes) -> None:
    """Send a message, and where it is not believed, the word of a client that has heard it."""
    talk.handshake("OAUTHBEARER")
    answer = talk.ask("sasl_authenticate", 2, auth_bytes=message)
    if answer and answer["auth_bytes"]:
        talk.ask("sasl_authenticate", 2, auth_bytes=b"\x01")
    if answer and not answer["error_code"] and not answer["auth_bytes"]:
        talk.metadata()
    else:
        talk.end()


def _add(name: str, message: bytes | Callable[[], bytes], listener: str = TOKENS) -> None:
    """Add a dialogue of one message. A function makes it when it is played."""

    def give(talk: Talk) -> None:
        _give(talk, message if isinstance(message, bytes) else message())

    add(listener, {name: (give,)})


for _name, _message in {
    "a_token": _bearer(_token()),
    "a_token_and_its_name": _bearer(_token(), authorization="a=alice"),
    "a_token_and_another_name": _bearer(_token(), authorization="a=bob"),
    "a_token_with_extensions": _bearer(_token(), auth="host=h\x01auth=bearer  "),
    "a_token_that_has_expired": _bearer(_token({"exp": 2})),
    "a_token_without_an_end": _bearer(_token({"exp": None})),
    "a_token_with_an_end_that_is_text": _bearer(_token({"exp": "2"})),
    "a_token_of_the_future": _bearer(_token({"iat": FAR_S - 1})),
    "a_token_that_ends_before_it_begins": _bearer(_token({"iat": FAR_S})),
    "a_token_without_a_name": _bearer(_token({"sub": None})),
    "a_token_with_a_blank_name": _bearer(_token({"sub": " "})),
    "a_token_with_a_number_as_name": _bearer(_token({"sub": 5})),
    "a_token_without_scope": _bearer(_token({"scope": None})),
    "a_token_with_half_the_scope": _bearer(_token({"scope": ["read"]})),
    "a_token_with_scope_as_text": _bearer(_token({"scope": "read write"})),
    "a_token_with_a_signature": _bearer(_token(end="c2ln")),
    "a_token_with_an_algorithm": _bearer(_token(header={"alg": "HS256"})),
    "a_token_of_two_parts": _bearer(_token().rstrip(".")),
    "a_token_that_is_no_json": _bearer("YQ.YQ."),
    "a_token_that_is_no_base64": _bearer("a.b."),
    "no_bearer": _bearer(_token(), auth="auth=Basic "),
    "no_auth": _bearer(_token(), auth="token="),
    "no_message_of_oauth": b"hello",
}.items():
    _add(_name, _message)


# OAUTHBEARER with signed tokens.


def _signed(claims: dict[str, Any] | None = None, **changes: Any) -> Callable[[], bytes]:
    """Return what makes the message with a signed token, changed as `signed_tokens.token` says."""
    return lambda: _bearer(signed_tokens.token(claims, **changes))


def _seconds_ago(**claims: int) -> Callable[[], bytes]:
    """Return what makes the message with a token whose claims are so many seconds ago."""
    return lambda: _bearer(
        signed_tokens.token({name: int(time.time()) - ago for name, ago in claims.items()})
    )


def _forged(secret: Callable[[], bytes]) -> Callable[[], bytes]:
    """Return what makes the message with a token by HS256, with a secret that everybody knows."""
    return lambda: _bearer(
        signed_tokens.with_signature(signed_tokens.token(header={"alg": "HS256"}), secret())
    )


def _cut(end: str) -> Callable[[], bytes]:
    """Return what makes the message with a token that has another third part."""
    return lambda: _bearer(signed_tokens.token().rpartition(".")[0] + end)


for _name, _maker in {
    "a_signed_token": _signed(),
    "a_signed_token_by_rs512": _signed(header={"alg": "RS512"}),
    "a_signed_token_by_ps256": _signed(header={"alg": "PS256"}),
    "a_signed_token_by_es256": _signed(key="ec", header={"alg": "ES256"}),
    "a_signed_token_by_a_shared_secret": _signed(key="shared", header={"alg": "HS256"}),
    "a_signed_token_by_a_short_secret": _signed(key="short", header={"alg": "HS256"}),
    "a_signed_token_by_a_small_key": _signed(key="small"),
    "a_signed_token_by_a_key_for_encryption": _signed(key="encryption"),
    "a_signed_token_by_an_unknown_key": _signed(header={"kid": "nobody"}),
    "a_signed_token_by_another_key": _signed(key="other", header={"kid": "rsa"}),
    "a_signed_token_without_the_name_of_its_key": _signed(header={"kid": None}),
    "a_signed_token_by_ec_with_the_name_of_an_rsa_key": _signed(
        key="ec", header={"alg": "ES256", "kid": "rsa"}
    ),
    "a_signed_token_without_an_algorithm": _signed(header={"alg": None}),
    "a_signed_token_by_an_unknown_algorithm": _signed(header={"alg": "XS256"}),
    "a_signed_token_with_a_critical_header": _signed(header={"crit": ["x"], "x": 1}),
    "a_signed_token_of_the_type_at_jwt": _signed(header={"typ": "at+jwt"}),
    "a_signed_token_by_none": _signed(header={"alg": "none"}),
    "a_signed_token_by_none_without_a_signature": lambda: _bearer(
        signed_tokens.token(header={"alg": "none"}).rpartition(".")[0] + "."
    ),
    "a_signed_token_by_hs256_and_the_public_key": _forged(signed_tokens.public_pem),
    "a_signed_token_by_hs256_and_no_key": _forged(lambda: b""),
    "a_signed_token_whose_claims_were_changed": lambda: _bearer(
        ".".join(
            part if place != 1 else signed_tokens.token({"sub": "bob"}).split(".")[1]
            for place, part in enumerate(signed_tokens.token().split("."))
        )
    ),
    "a_signed_token_of_two_parts": _cut(""),
    "a_signed_token_with_an_empty_signature": _cut("."),
    "a_signed_token_of_four_parts": _cut(".YQ.YQ"),
    "a_signed_token_that_is_no_json": _signed(payload=b"hello"),
    "a_signed_token_that_is_a_list": _signed(payload=b"[]"),
    "a_signed_token_with_a_claim_twice": _signed(
        payload=json.dumps({**signed_tokens.CLAIMS}).encode()[:-1] + b',"sub":"bob"}'
    ),
    "a_signed_token_that_has_expired": _seconds_ago(exp=60),
    "a_signed_token_that_has_expired_a_moment_ago": _seconds_ago(exp=10),
    "a_signed_token_for_tomorrow": _seconds_ago(nbf=-86_400),
    "a_signed_token_for_in_a_moment": _seconds_ago(nbf=-10),
    "a_signed_token_of_tomorrow": _seconds_ago(iat=-86_400),
    "a_signed_token_that_ends_before_it_begins": _signed({"iat": FAR_S + 1}),
    "a_signed_token_that_ends_before_it_is_valid": _signed({"nbf": FAR_S + 1}),
    "a_signed_token_without_an_end": _signed({"exp": None}),
    "a_signed_token_with_an_end_that_is_text": _signed({"exp": str(FAR_S)}),
    "a_signed_token_with_an_end_that_is_a_fraction": _signed({"exp": FAR_S + 0.5}),
    "a_signed_token_with_an_end_below_zero": _signed({"exp": -1, "iat": -2}),
    "a_signed_token_without_a_beginning": _signed({"iat": None}),
    "a_signed_token_with_a_beginning_below_zero": _signed({"iat": -1}),
    "a_signed_token_with_a_number_as_identifier": _signed({"jti": 5}),
    "a_signed_token_without_an_audience": _signed({"aud": None}),
    "a_signed_token_for_another_audience": _signed({"aud": "another"}),
    "a_signed_token_for_several_audiences": _signed({"aud": ["another", AUDIENCE]}),
    "a_signed_token_for_a_number_as_audience": _signed({"aud": 5}),
    "a_signed_token_for_numbers_as_audience": _signed({"aud": [5, AUDIENCE]}),
    "a_signed_token_of_another_issuer": _signed({"iss": ISSUER + "/"}),
    "a_signed_token_without_an_issuer": _signed({"iss": None}),
    "a_signed_token_with_a_number_as_issuer": _signed({"iss": 5}),
    "a_signed_token_without_a_name": _signed({"sub": None}),
    "a_signed_token_with_a_blank_name": _signed({"sub": " \t"}),
    "a_signed_token_with_blanks_around_its_name": _signed({"sub": " alice "}),
    "a_signed_token_with_a_number_as_name": _signed({"sub": 5}),
    "a_signed_token_without_scope": _signed({"scope": None}),
    "a_signed_token_with_scope_as_text": _signed({"scope": "read write"}),
    "a_signed_token_with_a_blank_scope": _signed({"scope": " "}),
    "a_signed_token_with_a_scope_twice": _signed({"scope": ["read", " read "]}),
    "a_signed_token_with_no_scope_in_the_list": _signed({"scope": []}),
    "a_signed_token_with_nothing_as_a_scope": _signed({"scope": [None]}),
    "a_signed_token_with_a_number_as_scope": _signed({"scope": 5}),
    "a_signed_token_with_numbers_as_scope": _signed({"scope": [5]}),
    "a_signed_token_and_its_name": lambda: _bearer(signed_tokens.token(), authorization="a=alice"),
    "a_signed_token_and_another_name": lambda: _bearer(
        signed_tokens.token(), authorization="a=bob"
    ),
    "a_signed_token_with_extensions": lambda: _bearer(
        signed_tokens.token(), auth="host=h\x01auth=bearer  "
    ),
    "an_unsecured_token_where_signed_ones_are_wanted": lambda: _bearer(_token()),
}.items():
    _add(_name, _maker, SIGNED)
