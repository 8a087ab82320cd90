"""The words of `--mask` and `--select`: places, quotes, and what is refused."""

from __future__ import annotations

import hashlib
import hmac
import json
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.pipeline.errors import JobUsageError, PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.operations import mask_secret
from minibroker.pipeline.operations.mask_methods import DROPPED, Method, number_of, unmarked
from minibroker.pipeline.operations.mask_rules import FieldPath, MaskRule, fields_of, rules_of
from minibroker.pipeline.operations.rows import RowOperations

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("email=hash", MaskRule(FieldPath("value", ("email",)), "hash")),
        (" customer.email = email ", MaskRule(FieldPath("value", ("customer", "email")), "email")),
        ("card=last4", MaskRule(FieldPath("value", ("card",)), "last", "4")),
        ("name=first12", MaskRule(FieldPath("value", ("name",)), "first", "12")),
        ("items[].sku=mask", MaskRule(FieldPath("value", ("items", "sku")), "mask")),
        ("tags[]=drop", MaskRule(FieldPath("value", ("tags",), is_each=True), "drop")),
        ("`a.b`.c=null", MaskRule(FieldPath("value", ("a.b", "c")), "null")),
        ("`a``b`=null", MaskRule(FieldPath("value", ("a`b",)), "null")),
        ("`key`=empty", MaskRule(FieldPath("value", ("key",)), "empty")),
        ("value.key=empty", MaskRule(FieldPath("value", ("key",)), "empty")),
        ("value=null", MaskRule(FieldPath("value", ()), "null")),
        ("key=hash", MaskRule(FieldPath("key", ()), "hash")),
        ("key.id=hash", MaskRule(FieldPath("key", ("id",)), "hash")),
        ("headers=drop", MaskRule(FieldPath("headers", ()), "drop")),
        ("headers.x-user.id=drop", MaskRule(FieldPath("headers", ("x-user.id",)), "drop")),
        ("a=fixed:x=y", MaskRule(FieldPath("value", ("a",)), "fixed", "x=y")),
        ("a=fixed:'b, c'", MaskRule(FieldPath("value", ("a",)), "fixed", "b, c")),
        ("a=fixed:", MaskRule(FieldPath("value", ("a",)), "fixed", "")),
    ],
)
def test_a_rule_is_read_and_written_again(text: str, rule: MaskRule) -> None:
    assert rules_of([text]) == (rule,)
    assert rules_of([str(rule)]) == (rule,)


def test_rules_stand_between_commas_and_in_several_texts() -> None:
    rules = rules_of(["email=hash, card=last4,", "a=fixed:'x, y', key=hash"])
    assert [str(rule) for rule in rules] == [
        "email=hash",
        "card=last4",
        "a=fixed:'x, y'",
        "key=hash",
    ]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("email", "expected FIELD=METHOD, such as email=hash"),
        ("=hash", "has no field"),
        ("a..b=hash", "expected a field, such as customer.email"),
        ("a.=hash", "expected a field"),
        ("a=sha", "'sha' is no method, expected hash, email, mask, last4"),
        ("a=last0", "is no method"),
        ("a=hash:x", "is no method"),
        ("a=hash, a=drop", "has a and a, which are about the same place"),
        ("a.b=hash, a=drop", "a.b and a, which are about the same place"),
        ("key=hash, key.id=hash", "key and key.id, which are about the same place"),
        ("headers=drop, headers.a=hash", "are about the same place"),
        ("a=fixed:it's, card=last4", "a quote ' is not closed"),
        ("`a=hash", "a quote ` is not closed"),
    ],
)
def test_a_wrong_rule_is_refused(text: str, sentence: str) -> None:
    """A quote that is not closed would hide the rules behind it, which would then not be done."""
    with pytest.raises(JobUsageError, match=sentence):
        rules_of([text])


def test_too_many_rules_are_refused() -> None:
    with pytest.raises(JobUsageError, match="has 61 rules: expected 60 at most"):
        rules_of([",".join(f"field{number}=drop" for number in range(61))])


def test_fields_are_those_of_values() -> None:
    assert [str(path) for path in fields_of(["id, customer.country", "value.key"])] == [
        "id",
        "customer.country",
        "value.key",
    ]
    with pytest.raises(JobUsageError, match="'key': expected fields of the JSON value"):
        fields_of(["key"])
    with pytest.raises(JobUsageError, match=r"has a and a\.b, which are about the same place"):
        fields_of(["a, a.b"])


# The methods of masks: each makes something else of each kind of value.


SECRET = b"sixteen bytes or more"


def method(text: str) -> Method:
    (rule,) = rules_of([f"field={text}"])
    return Method(rule, SECRET)


def digest(value: bytes) -> str:
    return hmac.new(SECRET, value, hashlib.sha256).hexdigest()


@pytest.mark.parametrize(
    ("name", "value", "masked"),
    [
        ("hash", "é", digest("é".encode())),
        ("hash", "\ud800", digest(b"\xed\xa0\x80")),
        ("hash", 17, int(digest(b"17")[:16], 16) >> 11),
        ("hash", True, None),
        ("email", "A@B.at", f"{digest(b'A')[:16]}@{digest(b'b.at')[:16]}.example"),
        ("email", "nobody", f"{digest(b'nobody')[:16]}@{digest(b'')[:16]}.example"),
        ("email", 3, 0),
        ("mask", "Äb-12 ß", "Xx-nn-x"),
        ("mask", 12, 0),
        ("last4", "4111 1111", "*****1111"),
        ("last4", "1111", "****"),
        ("last4", "", ""),
        ("last4", 4_111_222_233, 2233),
        ("last4", -41_110_007, 7),
        ("last4", 1111, 0),
        ("last4", 1.5, 0),
        ("first1", "Anna", "A***"),
        ("first2", 4711, 4700),
        ("first1", 1e300, 0),
        ("fixed:x", "a", "x"),
        ("fixed:x", 5, "x"),
        ("fixed:0", 5, 0),
        ("fixed:0", "a", "0"),
        ("fixed:true", 5, "true"),
        ("fixed:x", {"a": 1}, "x"),
        ("empty", "a", ""),
        ("empty", 5, 0),
        ("empty", True, False),
        ("empty", [1], []),
        ("empty", {"a": 1}, {}),
        ("null", {"a": 1}, None),
        ("null", 1, None),
        ("mask", {"a": ["B", 1, None, {"c": "d"}]}, {"a": ["X", 0, None, {"c": "x"}]}),
    ],
)
def test_a_value_becomes(name: str, value: Any, masked: Any) -> None:
    masked_value = method(name).of(value)
    assert (masked_value, type(masked_value)) == (masked, type(masked))


@pytest.mark.parametrize("name", ["hash", "email", "mask", "last4", "first1", "fixed:x", "empty"])
def test_null_stays_null(name: str) -> None:
    assert method(name).of(None) is None
    assert method(name).of_bytes(None) is None


def test_drop_drops_everything() -> None:
    assert method("drop").of(None) is DROPPED
    assert method("drop").of({"a": 1}) is DROPPED
    assert method("drop").of_bytes(b"x") is None


@pytest.mark.parametrize(
    ("name", "masked"),
    [
        ("hash", digest(b"Ab1").encode()),
        ("mask", b"Xxn"),
        ("last2", b"*b1"),
        ("fixed:x", b"x"),
        ("empty", b""),
        ("null", None),
    ],
)
def test_whole_bytes_become(name: str, masked: bytes | None) -> None:
    """A key has the hash of a field with the same text."""
    assert method(name).of_bytes(b"Ab1") == masked


def test_bytes_that_are_no_text_have_a_hash_alone() -> None:
    assert method("hash").of_bytes(b"\xff") == digest(b"\xff").encode()
    with pytest.raises(PipelineError, match="it is not UTF-8, which last needs"):
        method("last4").of_bytes(b"\xff")


@pytest.mark.parametrize("text", ["0", "-0", "1.50", "1e5", "12345678901234567890.10", "1e999"])
def test_numbers_keep_their_digits(text: str) -> None:
    assert unmarked(json.dumps({"a": number_of(text)}).encode()) == f'{{"a": {text}}}'.encode()


def test_hashed_numbers_are_exact_in_a_double() -> None:
    for number in range(1000):
        digest = method("hash").of(number)
        assert 0 <= digest < 1 << 53


# The secret: where it comes from, what is refused, and that it stays the same.


TEXT = "0123456789abcdef"
HASHES = RowOperations(rules=rules_of(["a=hash"]))
ENVIRONMENT = {mask_secret.VARIABLE: "another secret of some length"}


def from_file(path: Path, content: bytes) -> RowOperations:
    path.write_bytes(content)
    return RowOperations(rules=rules_of(["a=hash"]), secret_file=str(path))


def test_a_file_wins_over_the_environment(tmp_path: Path) -> None:
    secret = from_file(tmp_path / "secret", f"{TEXT}\r\n".encode())
    assert mask_secret.given_secret(secret, ENVIRONMENT) == TEXT.encode()
    assert mask_secret.given_secret(HASHES, ENVIRONMENT) == b"another secret of some length"
    assert mask_secret.given_secret(HASHES, {}) is None


def test_without_a_hash_no_secret_is_read() -> None:
    with_rules = RowOperations(rules=rules_of(["a=last4"]))
    assert mask_secret.given_secret(with_rules, ENVIRONMENT) is None
    assert mask_secret.secret_of_job(with_rules, ENVIRONMENT, None) == b""


@pytest.mark.parametrize("content", [b"", b"short\n", b"x" * 5000])
def test_a_secret_of_another_length_is_refused(tmp_path: Path, content: bytes) -> None:
    secret = from_file(tmp_path / "secret", content)
    with pytest.raises(PipelineError, match="expected 16 to 4096, for instance from `openssl"):
        mask_secret.given_secret(secret, {})


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    without_secret = HASHES._replace(secret_file=str(tmp_path / "none"))
    with pytest.raises(PipelineError, match="cannot be read: No such file"):
        mask_secret.given_secret(without_secret, {})


def test_a_job_keeps_its_own(tmp_path: Path) -> None:
    place = LocalFiles(), str(tmp_path / "job")
    first = mask_secret.secret_of_job(HASHES, {}, place)
    assert first == mask_secret.secret_of_job(HASHES, {}, place)
    assert first != mask_secret.secret_of_job(HASHES, {}, (LocalFiles(), str(tmp_path / "other")))
    copy = tmp_path / "job" / "_minibroker" / mask_secret.FILE
    assert copy.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in copy.parent.iterdir()] == [mask_secret.FILE]
    copy.chmod(0o600)
    copy.write_text("cut")
    with pytest.raises(PipelineError, match="mask-secret has a secret of 3 bytes"):
        mask_secret.secret_of_job(HASHES, {}, place)


def test_none_is_made_within_a_result() -> None:
    with pytest.raises(PipelineError, match="one beside /lake would go with the data"):
        mask_secret.check_given(HASHES, {}, in_result="/lake")
    assert mask_secret.check_given(HASHES, {}, in_result=None) is None
