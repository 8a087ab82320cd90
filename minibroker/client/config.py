"""The keys of a client's settings that have a type, a range or a default, as Kafka names them.

Source: Kafka SslConfigs, SaslConfigs.
"""

from __future__ import annotations

from typing import ClassVar, Final

from minibroker.kafka.config_keys import ConfigKey, TypedSettings

_OAUTH: Final = "sasl.oauthbearer."
_ROWS: Final = (
    ("ssl.protocol", "string", "TLSv1.3", ""),
    ("ssl.enabled.protocols", "list", "TLSv1.2,TLSv1.3", ""),
    ("ssl.cipher.suites", "list", "", ""),
    ("ssl.endpoint.identification.algorithm", "string", "https", ""),
    ("ssl.keystore.type", "string", "JKS", ""),
    ("ssl.keystore.password", "password", None, ""),
    ("ssl.key.password", "password", None, ""),
    ("ssl.keystore.key", "password", None, ""),
    ("ssl.keystore.certificate.chain", "password", None, ""),
    ("ssl.truststore.type", "string", "JKS", ""),
    ("ssl.truststore.password", "password", None, ""),
    ("ssl.truststore.certificates", "password", None, ""),
    ("sasl.login.refresh.window.factor", "double", "0.8", ""),
    ("sasl.login.refresh.window.jitter", "double", "0.05", ""),
    ("sasl.login.refresh.min.period.seconds", "short", "60", ""),
    ("sasl.login.refresh.buffer.seconds", "short", "300", ""),
    ("sasl.login.connect.timeout.ms", "int", None, ""),
    ("sasl.login.read.timeout.ms", "int", None, ""),
    ("sasl.login.retry.backoff.max.ms", "long", "10000", ""),
    ("sasl.login.retry.backoff.ms", "long", "100", ""),
    (
        f"{_OAUTH}jwt.retriever.class",
        "class",
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        "",
    ),
    (f"{_OAUTH}assertion.algorithm", "string", "RS256", "~ES256|RS256"),
    (f"{_OAUTH}assertion.claim.exp.seconds", "int", "300", "0..86400"),
    (f"{_OAUTH}assertion.claim.jti.include", "boolean", "false", ""),
    (f"{_OAUTH}assertion.claim.nbf.seconds", "int", "60", "0..3600"),
)


class ClientConfig(TypedSettings):
    """Settings of a client under their names in Java, constant after construction."""

    __slots__ = ()
    KEYS: ClassVar = {
        name: ConfigKey(name, type_, default, allowed) for name, type_, default, allowed in _ROWS
    }
