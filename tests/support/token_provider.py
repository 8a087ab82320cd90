"""An identity provider on 127.0.0.1 that gives tokens to clients with a secret (RFC 6749, 4.4), or
with assertions that they sign (RFC 7523).
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self
from urllib.parse import parse_qsl

import jwt

from tests.support.certificates import broker_certificate
from tests.support.signed_tokens import token

if TYPE_CHECKING:
    from collections.abc import Mapping

CLIENT: Final = ("the-broker", "its secret: ä")


class TokenRequest(NamedTuple):
    """A request as it came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: str

    @property
    def client(self) -> str:
        """Return ID:SECRET."""
        scheme, _, value = self.headers["authorization"].partition(" ")
        assert scheme == "Basic"
        return base64.b64decode(value, validate=True).decode()

    @property
    def fields(self) -> dict[str, str]:
        """Return the fields of the form, in their order."""
        return dict(parse_qsl(self.body))


class TokenProvider:
    """The server. A test may choose its answers."""

    def __init__(self, *, lifetime_s: float = 3600, is_tls: bool = False) -> None:
        self.lifetime_s = lifetime_s
        self.statuses: list[int] = []
        """Those of the next answers; then 200."""
        self.answer: bytes | None = None
        """An answer in place of a token."""
        self.requests: list[TokenRequest] = []
        self.public_key: Any = None
        """That of a client with assertions; None: the client has a secret."""
        self.tokens: list[str] = []
        """The tokens, the newest last."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        if is_tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            broker_certificate().configure_cert(context)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        scheme = "https" if is_tls else "http"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}/token?tenant=1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                body = self.rfile.read(int(headers.get("content-length", "0"))).decode()
                request = TokenRequest("POST", self.path, headers, body)
                provider.requests.append(request)
                status, data = provider.respond(request)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        return Handler

    def respond(self, request: TokenRequest) -> tuple[int, bytes]:
        """Return status and body of an answer."""
        status = self.statuses.pop(0) if self.statuses else 200
        if self.answer is not None:
            return status, self.answer
        if not self._knows(request):
            status = 401
        if status != 200:
            error = {"error": "invalid_client", "error_description": "unknown"}
            return status, json.dumps(error).encode()
        now_s = time.time()
        new_token = token({"sub": CLIENT[0], "iat": now_s, "exp": now_s + self.lifetime_s})
        self.tokens.append(new_token)
        return status, json.dumps({"access_token": new_token, "token_type": "Bearer"}).encode()

    def _knows(self, request: TokenRequest) -> bool:
        if self.public_key is None:
            return request.client == ":".join(CLIENT)
        fields = request.fields
        assertion = fields.get("client_assertion") or fields.get("assertion", "")
        try:
            claims = jwt.decode(
                assertion, self.public_key, algorithms=["RS256", "ES256"], audience=self.url
            )
        except jwt.PyJWTError:
            return False
        return claims["sub"] == CLIENT[0] and "authorization" not in request.headers

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
