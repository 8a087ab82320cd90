"""The names in an X.509 certificate: its subject as Java writes it, its alternative names.

Kafka's principal of a TLS client is `X500Principal.getName()`: RFC 2253, the most specific name
first. A type that RFC 2253 does not name is its number and the value's DER in hexadecimal.

    certificate ─► subject, in the order of the certificate: C=DE, O=Acme, CN=alice + OU=x
                └► name: CN=alice+OU=x,O=Acme,C=DE

Source: java.security (sun.security.x509 X500Name, RDN, AVA), RFC 2253, RFC 5280.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.kafka.java_formats.der import DerValue, read_oid, read_values

if TYPE_CHECKING:
    from collections.abc import Iterable

_KEYWORDS: Final = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_STRING_TAGS: Final = frozenset({0x0C, 0x13, 0x14, 0x16, 0x1B, 0x1C, 0x1E})
"""UTF8, Printable, T61, IA5, General, Universal and BMP string. Java reads all of them as UTF-8. A
value of another type is written as DER.
"""
_ESCAPED_LETTERS: Final = frozenset(',=+<>#;"\\')
_VERSION_TAG: Final = 0xA0
_EXTENSIONS_TAG: Final = 0xA3
_ALTERNATIVE_NAMES: Final = "2.5.29.17"


def subject_name(certificate: bytes) -> str:
    """Return the subject of a certificate (DER) as Java's X500Principal.getName() writes it.

    Raises ValueError if the bytes are no certificate.
    """
    return format_name(_fields(certificate)[4].content)


def alternative_names(certificate: bytes) -> frozenset[bytes]:
    """Return the subject's alternative names of a certificate (DER), each as DER."""
    for field in _fields(certificate)[6:]:
        if field.tag == _EXTENSIONS_TAG:
            for extension in read_values(_only(field.content).content):
                oid, *_, value = read_values(extension.content)
                if read_oid(oid.content) == _ALTERNATIVE_NAMES:
                    names = read_values(_only(value.content).content)
                    return frozenset(name.encoded for name in names)
    return frozenset()


def format_name(relative_names: bytes) -> str:
    """Return a distinguished name as text; `relative_names` is the content of its DER sequence."""
    parts = [
        "+".join(map(_format_attribute, read_values(relative.content)))
        for relative in read_values(relative_names)
    ]
    return ",".join(reversed(parts))


def _fields(certificate: bytes) -> list[DerValue]:
    """Return the fields of a certificate: serial number, signature, issuer, validity, subject, key,
    and what follows; a version in front is left out.
    """
    to_be_signed = next(read_values(_only(certificate).content), None)
    fields = list(read_values(to_be_signed.content)) if to_be_signed is not None else []
    if fields and fields[0].tag == _VERSION_TAG:
        del fields[0]
    if len(fields) < 6:
        raise ValueError("these bytes are no certificate")
    return fields


def _only(data: bytes) -> DerValue:
    values = list(read_values(data))
    if len(values) != 1:
        raise ValueError(f"{len(values)} DER values, expected one")
    return values[0]


def _format_attribute(attribute: DerValue) -> str:
    oid_value, value = read_values(attribute.content)
    oid = read_oid(oid_value.content)
    keyword = _KEYWORDS.get(oid)
    if keyword is None or value.tag not in _STRING_TAGS:
        return f"{keyword or oid}=#{value.encoded.hex()}"
    return f"{keyword}={_escape(value.content.decode('utf-8', 'replace'))}"


def _escape(text: str) -> str:
    """Return a value with a backslash before what RFC 2253 reserves, and before outer blanks."""
    leading_count = len(text) - len(text.lstrip(" \r"))
    end = len(text.rstrip(" \r"))
    return "".join(_escape_each(text, leading_count, end))


def _escape_each(text: str, leading_count: int, end: int) -> Iterable[str]:
    for index, char in enumerate(text):
        if char == "\0":
            yield "\\00"
        elif char in _ESCAPED_LETTERS or index < leading_count or index >= end:
            yield "\\" + char
        else:
            yield char
