"""Every way for a client to prove who it is, and the clients of all languages that try each.

`WAYS` names them: a certificate with each version of TLS, each mechanism of SASL with and without
TLS, and the same with a wrong password, a token without its scope, no certificate, or no
permission. A client is one process for all of them: SecuredClient.java, secured_python.py,
node/secured_client.js, go/secured. It produces a record and reads it in a group.

The same broker settings serve minibroker and Apache Kafka (`golden/record_secured_clients.py`).
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.support import groups, java, signed_tokens
from tests.support.build_files import BUILD, required
from tests.support.certificates import (
    authority_pem,
    broker_certificate,
    client_certificate,
    java_store,
)
from tests.support.groups import NODE_MODULES, missing_go
from tests.support.signed_tokens import AUDIENCE, ISSUER, write_jwks

if TYPE_CHECKING:
    from collections.abc import Mapping

SUPPORT: Final = Path(__file__).parent
GO_CLIENT: Final = BUILD / "secured-client"
SECONDS: Final = 240

ADMIN: Final = "PLAINTEXT"
"""The listener on which everybody is a super user."""
PROTOCOLS: Final = {
    ADMIN: "PLAINTEXT",
    "TLS12": "SSL",
    "TLS13": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASLTLS": "SASL_SSL",
    "SIGNED": "SASL_PLAINTEXT",
    "SIGNEDTLS": "SASL_SSL",
}
"""Listener → security protocol."""
SIGNED: Final = ("SIGNED", "SIGNEDTLS")
"""The listeners that believe signed tokens, and no others."""
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
CERTIFIED, ALICE, BEARER = "certified", "alice", "bearer"
"""The users: by certificate, by password, by token. Each may use topics and groups of its name."""
ADMINISTRATOR: Final = "admin"
"""A super user, who logs in by PLAIN."""
ADMIN_PASSWORD: Final = "admin-secret"
PASSWORD: Final = "alice's, =secret"
SCOPE: Final = "produce"

_SECURITY: Final = "org.apache.kafka.common.security"
_OAUTH: Final = "oauthbearer.OAuthBearer"
_JAAS: Final = {
    "plain": (
        f'{_SECURITY}.plain.PlainLoginModule required user_{ALICE}="{PASSWORD}"'
        f' user_{ADMINISTRATOR}="{ADMIN_PASSWORD}";'
    ),
    "scram-sha-256": f"{_SECURITY}.scram.ScramLoginModule required;",
    "scram-sha-512": f"{_SECURITY}.scram.ScramLoginModule required;",
    "oauthbearer": (
        f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule required"
        f' unsecuredLoginStringClaim_sub="broker" unsecuredValidatorRequiredScope="{SCOPE}";'
    ),
}


class Way(NamedTuple):
    """A listener, what the client shows there, and whether that is right."""

    listener: str
    mechanism: str | None
    user: str
    fault: str | None = None

    @property
    def name(self) -> str:
        """Return a name for the table."""
        return " ".join(filter(None, (self.listener, self.mechanism, self.fault)))


def _ways() -> dict[str, Way]:
    tls = [Way(name, None, CERTIFIED) for name in ("TLS12", "TLS13")]
    sasl = [
        Way(listener, mechanism, BEARER if mechanism == "OAUTHBEARER" else ALICE)
        for listener in ("SASL", "SASLTLS")
        for mechanism in MECHANISMS
    ]
    sasl += [Way(listener, "OAUTHBEARER", BEARER) for listener in SIGNED]
    ways = [
        *tls,
        *sasl,
        *(way._replace(fault="without certificate") for way in tls),
        *(way._replace(fault="with a wrong secret") for way in sasl),
        Way("SASLTLS", "PLAIN", ALICE, "without permission"),
    ]
    return {way.name: way for way in ways}


WAYS: Final = _ways()


class Stores:
    """The files with the certificates of broker and client."""

    def __init__(self, directory: Path) -> None:
        self.broker = directory / "broker.pem"
        self.client = directory / "client.pem"
        self.ca = directory / "ca.pem"
        self.broker.write_text(java_store(broker_certificate()))
        self.client.write_text(java_store(client_certificate(CERTIFIED)))
        self.ca.write_text(authority_pem())
        self._directory = directory
        self.jwks_url = write_jwks(directory).replace("file:///", "file:/")
        """The keys of signed tokens."""

    def token_url(self, way: Way, token: str) -> str:
        """Write the token of a way to a file; return its URL."""
        file = self._directory / f"{topic_of('', way)}.token"  # Kafka reads no %20
        file.write_text(token)
        return file.as_uri().replace("file:///", "file:/")


def broker_settings(stores: Stores) -> dict[str, str]:
    """Return the settings of a broker besides its listeners and its authorizer."""
    protocols = {"CONTROLLER": "PLAINTEXT", **PROTOCOLS}
    return {
        "listener.security.protocol.map": ",".join(f"{k}:{v}" for k, v in protocols.items()),
        "super.users": f"User:ANONYMOUS;User:{ADMINISTRATOR}",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(stores.broker),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(stores.ca),
        "listener.name.tls12.ssl.client.auth": "required",
        "listener.name.tls13.ssl.client.auth": "required",
        "listener.name.tls12.ssl.enabled.protocols": "TLSv1.2",
        "listener.name.tls13.ssl.enabled.protocols": "TLSv1.3",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+),.*$/$1/,DEFAULT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        **{
            f"listener.name.{listener}.{mechanism}.sasl.jaas.config": line
            for listener in ("sasl", "sasltls")
            for mechanism, line in _JAAS.items()
        },
        **{
            f"listener.name.{listener.lower()}.{key}": value
            for listener in SIGNED
            for key, value in (
                ("sasl.enabled.mechanisms", "OAUTHBEARER"),
                ("oauthbearer.sasl.jaas.config", f"{_SECURITY}.{_OAUTH}LoginModule required;"),
                (
                    "oauthbearer.sasl.server.callback.handler.class",
                    f"{_SECURITY}.{_OAUTH}ValidatorCallbackHandler",
                ),
                ("oauthbearer.sasl.oauthbearer.jwks.endpoint.url", stores.jwks_url),
                ("oauthbearer.sasl.oauthbearer.expected.audience", AUDIENCE),
                ("oauthbearer.sasl.oauthbearer.expected.issuer", ISSUER),
            )
        },
    }


def prepare(address: str, clients: list[str]) -> None:
    """Make the topics of these clients, the credentials of alice, and the permissions.

    `address`: of the listener ADMIN.
    """
    admin = AdminClient({"bootstrap.servers": address})
    acls = [
        AclBinding(
            kind, f"{user}-", ResourcePatternType.PREFIXED, f"User:{user}", "*",
            AclOperation.ALL, AclPermissionType.ALLOW,
        )
        for user in (CERTIFIED, ALICE, BEARER)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP)
    ]  # fmt: skip
    # Kafka 4 changes a user once in a request.
    credentials = [
        UserScramCredentialUpsertion(ALICE, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
        for mechanism in (ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512)
    ]
    topics = [NewTopic(topic_of(client, way), 1, 1) for client in clients for way in WAYS.values()]
    creations = [
        *admin.create_acls(acls).values(),
        *(
            future
            for credential in credentials
            for future in admin.alter_user_scram_credentials([credential]).values()
        ),
        *admin.create_topics(topics).values(),
    ]
    for future in creations:
        future.result(SECONDS)


def topic_of(client: str, way: Way) -> str:
    """Return the topic, and the group, of a client's way."""
    owner = BEARER if way.fault == "without permission" else way.user
    return re.sub(r"[^\w.-]+", "-", f"{owner}-{client}-{way.name}")


def case_of(client: str, way: Way, addresses: Mapping[str, str], stores: Stores) -> dict[str, Any]:
    """Return what the process of a client is told; `addresses`: listener → address."""
    is_wrong = way.fault == "with a wrong secret"
    case: dict[str, Any] = {
        "name": way.name,
        "address": addresses[way.listener],
        "protocol": PROTOCOLS[way.listener],
        "topic": topic_of(client, way),
        "user": way.user,
    }
    if "SSL" in case["protocol"].split("_"):
        case["ca"] = str(stores.ca)
    if way.mechanism is None:
        if way.fault is None:
            case["certificate"] = str(stores.client)
        return case
    case["mechanism"] = way.mechanism
    if way.listener in SIGNED:
        case["token"] = signed_tokens.token(
            {"sub": way.user, "aud": "another cluster" if is_wrong else AUDIENCE}
        )
        case["token_url"] = stores.token_url(way, case["token"])
    elif way.mechanism == "OAUTHBEARER":
        case["scope"] = "consume" if is_wrong else SCOPE
        case["token"] = _token(way.user, case["scope"])
    else:
        case["password"] = "wrong" if is_wrong else PASSWORD
    return case


def _token(user: str, scope: str) -> str:
    """Return an unsecured token for an hour."""
    now = int(time.time())
    parts = ({"alg": "none"}, {"sub": user, "scope": scope, "iat": now, "exp": now + 3600})
    words = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode() for part in parts]
    return "".join(word.rstrip("=") + "." for word in words)


def _java(jars: Path) -> list[str]:
    classes = java.compiled("SecuredClient")
    options = ("-Dlog4j2.disable=true", "-Dlog4j.rootLogger=OFF", java.log_option("tools"))
    return java.java_command(jars, "SecuredClient", options=options, classes=classes)


def _python(library: str) -> list[str]:
    return [sys.executable, str(SUPPORT / "secured_python.py"), library]


def _node() -> list[str]:
    required(NODE_MODULES.parent / ".done")
    modules = f"NODE_PATH={NODE_MODULES}"
    return ["env", modules, "node", str(SUPPORT / "node" / "secured_client.js")]


def _go(library: str) -> list[str]:
    return [str(required(GO_CLIENT)), library]


CLIENTS: Final = {
    "java-3.9.1": lambda: _java(java.KAFKA_39),
    "java-4.4.0": lambda: _java(java.KAFKA_44),
    "confluent-kafka": lambda: _python("confluent-kafka"),
    "aiokafka": lambda: _python("aiokafka"),
    "kafka-python": lambda: _python("kafka-python"),
    "kafkajs": _node,
    "sarama": lambda: _go("sarama"),
    "franz-go": lambda: _go("franz-go"),
}
"""Client → the function that returns its command."""


def missing_client(client: str) -> str | None:
    """Return why a client cannot run here, naming the package to install, or None."""
    if client in ("sarama", "franz-go"):
        return missing_go(GO_CLIENT)
    return groups.missing_client(client)


def outcomes(
    client: str, addresses: Mapping[str, str], stores: Stores
) -> dict[str, dict[str, str]]:
    """Return way → what the client read, or its error, where all ways are tried at once."""
    return outcomes_of(client, [case_of(client, way, addresses, stores) for way in WAYS.values()])


def outcomes_of(client: str, cases: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Return name → what the client read, or its error, where it tries these cases at once."""
    done = subprocess.run(
        CLIENTS[client](),
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{client} ended with {done.returncode}:\n{done.stderr[-4000:]}"
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return {
        line["name"]: {kind: masked(text) for kind, text in line["outcome"].items()}
        for line in lines
    }


_MASKS: Final = (
    (r"(127\.0\.0\.1|localhost):\d+", "ADDRESS"),
    (r" \(after \d+ms in state \w+(, \d+ identical error\(s\) suppressed)?\)", ""),
    (r" \(backoff [\d.]+ secs\)", ""),
    # kafka-python sees the answer first, or the end of the connection that follows it.
    (
        r"\[Error 58\] SaslAuthenticationFailedError: .*",
        "KafkaConnectionError: socket disconnected",
    ),
    # How a client words that the broker ended the handshake depends on the moment.
    (r"code=_(SSL,val=-181|TRANSPORT,val=-195),", ""),
    (r"(SSL handshake failed|Handshake failed|Receive failed): ", ""),
    # OpenSSL and Java have different alerts for a missing certificate.
    (r"alert (bad certificate|certificate required|handshake failure)", "ALERT"),
    (r"tls: (bad certificate|certificate required|handshake failure)", "tls: ALERT"),
    (
        r"SSL: (TLSV13|SSLV3)_ALERT_(BAD_CERTIFICATE|CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE)",
        "ALERT",
    ),
    (r"(ssl/tls|tlsv13|sslv3) (?i:alert)", "alert"),
    (r"(\w{16}:)?error:0A000[0-9A-F]{3}:", "error:"),
    (r"SSL alert number \d+ ?", ""),
    (r" \(_ssl\.c:\d+\)", ""),
    (r"\.\./deps[\w/.]+:\d+:", ""),
)


def masked(text: str) -> str:
    """Return an error without its ports and times."""
    for pattern, mask in _MASKS:
        text = re.sub(pattern, mask, text)
    return text
