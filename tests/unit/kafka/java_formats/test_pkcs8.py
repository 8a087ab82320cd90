"""Keys of every form become what Java's clients read; wrong passwords are one sentence."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.pkcs8 import plain_pkcs8
from tests.support.certificates import client_certificate, pem_for_java
from tests.support.signed_tokens import rsa_key

PASSWORD = "p ä\\"
PLAIN = rsa_key("rsa").private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
@pytest.mark.parametrize("password", [None, PASSWORD])
def test_a_key_of_another_form_becomes_plain(form: PrivateFormat, password: str | None) -> None:
    lock = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
    pem = rsa_key("rsa").private_bytes(Encoding.PEM, form, lock).decode()
    assert plain_pkcs8(pem, password, "ssl.key") == PLAIN


def test_a_key_that_java_reads_stays_with_all_that_stands_beside_it() -> None:
    pem = pem_for_java(client_certificate())
    assert plain_pkcs8(pem, "unused", "ssl.key") is pem
    assert load_pem_private_key(pem.encode(), None)


@pytest.mark.parametrize("password", [None, "guess"])
def test_a_wrong_password_is_one_sentence_without_it(password: str | None) -> None:
    lock = BestAvailableEncryption(PASSWORD.encode())
    pem = rsa_key("rsa").private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock).decode()
    with pytest.raises(ConfigError, match=r"^ssl\.key: .*check the password") as caught:
        plain_pkcs8(pem, password, "ssl.key")
    assert "guess" not in str(caught.value)
