"""The exchange of one SASL mechanism with one client: tokens in, tokens out, then a name.

Pure: `authenticator` gives it the client's tokens and the time. An exchange that has ended, either
way, gets no more tokens.

Source: Kafka SaslServer (javax.security.sasl) as SaslServerAuthenticator uses it.
"""

from __future__ import annotations

from typing import Protocol


class SaslExchange(Protocol):
    """One attempt of one client. The loop owns it."""

    is_complete: bool
    """True once the client has proved its identity."""
    name: str
    """The name of the client's principal, without its type; valid once it is complete."""
    expires_ms: int | None
    """Wall clock at which the credential ends; None: it has no end."""
    is_token: bool
    """True where a delegation token was the credential."""

    @property
    def may_block(self) -> bool:
        """Return whether `respond` has to run beside the loop. Constant."""

    def respond(self, token: bytes, now_ms: int) -> bytes | None:
        """Return the answer to a token of the client; None: there is none, and clients without
        SaslAuthenticate get no frame. Raises RefusedError, CredentialsError, and ProtocolError for
        a token that no client sends.

        `now_ms`: the wall clock.
        """


class RefusedError(Exception):
    """An attempt that failed. The client is told the text, so it holds no secret."""

    def __init__(self, text: str, reason: str = "") -> None:
        """`reason`: the text for the log, without anything secret; "": the same."""
        super().__init__(text)
        self.reason = reason or text


class CredentialsError(Exception):
    """An attempt that failed. The client is told that its credentials are wrong, and nothing else.

    The text is for the log, without anything secret.
    """

    @property
    def reason(self) -> str:
        """Return the text for the log."""
        return str(self)


class NamelessError(CredentialsError):
    """A proof that holds, for a client that gets no principal. Its answer is that of a success, as
    in Kafka, and the connection ends.
    """
