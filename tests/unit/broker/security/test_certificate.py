"""Names of certificates are those that Java gives: `names.json` has Java's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from minibroker.broker.security.certificate import alternative_names, format_name, subject_name
from minibroker.kafka.java_formats.der import read_values
from tests.support.certificates import (
    STORES,
    broker_certificate,
    certificate_of,
    client_certificate,
)

NAMES: dict[str, Any] = json.loads((STORES / "names.json").read_text())


@pytest.mark.parametrize("case", NAMES)
def test_a_name_is_written_as_java_writes_it(case: str) -> None:
    (name,) = read_values(bytes.fromhex(NAMES[case]["name"]))
    assert format_name(name.content) == NAMES[case]["java"]


def test_the_subject_of_a_certificate() -> None:
    certificate = certificate_of(client_certificate())
    assert subject_name(certificate) == "CN=alice,OU=Users,O=Acme"


def test_bytes_that_are_no_certificate_are_an_error() -> None:
    for data in (b"", b"\x30\x00", b"\x30\x02\x30\x00", b"\x0c\x01a" * 2):
        with pytest.raises(ValueError, match=r"certificate|DER value"):
            subject_name(data)


def test_alternative_names_of_a_certificate() -> None:
    names = alternative_names(certificate_of(broker_certificate()))
    assert names == {b"\x82\x09localhost", b"\x87\x04\x7f\0\0\x01"}
