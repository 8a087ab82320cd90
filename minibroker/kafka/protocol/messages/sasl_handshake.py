# fmt: off
# ruff: noqa: E501
"""SaslHandshake: key 17, versions 0 to 1.

First step of SASL: the client names its mechanism. v0 is followed by raw SASL frames, v1 by SaslAuthenticate.

Versions:
1: The exchange goes on in SaslAuthenticate requests (KIP-152).

Generated from protocol_specs/apis/17_sasl_handshake.json by `python -m protocol_specs.codegen`; do not edit.
"""

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer


class SaslHandshakeRequest(Message):
    """Request of SaslHandshake."""

    __slots__ = ("mechanism",)
    API_KEY = 17
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("mechanism", "string", 0, 1, False),
    )

    def __init__(
        self,
        *,
        mechanism: str = "",
    ) -> None:
        self.mechanism: str = mechanism
        """SASL mechanism wanted, e.g. PLAIN, SCRAM-SHA-256, OAUTHBEARER."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "SaslHandshakeRequest":
        self = cls.__new__(cls)
        self.mechanism = reader.string()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.string(self.mechanism)


class SaslHandshakeResponse(Message):
    """Answer of SaslHandshake."""

    __slots__ = ("error_code", "mechanisms")
    API_KEY = 17
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = None
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 1, False),
        ("mechanisms", "string", 0, 1, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        mechanisms: list[str] | None = None,
    ) -> None:
        self.error_code: int = error_code
        """UNSUPPORTED_SASL_MECHANISM or ILLEGAL_SASL_STATE; 0 = go on."""
        self.mechanisms: list[str] = [] if mechanisms is None else mechanisms
        """Mechanisms this listener offers, also on error."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "SaslHandshakeResponse":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        count = reader.array_count()
        mechanisms: list[str] = []
        for _ in range(count):
            mechanisms.append(reader.string())
        self.mechanisms = mechanisms
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.array_count(len(self.mechanisms))
        for text in self.mechanisms:
            writer.string(text)
