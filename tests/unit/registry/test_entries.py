"""Records of `_schemas`: the bytes that Confluent's registry writes, and hostile ones."""

from __future__ import annotations

import json

import pytest

from minibroker.registry.entries import (
    ClearedSubject,
    ContextEntry,
    DeletedSubject,
    Entry,
    ErasedVersion,
    HighestId,
    ModeEntry,
    Reference,
    SchemaText,
    SettingsEntry,
    UnreadableError,
    VersionEntry,
    decode,
    encode,
)

PROTO = SchemaText(
    "PROTOBUF",
    'syntax = "proto3";',
    (Reference("other.proto", "other", 2),),
    '{"properties":{"owner":"us"}}',
    '{"domainRules":[{"name":"r"}]}',
)
ENTRIES: list[Entry] = [
    VersionEntry("orders-value", 3, 17, SchemaText("AVRO", '"int"')),
    VersionEntry(":.staging:ü", 1, 1, PROTO, is_deleted=True),
    ErasedVersion("orders-value", 3),
    DeletedSubject("orders-value", 3),
    ClearedSubject("orders-value"),
    SettingsEntry(None, {"compatibilityLevel": "FULL"}),
    SettingsEntry("orders-value", {"compatibilityLevel": "NONE", "normalize": True, "alias": "o"}),
    SettingsEntry("orders-value", None),
    ModeEntry(None, "IMPORT"),
    ModeEntry(":.staging:", None),
    ContextEntry(".staging"),
    HighestId(".staging", 17),
]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: type(entry).__name__)
def test_entry_is_read_as_it_was_written(entry: Entry) -> None:
    assert decode(*encode(entry)) == entry


def test_keys_have_the_bytes_of_confluents_registry() -> None:
    assert [encode(entry)[0].decode() for entry in ENTRIES[2:7:2] + ENTRIES[8:]] == [
        '{"keytype":"SCHEMA","subject":"orders-value","version":3,"magic":1}',
        '{"keytype":"CLEAR_SUBJECT","subject":"orders-value","magic":0}',
        '{"keytype":"CONFIG","subject":"orders-value","magic":0}',
        '{"keytype":"MODE","subject":null,"magic":0}',
        '{"keytype":"MODE","subject":":.staging:","magic":0}',
        '{"keytype":"CONTEXT","tenant":"default","context":".staging","magic":0}',
        '{"keytype":"NOOP","context":".staging","magic":0}',
    ]


def test_value_of_avro_has_no_type() -> None:
    _, value = encode(ENTRIES[0])
    assert value is not None
    assert json.loads(value) == {
        "subject": "orders-value",
        "version": 3,
        "id": 17,
        "schema": '"int"',
        "deleted": False,
    }


def test_fields_of_newer_registries_are_read_over() -> None:
    key = b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}'
    value = (
        b'{"subject":"a","version":1,"id":4,"guid":"x","ts":1,"schema":"\\"int\\"","deleted":false,'
        b'"schemaTags":null,"references":[]}'
    )
    assert decode(key, value) == VersionEntry("a", 1, 4, SchemaText("AVRO", '"int"'))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'{"keytype":"NOOP","magic":0}', None),
        (b'{"keytype":"SOMETHING_NEWER","magic":0}', b"{}"),
        (b'{"keytype":"DELETE_SUBJECT","subject":"a","magic":0}', None),
    ],
)
def test_record_without_a_meaning_is_no_entry(key: bytes, value: bytes | None) -> None:
    assert decode(key, value) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"{}"),
        (b"\xff", None),
        (b"[]", None),
        (b'{"keytype":1}', None),
        (b'{"keytype":"SCHEMA","version":1,"magic":1}', None),
        (b'{"keytype":"SCHEMA","subject":"a","version":0,"magic":1}', None),
        (b'{"keytype":"SCHEMA","subject":"a","version":99999999999,"magic":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"a","version":1,"magic":1}', b"{}"),
        (b'{"keytype":"SCHEMA","subject":"a","version":1}', b'{"id":-4,"schema":"x"}'),
        (b'{"keytype":"SCHEMA","subject":"a","version":1}', b'{"id":"4","schema":"x"}'),
        (b'{"keytype":"CONFIG","subject":"a"}', b"[" * 5000),
        (b'{"keytype":"MODE","subject":"a"}', b'{"mode":[]}'),
    ],
)
def test_foreign_record_is_unreadable(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(UnreadableError):
        decode(key, value)


def test_configuration_keeps_fields_of_known_types_alone() -> None:
    value = b'{"compatibilityLevel":"FULL","normalize":"yes","other":1}'
    entry = decode(b'{"keytype":"CONFIG","subject":null,"magic":0}', value)
    assert entry == SettingsEntry(None, {"compatibilityLevel": "FULL"})
