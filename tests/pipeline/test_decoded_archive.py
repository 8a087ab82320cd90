"""`archive --schema-registry`: values become columns that grow; dead letters; every reader."""

from __future__ import annotations

import hmac
import io
import json
import shlex
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from minibroker.cli.program import run_words
from minibroker.pipeline import PipelineError, archive, replay
from minibroker.pipeline.errors import BadRecordError, JobUsageError
from minibroker.pipeline.values.wire_format import header_of
from minibroker.testing import Broker
from tests.pipeline import topics
from tests.pipeline.committed import records
from tests.pipeline.encoded_values import avro, json_text, protobuf, record
from tests.pipeline.table_readers import TABLES
from tests.support import readme
from tests.support.registry_calls import OpenRegistry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(900)]

FORMATS = ("iceberg", "delta", "parquet")


@pytest.fixture(scope="module")
def registry() -> Iterator[OpenRegistry]:
    with Broker(registry=True) as broker:
        yield OpenRegistry(broker.registry_url).open()


def send(address: str, topic: str, values: Sequence[bytes | None]) -> None:
    """Send values to partition 0, in one batch, with keys."""
    client = topics.producer(address, linger_ms="5000")
    for number, value in enumerate(values):
        client.produce(topic, value, f"key-{number}".encode(), partition=0, headers=[("h", b"1")])
    assert client.flush(topics.SECONDS) == 0


@pytest.fixture
def common(
    spark: SparkSession, registry: OpenRegistry, minibroker_address: str, tmp_path: Path
) -> dict[str, Any]:
    """Return the arguments of every archive of a test."""
    return {
        "to": tmp_path / "archive",
        "bootstrap": minibroker_address,
        "spark": spark,
        "schema_registry": registry.url,
    }


@pytest.mark.parametrize("file_format", FORMATS)
def test_columns_grow_with_the_schemas(
    registry: OpenRegistry, common: dict[str, Any], topic: str, file_format: str
) -> None:
    """Three versions, the last one in a later run; a field comes, one goes; a tombstone."""
    address, directory = common["bootstrap"], common["to"]
    topics.create(address, topic)
    first = record(id="long", country="string", amount="double")
    second = record(id="long", amount="double", note=["null", "string"])
    old = avro(first, registry.register(f"{topic}-value", first))
    send(address, topic, [old({"id": 1, "country": "at", "amount": 1.5}), None])
    assert archive(topic, format=file_format, **common).rows == 2
    new = avro(second, registry.register(f"{topic}-value", second))
    rows = [{"id": 2, "amount": 2, "note": "x"}, {"id": 3, "country": "de", "amount": 3}]
    send(address, topic, [new(rows[0]), old(rows[1])])
    assert archive(topic, format=file_format, **common).rows == 2
    for reader in TABLES[file_format]:
        assert reader(directory, "offset", "value") == [
            (0, {"id": 1, "country": "at", "amount": 1.5, "note": None}),
            (1, None),
            (2, {"id": 2, "country": None, "amount": 2.0, "note": "x"}),
            (3, {"id": 3, "country": "de", "amount": 3.0, "note": None}),
        ], reader
    if file_format == "parquet":
        rows = common["spark"].read.option("mergeSchema", "true").parquet(str(directory))
        assert [row.value and row.value.note for row in rows.sort("offset").collect()] == [
            *(None, None, "x", None)
        ]


def test_a_schema_of_another_subject_and_wider_numbers(
    registry: OpenRegistry, common: dict[str, Any], topic: str
) -> None:
    """The first run meets a schema that no subject of the topic has; the second widens."""
    address = common["bootstrap"]
    topics.create(address, topic)
    narrow, wide = record(id="int", part="float"), record(id="long", part="double")
    old = avro(narrow, registry.register(f"{topic}-elsewhere", narrow))
    send(address, topic, [old({"id": 1, "part": 0.5})])
    archive(topic, format="iceberg", **common)
    new = avro(wide, registry.register(f"{topic}-else", wide))
    send(address, topic, [new({"id": 2**40, "part": 0.1}), old({"id": 3, "part": 0.5})])
    archive(topic, format="iceberg", **common)
    for reader in TABLES["iceberg"]:
        assert reader(common["to"], "offset", "value") == [
            (0, {"id": 1, "part": 0.5}),
            (1, {"id": 2**40, "part": 0.1}),
            (2, {"id": 3, "part": 0.5}),
        ], reader


def meant(kind: str, name: str) -> dict[str, str]:
    return {"type": kind, "connect.name": f"io.debezium.time.{name}"}


def branch(name: str, **fields: Any) -> dict[str, Any]:
    return {**record(**fields), "name": name}


@pytest.mark.parametrize("file_format", FORMATS)
def test_types_of_debezium_unions_and_struct(
    registry: OpenRegistry, common: dict[str, Any], topic: str, file_format: str
) -> None:
    """Avro of two versions, the second one with its id in a header; Protobuf's Struct."""
    address = common["bootstrap"]
    topics.create(address, topic)
    decimal = {"type": "record", "name": "VariableScaleDecimal", "namespace": "io.debezium.data"}
    fields = [{"name": "scale", "type": "int"}, {"name": "value", "type": "bytes"}]
    times = {
        "at": meant("long", "MicroTimestamp"),
        "day": ["null", meant("int", "Date")],
        "price": {**decimal, "fields": fields},
        "paid": ["null", branch("Card", no="string"), branch("Cash", no="string"), "bytes"],
    }
    first, second = record(id="int", **times), record(id="long", **times)
    struct = """
        syntax = "proto3"; import "google/protobuf/struct.proto";
        message Order { google.protobuf.Struct more = 1; }
    """
    ids = [registry.register(f"{topic}-value", schema) for schema in (first, second)]
    of_struct = protobuf(
        struct, "Order", b"\0", registry.register(f"{topic}-x", struct, "PROTOBUF")
    )
    row = {
        "id": 1,
        "at": 1_795_914_123_456_789,
        "day": 20_000,
        "price": {"scale": 3, "value": b"\x30\x39"},
        "paid": ("shop.Cash", {"no": "7"}),
    }
    late = avro(second, ids[1])({**row, "id": 2**40, "day": None, "paid": b"\xff"})
    client = topics.producer(address, linger_ms="5000")
    client.produce(topic, avro(first, ids[0])(row), partition=0)
    headers: list[tuple[str, bytes]] = [("__value_schema_id", late[:5])]
    client.produce(topic, late[5:], partition=0, headers=headers)
    client.produce(topic, of_struct({"more": {"b": [1, None]}}), partition=0)
    assert client.flush(topics.SECONDS) == 0
    assert archive(topic, format=file_format, **common).rows == 3
    at = datetime(2026, 11, 29, 1, 2, 3, 456_789)  # noqa: DTZ001  Debezium's have no zone
    for reader in TABLES[file_format]:
        values = [value for _, value in reader(common["to"], "offset", "value")]
        assert [value["id"] for value in values] == [1, 2**40, None], reader
        assert [value["at"] for value in values] == [at, at, None], reader
        assert [value["day"] for value in values] == [date(2024, 10, 4), None, None], reader
        assert [value["price"] for value in values] == ["12.345", "12.345", None], reader
        assert json.loads(values[0]["paid"]) == {"@type": "shop.Cash", "no": "7"}, reader
        assert json.loads(values[1]["paid"]) == "/w==", reader
        assert values[2]["more"] == '{"b": [1, null]}', reader


def test_json_schema_and_protobuf(
    registry: OpenRegistry, common: dict[str, Any], topic: str
) -> None:
    """Two topics of one archive; the second message of the file; a list of records.

    A run that finds no registry claims nothing: the next one has another format.
    """
    address = common["bootstrap"]
    properties = {
        "id": {"type": "integer"},
        "at": {"type": "object", "properties": {"place": {"type": ["string", "null"]}}},
    }
    schema = {"type": "object", "properties": properties}
    proto = """
        syntax = "proto3";
        message Other { int32 x = 1; }
        message Order { int64 id = 1; repeated Line lines = 2; optional string note = 3;
          message Line { string name = 1; } }
    """
    names = (f"{topic}-json", f"{topic}-proto")
    for name in names:
        topics.create(address, name)
    of_json = json_text(registry.register(f"{names[0]}-value", schema, "JSON"))
    id_ = registry.register(f"{names[1]}-value", proto, "PROTOBUF")
    of_proto = protobuf(proto, "Order", b"\x02\x02", id_)
    send(address, names[0], [of_json({"id": 1, "at": {"place": "x"}, "more": 1})])
    send(address, names[1], [of_proto({"id": 2, "lines": [{"name": "a"}, {"name": "b"}]})])
    with pytest.raises(PipelineError, match=r"registry at .* does not answer"):
        archive(names, format="iceberg", **(common | {"schema_registry": "http://127.0.0.1:1"}))
    archive(names, format="delta", **common)
    with pytest.raises(PipelineError, match="values as columns and not as bytes"):
        replay(common["to"], to_topic=topic, bootstrap=address, spark=common["spark"])
    for reader in TABLES["delta"]:
        first, second = (value for _, value in reader(common["to"], "topic", "value"))
        assert (first["id"], first["at"], first["lines"]) == (1, {"place": "x"}, None)
        assert (second["id"], second["at"], second["note"]) == (2, None, None)
        assert second["lines"] == [{"name": "a"}, {"name": "b"}]


def test_keys_and_bytes(registry: OpenRegistry, common: dict[str, Any], topic: str) -> None:
    """A schema of Avro that is no record; the bytes stay beside the columns."""
    address = common["bootstrap"]
    topics.create(address, topic)
    schema = record(id="long")
    key = avro({"type": "string"}, registry.register(f"{topic}-key", {"type": "string"}))("k")
    value = avro(schema, registry.register(f"{topic}-value", schema))({"id": 1})
    client = topics.producer(address)
    client.produce(topic, value, key)
    assert client.flush(topics.SECONDS) == 0
    archive(topic, format="iceberg", decode_keys=True, keep_bytes=True, **common)
    for reader in TABLES["iceberg"]:
        (row,) = reader(common["to"], "key", "value", "keyBytes", "valueBytes")
        assert row == ("k", {"id": 1}, key, value), reader
    options = {"bootstrap": address, "spark": common["spark"]}
    replay(common["to"], to_topic=f"{topic}-copy", keep_timestamps=True, **options)
    assert records(address, f"{topic}-copy") == records(address, topic)
    with pytest.raises(PipelineError, match="has values as columns: give --schema-registry"):
        archive(topic, format="iceberg", **{**common, "schema_registry": None})


@pytest.mark.parametrize("file_format", ["iceberg", "parquet"])
def test_columns_are_masked(
    registry: OpenRegistry, common: dict[str, Any], topic: str, tmp_path: Path, file_format: str
) -> None:
    """Avro, JSON Schema and Protobuf in one column, keys of Avro, and one value that is none."""
    address, directory = common["bootstrap"], common["to"]
    topics.create(address, topic)
    secret = tmp_path / "secret"
    secret.write_text("sixteen bytes or more")
    schema = record(id="long", email="string", country="string")
    text = {"type": "string"}
    properties = {"id": {"type": "integer"}, "email": text, "country": text}
    proto = """
        syntax = "proto3";
        message Order { int64 id = 1; string email = 2; string country = 3; }
    """
    ids = [
        registry.register(f"{topic}-value", schema),
        registry.register(f"{topic}-json", {"type": "object", "properties": properties}, "JSON"),
        registry.register(f"{topic}-proto", proto, "PROTOBUF"),
    ]
    encoders = [avro(schema, ids[0]), json_text(ids[1]), protobuf(proto, "Order", b"\0", ids[2])]
    key = avro(text, registry.register(f"{topic}-key", text))
    client = topics.producer(address)
    rows = [{"id": row, "email": "ann@a.at", "country": "at"} for row in range(3)]
    for encode, row in zip(encoders, rows, strict=True):
        headers: list[tuple[str, bytes]] = [("user", b"ann@a.at"), ("trace", b"1")]
        client.produce(topic, encode(row), key("ann@a.at"), partition=0, headers=headers)
    client.produce(topic, b"ann@a.at", key("ann@a.at"), partition=0)
    assert client.flush(topics.SECONDS) == 0
    options = common | {
        "format": file_format,
        "decode_keys": True,
        "mask": "email=hash, key=hash, headers.user=drop, eamil?=hash",
        "select": ["id", "email", "eamil?"],
        "mask_secret_file": secret,
    }
    for wrong in ("emial=hash", "headers.usr=hash"):
        with pytest.raises(JobUsageError, match=rf"--mask {wrong}: no record .* \(did you mean"):
            archive(topic, **(options | {"mask": wrong, "to": tmp_path / "misspelt"}))
    # No table claims the directory: an archive of another kind may go there.
    plain = common | {"schema_registry": None, "format": "csv", "to": tmp_path / "misspelt"}
    assert archive(topic, **plain).rows == 4
    with pytest.raises(PipelineError, match=f"record {topic}-0 offset 3 is not written") as failure:
        archive(topic, **options)
    assert "ann@" not in str(failure.value)
    outcome = archive(topic, on_unmaskable="skip", **(options | {"to": tmp_path / "skips"}))
    assert (outcome.rows, outcome.unmaskable_rows) == (3, 1)
    assert outcome.missed == ("eamil?=hash", "eamil?")
    hashed = hmac.digest(b"sixteen bytes or more", b"ann@a.at", "sha256").hex()
    for reader in TABLES[file_format]:
        assert reader(tmp_path / "skips", "offset", "key", "value", "headers") == [
            (
                row,
                hashed,
                {"id": row, "email": hashed, "country": None},
                [{"key": "trace", "value": b"1"}],
            )
            for row in range(3)
        ], reader
    assert not list(directory.rglob("*.parquet"))
    for file in (tmp_path / "skips").rglob("*.parquet"):
        assert "ann@" not in str(pq.read_table(file).to_pylist()), file


def bad_values(registry: OpenRegistry, topic: str) -> tuple[list[bytes], list[str]]:
    """Return values, good ones at offsets 0 and 5, and the reasons for the others."""
    schema, other = record(id="long"), record(id="string")
    id_ = registry.register(f"{topic}-value", schema)
    good = avro(schema, id_)
    conflict = registry.register(f"{topic}-other", other)
    values = [
        good({"id": 1}),
        b"{}",
        b"",
        good({"id": 1})[:5],
        header_of(999_999) + b"x",
        good({"id": 2}),
        avro(other, conflict)({"id": "x"}),
    ]
    reasons = [
        "its value does not begin with the byte 0 and the id of a schema",
        "its value does not begin with the byte 0 and the id of a schema",
        f"its value is no Avro of this schema (EOFError), schema {id_}",
        "its value has schema 999999, but the registry does not have it",
        f"its value has schema {conflict}, but value.id is string there and int64 in the table",
    ]
    return values, reasons


def test_dead_letters_in_a_topic(
    registry: OpenRegistry, common: dict[str, Any], topic: str
) -> None:
    address, dead = common["bootstrap"], f"{topic}-dead"
    for name in (topic, dead):
        topics.create(address, name)
    values, reasons = bad_values(registry, topic)
    send(address, topic, values)
    with pytest.raises(PipelineError, match=r"record pipeline-\d+-0 offset 1 cannot be used"):
        archive(topic, format="delta", **common)
    archive(topic, format="delta", dead_letters=dead, **common)
    for reader in TABLES["delta"]:
        assert reader(common["to"], "offset", "value") == [(0, {"id": 1}), (5, {"id": 2})], reader
    letters = records(address, dead)[0]
    assert [record.value for record in letters] == [values[row] for row in (1, 2, 3, 4, 6)]
    assert [record.key for record in letters] == [f"key-{row}".encode() for row in (1, 2, 3, 4, 6)]
    headers = [dict(record.headers) for record in letters]
    assert [fields["__connect.errors.exception.message"].decode() for fields in headers] == reasons
    assert [fields["__connect.errors.offset"] for fields in headers] == [
        b"1",
        b"2",
        b"3",
        b"4",
        b"6",
    ]
    assert {fields["h"] for fields in headers} == {b"1"}
    assert {fields["__connect.errors.topic"].decode() for fields in headers} == {topic}


def test_dead_letters_in_a_directory(
    registry: OpenRegistry, common: dict[str, Any], topic: str, tmp_path: Path
) -> None:
    """Values of JSON with a schema of the user, and two runs."""
    address, dead = common["bootstrap"], tmp_path / "dead"
    topics.create(address, topic)
    common = {**common, "schema_registry": None, "schema": "id BIGINT, tags ARRAY<STRING>"}
    common |= {"format": "parquet", "dead_letters": f"{dead}/"}
    send(address, topic, [b'{"id": 1, "tags": ["a"]}', b'{"id": "1"}'])
    archive(topic, **common)
    send(address, topic, [b"\xff", b'{"id": 2}'])
    outcome = archive(topic, **common)
    assert (outcome.rows, outcome.bad_records) == (1, 1)
    for reader in TABLES["parquet"]:
        assert reader(common["to"], "offset", "value") == [
            (0, {"id": 1, "tags": ["a"]}),
            (3, {"id": 2, "tags": None}),
        ], reader
    lines = [
        json.loads(line)
        for file in dead.glob("topic=*/date=*/*.json")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    lines.sort(key=lambda line: line["offset"])
    assert [(line["offset"], line["reason"], line["value_base64"]) for line in lines] == [
        (
            1,
            "its value does not match its schema: value.id is a string and has to be a whole "
            "number",
            "eyJpZCI6ICIxIn0=",
        ),
        (2, "its value is not UTF-8", "/w=="),
    ]


def test_the_page_is_typed(
    registry: OpenRegistry,
    common: dict[str, Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The commands of docs/pipeline.md, with another registry and another broker."""
    monkeypatch.chdir(tmp_path)
    address = common["bootstrap"]
    for name in ("payments", "payments-dead", "orders", "customers"):
        topics.create(address, name)
    schema = record(id="long")
    send(
        address, "payments", [avro(schema, registry.register("payments-value", schema))({"id": 1})]
    )
    send(address, "orders", [b'{"country": "at", "amount": 1.5}', b"no JSON"])
    event = {"op": "c", "before": None, "after": {"id": 7, "name": "Ann"}}
    send(address, "customers", [json.dumps(event).encode()])
    section = [block for block in readme.blocks() if block.section == "Values as columns"]
    commands = readme.commands(section)
    assert len(commands) == 3
    for command in commands:
        words = shlex.split(command.replace("./", f"{tmp_path}/"))[2:]
        words = [registry.url if word == "http://localhost:8081" else word for word in words]
        out, errors = io.StringIO(), io.StringIO()
        code = run_words(["pipeline", *words, "--bootstrap", address], out, errors)
        assert (code, errors.getvalue()) == (
            0,
            "",
        )
    for reader in TABLES["iceberg"]:
        assert reader(tmp_path / "payments", "offset", "value") == [(0, {"id": 1})]
    for reader in TABLES["delta"]:
        rows = reader(tmp_path / "typed-orders", "offset", "value")
        assert rows == [(0, {"country": "at", "amount": 1.5})]
        assert reader(tmp_path / "customers", "id", "name") == [(7, "Ann")]
    assert list(tmp_path.glob("dead-orders/topic=orders/date=*/*.json"))


def test_events_of_debezium_become_rows(
    registry: OpenRegistry, common: dict[str, Any], topic: str, tmp_path: Path
) -> None:
    """Avro of a registry into Iceberg; JSON with its schema and rows among it into Delta."""
    address = common["bootstrap"]
    row = {**record(id="long", name=["null", "string"]), "name": "Value"}
    event = {
        **record(before=["null", row], after=["null", "shop.Value"], op="string", ts_ms="long"),
        "name": "Envelope",
    }
    topics.create(address, topic)
    encode = avro(event, registry.register(f"{topic}-value", event))
    events = [("c", 1, "a"), ("c", 2, "b"), ("u", 1, "c"), ("d", 2, None), ("r", 3, "d")]
    values: list[bytes | None] = []
    texts: list[bytes | None] = []
    for op, id_, name in events:
        state = {"id": id_, "name": name}
        fields = {"before": None, "after": state, "op": op, "ts_ms": 1}
        if op == "d":
            fields = {"before": state, "after": None, "op": op, "ts_ms": 1}
        values.append(encode(fields))
        texts.append(json.dumps({"schema": {"type": "struct"}, "payload": fields}).encode())
    send(address, topic, [*values[:3]])
    table = {**common, "format": "iceberg", "upsert_by": "id"}
    assert archive(topic, **table).rows == 3
    send(address, topic, [*values[3:4], None, *values[4:]])
    assert archive(topic, **table).rows == 3
    for reader in TABLES["iceberg"]:
        assert reader(common["to"], "id", "name") == [(1, "c"), (3, "d")], reader

    deleted_row = {"id": 4, "name": "x", "__deleted": "true"}
    texts += [
        json.dumps(deleted_row | {"__deleted": "false"}).encode(),
        json.dumps(deleted_row).encode(),
    ]
    texts.append(b'{"id": 5, "name": "y", "op": "buy", "payload": 1}')
    send(address, f"{topic}-json", texts)
    table = {**common, "format": "delta", "upsert_by": ["id"], "to": tmp_path / "of-json"}
    table |= {"schema_registry": None, "schema": "id BIGINT, name STRING"}
    assert archive(f"{topic}-json", **table).rows == 8
    for reader in TABLES["delta"]:
        assert reader(tmp_path / "of-json", "id", "name") == [(1, "c"), (3, "d"), (5, "y")], reader

    # One row without its key and one operation that nobody knows, among good ones.
    bad = [{"op": "c", "after": {"name": "no id"}}, {"op": "t", "before": None, "after": None}]
    good = {"op": "c", "before": None, "after": {"id": 9, "name": "z"}}
    send(address, f"{topic}-json", [json.dumps(fields).encode() for fields in (*bad, good)])
    with pytest.raises(BadRecordError, match="cannot be used: it has no key: id is null"):
        archive(f"{topic}-json", **table)
    dead = tmp_path / "dead"
    outcome = archive(f"{topic}-json", dead_letters=f"{dead}/", **table)
    assert (outcome.rows, outcome.bad_records) == (1, 2)
    for reader in TABLES["delta"]:
        assert reader(tmp_path / "of-json", "id") == [(1,), (3,), (5,), (9,)], reader
    letters = [
        json.loads(line)
        for file in dead.glob("topic=*/date=*/*.json")
        for line in file.read_text().splitlines()
    ]
    assert sorted(letter["offset"] for letter in letters) == [8, 9]
    table |= {"upsert_by": "ids", "to": tmp_path / "misspelt"}
    with pytest.raises(JobUsageError, match=r"--upsert-by ids: a row has no such column .*mean id"):
        archive(f"{topic}-json", **table)
    assert not list(tmp_path.glob("misspelt/**/*.parquet"))
