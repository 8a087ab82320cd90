"""Files that variables of Kafka's images name become settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.container.secrets import put_secrets
from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path


def test_stores_and_passwords(tmp_path: Path) -> None:
    for name, content in (("k.p12", "x"), ("t.p12", "x"), ("one", "secret\n"), ("two", " b ")):
        (tmp_path / name).write_text(content)
    variables = {
        "KAFKA_SSL_KEYSTORE_FILENAME": "k.p12",
        "KAFKA_SSL_KEYSTORE_CREDENTIALS": "one",
        "KAFKA_SSL_KEY_CREDENTIALS": "two",
        "KAFKA_SSL_TRUSTSTORE_FILENAME": "t.p12",
        "KAFKA_SSL_TRUSTSTORE_CREDENTIALS": "one",
        "KAFKA_NUM_PARTITIONS": "3",
    }
    put_secrets(variables, str(tmp_path))
    assert variables == {
        "KAFKA_SSL_KEYSTORE_LOCATION": f"{tmp_path}/k.p12",
        "KAFKA_SSL_KEYSTORE_PASSWORD": "secret",
        "KAFKA_SSL_KEY_PASSWORD": " b ",
        "KAFKA_SSL_TRUSTSTORE_LOCATION": f"{tmp_path}/t.p12",
        "KAFKA_SSL_TRUSTSTORE_PASSWORD": "secret",
        "KAFKA_NUM_PARTITIONS": "3",
    }


def test_files_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 5000)
    for variable, name, sentence in (
        ("KAFKA_SSL_KEYSTORE_FILENAME", "no", f"no: there is no file {tmp_path}/no; mount"),
        ("KAFKA_SSL_KEY_CREDENTIALS", "large", "has more than 4096 bytes, expected a password"),
    ):
        with pytest.raises(ConfigError, match=f"{variable}={name}") as raised:
            put_secrets({variable: name}, str(tmp_path))
        assert sentence in str(raised.value)
