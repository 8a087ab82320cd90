"""Seeds of lines and of YAML: their items, and the sentence about each wrong one."""

from __future__ import annotations

import io
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from minibroker.seeds import json_lines, staging, yaml_file
from minibroker.seeds.errors import SeedError
from minibroker.seeds.items import Item, SeedOffset, SeedRecord, Topic
from minibroker.seeds.staging import Cluster, StagedSeed, stage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

NOW_MS = 1_795_262_400_000
HOUR_MS = 3_600_000


def lines(text: str | bytes) -> list[Item]:
    content = text.encode() if isinstance(text, str) else text
    return list(json_lines.read_items(io.BytesIO(content), "s.jsonl", NOW_MS))


def yaml(text: str) -> list[Item]:
    return list(yaml_file.read_items(io.BytesIO(text.encode()), "s.yaml", NOW_MS))


def read_whole(path: Path, partitions: Mapping[str, int] | None = None) -> None:
    """Read and check a seed, for brokers with these topics."""
    with closing(StagedSeed(Cluster(partitions or {}, 1, NOW_MS))) as seed:
        stage(path, str(path), seed)


def record(text: str) -> SeedRecord:
    [item] = lines(text)
    assert isinstance(item, SeedRecord)
    return item


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ('"text"', b"text"),
        ('"\\u0000\\n\\u001b"', b"\x00\n\x1b"),
        ('""', b""),
        ("null", None),
        ('{"b": 1, "a": [1.5, true, null, "ü"]}', '{"b":1,"a":[1.5,true,null,"ü"]}'.encode()),
        ("17", b"17"),
        ("true", b"true"),
    ],
)
def test_a_value_is_a_text_json_or_null(value: str, written: bytes | None) -> None:
    assert record(f'{{"topic": "t", "value": {value}}}').value == written
    assert record(f'{{"topic": "t", "value": null, "key": {value}}}').key == written


def test_bytes_are_base64() -> None:
    item = record('{"topic": "t", "key_base64": "AP8=", "value_base64": null}')
    assert (item.key, item.value) == (b"\x00\xff", None)


@pytest.mark.parametrize(
    ("timestamp", "ms"),
    [
        ("1795262400001", 1_795_262_400_001),
        ("-1", -1),
        ('"-1h"', NOW_MS - HOUR_MS),
        ('"now+1h"', NOW_MS + HOUR_MS),
        ('"2026-11-24T01:00+01:00"', 1_795_478_400_000),
        ("null", None),
    ],
)
def test_times_may_be_relative_to_the_brokers_clock(timestamp: str, ms: int | None) -> None:
    item = record(f'{{"topic": "t", "value": "", "timestamp": {timestamp}}}')
    assert item.timestamp == ms


def test_headers_keep_their_order_and_may_repeat() -> None:
    pairs = '[["a", "1"], ["a", null], ["b", {"base64": "AAE="}]]'
    item = record(f'{{"topic": "t", "value": "", "headers": {pairs}}}')
    assert item.headers == (("a", b"1"), ("a", None), ("b", b"\x00\x01"))
    item = record('{"topic": "t", "value": "", "headers": {"b": "2", "a": "1"}}')
    assert item.headers == (("b", b"2"), ("a", b"1"))


def test_topics_and_offsets_of_groups() -> None:
    topic, offset = lines(
        '{"create": "t", "partitions": 3, "replicas": 2, "configs": {"a": true, "b": 5}}\n\n'
        '{"group": "g", "topic": "t", "partition": 1, "offset": 7}\n'
    )
    assert isinstance(topic, Topic)
    assert topic[:4] == ("t", 3, 2, {"a": "true", "b": "5"})
    assert isinstance(offset, SeedOffset)
    assert (*offset[:4], str(offset.place)) == ("g", "t", 1, 7, "s.jsonl:3")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "s.jsonl:1: it is no JSON (Expecting property name"),
        ("[]", "s.jsonl:1: [] is no JSON object"),
        ("{}", "s.jsonl:1: [] is none of a seed's lines"),
        (b'{"topic": "\xff"}', "s.jsonl:1: byte 11 is not UTF-8"),
        ('{"topic": "t"}', "s.jsonl:1: a record has no value: expected value or value_base64"),
        ('{"topic": "", "value": ""}', "s.jsonl:1: topic: '': expected a name"),
        ('{"topic": "t", "valeu": 1}', "'valeu' is no field here (did you mean value?)"),
        ('{"topic": "t", "value": "", "partition": -1}', "partition: -1: expected a whole number"),
        ('{"topic": "t", "value": "", "partition": "0"}', "partition: '0': expected a whole"),
        ('{"topic": "t", "value": "", "partition": true}', "partition: True: expected a whole"),
        ('{"topic": "t", "value": "", "timestamp": "soon"}', "timestamp: 'soon': expected millis"),
        ('{"topic": "t", "value": "", "timestamp": 1.5}', "timestamp: 1.5: expected millis"),
        ('{"topic": "t", "value": "", "timestamp": 1e3}', "timestamp: 1000.0: expected millis"),
        ('{"topic": "t", "value_base64": "%"}', "value_base64: '%': expected bytes in base64"),
        ('{"topic": "t", "value": "", "value_base64": ""}', "has value and value_base64"),
        ('{"topic": "t", "value": "\\ud800"}', "value: '\\ud800': expected a text of Unicode"),
        ('{"topic": "t", "value": ["\\ud800"]}', "value: ['\\ud800']: expected a text"),
        ('{"topic": "t", "value": NaN}', "it is no JSON (NaN is no JSON)"),
        ('{"topic": "t", "value": {"a": 1, "a": 2}}', "an object has 'a' twice"),
        ('{"topic": "t", "value": "", "headers": {"a": 1}}', "headers: 1: expected an object"),
        ('{"topic": "t", "value": "", "headers": ["a"]}', "headers: 'a': expected an object"),
        ('{"topic": "t", "value": "", "headers": 5}', "headers: 5: expected an object"),
        ('{"create": "t", "partitions": 0}', "partitions: 0: expected a whole number from 1"),
        ('{"create": "t", "partitions": 1e9}', "partitions: 1000000000.0: expected a whole"),
        ('{"create": "t", "configs": []}', "configs: []: expected an object of settings"),
        ('{"create": "t", "configs": {"a": null}}', "configs.a: None: expected a text"),
        ('{"group": "g", "topic": "t", "partition": 0}', "an offset of a group has no offset"),
    ],
)
def test_a_wrong_line_is_a_sentence_with_place_field_and_value(
    line: str | bytes, sentence: str
) -> None:
    with pytest.raises(SeedError) as caught:
        lines(line)
    assert sentence in str(caught.value)
    assert str(caught.value).startswith("s.jsonl:1: ")


def test_a_wrong_line_far_behind_names_its_number() -> None:
    with pytest.raises(SeedError, match=r"^s.jsonl:3: a record has no value"):
        lines('{"topic": "t", "value": ""}\n\n{"topic": "t"}\n')


def test_a_deep_value_is_refused() -> None:
    deep = "[" * 200_000
    with pytest.raises(SeedError, match=r"s.jsonl:1: the JSON is too deep"):
        lines(f'{{"topic": "t", "value": {deep}}}')


class Endless(io.RawIOBase):
    """A file of one line without an end; counts the bytes that were read."""

    def __init__(self) -> None:
        self.read_bytes = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer).cast("B")  # type: ignore[arg-type]
        view[:] = b"x" * len(view)
        self.read_bytes += len(view)
        return len(view)


def test_a_line_without_an_end_is_read_no_further_than_the_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(json_lines, "LINE_BYTES_MAX", 1 << 20)
    endless = Endless()
    with pytest.raises(SeedError, match=r"s.jsonl:1: the line is longer than 1 MB"):
        list(json_lines.read_items(io.BufferedReader(endless), "s.jsonl", NOW_MS))
    assert endless.read_bytes <= 2 << 20


def test_yaml_has_topics_records_and_groups() -> None:
    text = """
groups:
  g: {orders: {0: 2}}
records:
  - topic: orders
    key: yes
    value: {id: 1, date: 2026-11-24, "on": null}
    timestamp: -1h
    headers: {a: b}
  - {topic: orders, value: !!binary AP8=, partition: 1}
topics:
  orders: {partitions: 2, configs: {retention.ms: -1}}
  empty:
"""
    orders, empty, first, second, offset = yaml(text)
    assert isinstance(orders, Topic)
    assert orders[:4] == ("orders", 2, 0, {"retention.ms": "-1"})
    assert isinstance(empty, Topic)
    assert empty[:4] == ("empty", -1, 0, {})
    assert isinstance(first, SeedRecord)
    assert first.key == b"yes"
    assert first.value == b'{"id":1,"date":"2026-11-24","on":null}'
    assert (first.timestamp, first.headers) == (NOW_MS - HOUR_MS, (("a", b"b"),))
    assert isinstance(second, SeedRecord)
    assert (second.partition, second.value, str(second.place)) == (1, b"\x00\xff", "s.yaml:10")
    assert isinstance(offset, SeedOffset)
    assert offset[:4] == ("g", "orders", 0, 2)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "s.yaml is empty"),
        ("- 1", "s.yaml: expected a mapping with topics, records, groups"),
        ("topic: {}", "s.yaml: 'topic': expected topics, records, groups"),
        ("topics: [a]", "s.yaml:1: topics: ['a']: expected topics by their names"),
        ("topics:\n  a: 3", "topics.a: 3: expected partitions, replicas, configs, or nothing"),
        ("topics:\n  a: {parts: 3}", "s.yaml:2: 'parts' is no field here"),
        ("topics:\n  a:\n  a:", "s.yaml:3: 'a' stands twice in one mapping"),
        ("records: {a: 1}", "records: {'a': 1}: expected a list of records"),
        ("records:\n- topic: a\n- topic: a", "s.yaml:2: a record has no value"),
        ("records:\n- {topic: a, value: .inf}\n- [", "s.yaml:4: it is no YAML"),
        ("records:\n- {topic: a, value: !!binary '%'}", "s.yaml:2: !!binary: expected bytes"),
        ("records:\n- {topic: a, value: !!python/object:x {}}", "s.yaml:2: the tag tag:yaml.org"),
        ("groups: {g: 1}", "groups.g: 1: expected topics, each with partitions"),
        ("groups: {g: {t: {a: 1}}}", "groups.g.t: 'a': expected a partition's number"),
        ("a: &a [1]\nb: *a", "s.yaml:2: *a is an alias: expected the value itself"),
        ("records: " + "[" * 100, "s.yaml:1: the values are deeper than 64"),
        ("a: 1\n---\nb: 1", "s.yaml:2: a second document begins"),
        ("? [a]\n: 1", "s.yaml:1: a name is a list, a mapping or an alias"),
        ("a: \x01", "s.yaml: it is no YAML"),
    ],
)
def test_wrong_yaml_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(SeedError) as caught:
        yaml(text)
    assert sentence in str(caught.value)


def test_a_bomb_of_aliases_is_refused_before_it_grows() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 30)
    )
    with pytest.raises(SeedError, match=r"s.yaml:2: .a0 is an alias"):
        yaml(bomb)


def test_a_large_yaml_file_is_told_to_be_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_file, "FILE_BYTES_MAX", 1 << 20)
    with pytest.raises(SeedError, match=r"s.yaml has more than 1 MB of YAML; .*\.jsonl"):
        yaml("# " + "x" * (1 << 20))


def test_values_of_yaml_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yaml_file, "VALUES_MAX", 100)
    with pytest.raises(SeedError, match=r"s\.yaml:1: the file has more than 100 values"):
        yaml(f"records: [{', '.join('x' * 100)}]")


def test_topics_and_offsets_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "TOPICS_MAX", 2)
    monkeypatch.setattr(staging, "OFFSETS_MAX", 2)
    offset = '{"group": "g", "topic": "a", "partition": 0, "offset": 1}\n'
    for text, sentence in (
        ('{"create": "a"}\n{"topic": "b", "value": ""}\n{"create": "c"}', ":3: more than 2 topics"),
        ("".join(f'{{"topic": "{name}", "value": ""}}\n' for name in "abc"), ":3: more than 2"),
        (offset * 3, ":3: more than 2 offsets of groups"),
    ):
        (tmp_path / "s.jsonl").write_text(text)
        with pytest.raises(SeedError, match=sentence):
            read_whole(tmp_path / "s.jsonl")


def test_a_seed_that_nobody_waits_for_is_read_no_further(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text('{"topic": "t", "value": ""}\nno JSON')
    seed = StagedSeed(Cluster({}, 1, NOW_MS))
    seed.close()
    with pytest.raises(SeedError, match="nobody waits"):
        stage(tmp_path / "s.jsonl", "s.jsonl", seed)


def test_yaml_without_its_package_names_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(SeedError, match=r"pip install 'minibroker\[yaml\]'"):
        yaml("topics:")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"topic": "t", "value": "", "partition": 1}', ":1: partition: 1: topic t has 0: expe"),
        ('{"topic": "old", "value": "", "partition": 4}', ":1: partition: 4: topic old has 0 to 3"),
        ('{"create": "old", "partitions": 3}', ":1: partitions: 3: topic old exists with 4"),
        ('{"create": "t"}\n{"create": "t"}', ":2: topic t is declared twice, first at"),
        ('{"topic": "t", "value": ""}\n{"create": "t"}', ":2: topic t is declared after its first"),
        ('{"group": "g", "topic": "t", "partition": 1, "offset": 0}', ":1: partition: 1: topic t"),
    ],
)
def test_items_that_do_not_fit_together_are_refused(
    tmp_path: Path, text: str, sentence: str
) -> None:
    path = tmp_path / "seed.jsonl"
    path.write_text(text)
    with pytest.raises(SeedError) as caught:
        read_whole(path, {"old": 4})
    assert f"seed.jsonl{sentence}" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("absent.jsonl", "absent.jsonl cannot be read: No such file"),
        ("seed.csv", "seed.csv is no seed: expected a file that ends in .jsonl"),
        ("empty", "empty has no seed in it: expected .jsonl or .yaml files"),
        ("00000000000000000000.log", "no directory names its topic"),
        ("partitions", "t-100000: partition 100000: expected a number below 100000"),
    ],
)
def test_a_path_that_is_no_seed_is_refused(tmp_path: Path, name: str, sentence: str) -> None:
    (tmp_path / "seed.csv").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "00000000000000000000.log").touch()
    (tmp_path / "partitions" / "t-100000").mkdir(parents=True)
    (tmp_path / "partitions" / "t-100000" / "00000000000000000000.log").touch()
    with pytest.raises(SeedError, match=sentence):
        read_whole(tmp_path / name)
