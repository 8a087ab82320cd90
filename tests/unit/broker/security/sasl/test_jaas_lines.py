"""JAAS lines of listeners: a setting before the file, the listener's section before the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.listeners import Listener, SecurityProtocol
from minibroker.broker.config.settings import ConfigValues
from minibroker.broker.security.sasl.jaas_lines import FILE_BYTES_MAX, find_line, line_of
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

CLIENTS = Listener("CLIENTS", "", 1, SecurityProtocol.SASL_PLAINTEXT)
OTHER = Listener("OTHER", "", 2, SecurityProtocol.SASL_PLAINTEXT)
KEY = "listener.name.clients.plain.sasl.jaas.config"
FILE = """
// As in Kafka's documentation.
KafkaServer {
    org.apache.kafka.common.security.scram.ScramLoginModule required
        username="admin"
        password="admin-secret";
    org.apache.kafka.common.security.plain.PlainLoginModule required
        user_alice="of all listeners";
};
clients.KafkaServer {
    org.apache.kafka.common.security.plain.PlainLoginModule required
        user_alice="of the listener";
};
KafkaClient {
    org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="x";
};
"""


@pytest.fixture
def config(tmp_path: Path) -> ConfigValues:
    """Settings with the file."""
    path = tmp_path / "jaas.conf"
    path.write_text(FILE)
    return ConfigValues({"java.security.auth.login.config": str(path)})


def password(config: ConfigValues, listener: Listener) -> str:
    return line_of(config, listener, "PLAIN").options["user_alice"]


def test_the_section_of_the_listener_comes_first(config: ConfigValues) -> None:
    assert password(config, CLIENTS) == "of the listener"
    assert password(config, OTHER) == "of all listeners"


def test_a_setting_stands_over_the_file(config: ConfigValues) -> None:
    config.originals[KEY] = 'a.B required user_alice="of the setting";'
    assert password(config, CLIENTS) == "of the setting"
    assert password(config, OTHER) == "of all listeners"


def test_the_login_module_tells_mechanisms_apart(config: ConfigValues) -> None:
    line = find_line(config, OTHER, "SCRAM-SHA-512")
    assert line is not None
    assert line.options["username"] == "admin"
    assert find_line(config, CLIENTS, "SCRAM-SHA-512") is None, "as in Kafka: one section counts"
    assert find_line(config, OTHER, "GSSAPI") is None


def test_a_missing_line_is_named_with_the_file(config: ConfigValues) -> None:
    file = config.text("java.security.auth.login.config")
    with pytest.raises(ConfigError) as missing:
        line_of(config, CLIENTS, "GSSAPI")
    assert "Krb5LoginModule required useKeyTab=true" in str(missing.value)
    assert str(missing.value).endswith(f"or write the line to section KafkaServer of {file}")


def test_the_file_may_be_named_as_java_takes_it(config: ConfigValues) -> None:
    path = config.text("java.security.auth.login.config")
    for name in (f"={path}", f"file:{path}", f"file:{path}".replace("jaas", "%6aaas")):
        config.originals["java.security.auth.login.config"] = name
        assert password(config, CLIENTS) == "of the listener"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"KafkaServer { a.B required }", "is missing"),
        (b"KafkaServer { };", "comes twice, or has no login module"),
        (b"A { a.B required; }; A { a.B required; };", "context A comes twice"),
        (b"\xff", "utf-8"),
        (b" " * (FILE_BYTES_MAX + 1), "larger than"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, text: bytes, sentence: str) -> None:
    path = tmp_path / "jaas.conf"
    path.write_bytes(text)
    config = ConfigValues({"java.security.auth.login.config": str(path)})
    with pytest.raises(ConfigError, match=sentence) as wrong:
        find_line(config, CLIENTS, "PLAIN")
    assert str(path) in str(wrong.value)


def test_a_file_that_is_not_there_is_named() -> None:
    config = ConfigValues({"java.security.auth.login.config": "/nowhere/jaas.conf"})
    with pytest.raises(ConfigError, match=r"/nowhere/jaas\.conf"):
        find_line(config, CLIENTS, "PLAIN")
