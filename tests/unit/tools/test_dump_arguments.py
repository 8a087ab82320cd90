"""Kafka's flags, files with and without a flag, what is refused."""

from __future__ import annotations

import pytest

from minibroker.broker.config.options import UsageError
from minibroker.tools.dump_arguments import INT_MAX, parse_dump_log

DECODES = {
    "cluster-metadata": "metadata",
    "offsets": "group",
    "remote-log-metadata": "remote",
    "share-group-state": "share",
}


def test_files_come_with_the_flag_and_without() -> None:
    arguments = parse_dump_log(["c.log", "--files", "a.log,b.index,", "--deep-iteration"])
    assert arguments.files == ["a.log", "b.index", "c.log"]
    assert arguments.is_deep
    assert not arguments.prints_data
    assert (arguments.max_bytes, arguments.max_message_size) == (INT_MAX, 5242880)


def test_decoders_print_data_and_data_is_deep() -> None:
    for flag in ("--print-data-log", "--offsets-decoder", "--transaction-log-decoder"):
        arguments = parse_dump_log([flag, "a.log"])
        assert arguments.prints_data
        assert arguments.is_deep
    assert parse_dump_log(["--key-decoder-class=LongDecoder", "a.log"]).prints_data


def test_switches() -> None:
    words = ["--json", "--index-sanity-check", "--verify-index-only", "--skip-record-metadata"]
    arguments = parse_dump_log([*words, "--max-bytes=7", "--max-message-size", "9", "a"])
    assert arguments.is_json
    assert arguments.sanity_only
    assert arguments.verify_only
    assert not arguments.with_metadata
    assert (arguments.max_bytes, arguments.max_message_size) == (7, 9)


@pytest.mark.parametrize(
    "flag", ["cluster-metadata", "offsets", "remote-log-metadata", "share-group-state"]
)
def test_a_decoder_of_records_shows_them(flag: str) -> None:
    arguments = parse_dump_log([f"--{flag}-decoder", "a.log"])
    assert arguments.prints_data
    assert arguments.is_deep
    assert arguments.decoder.__name__ == f"decode_{DECODES[flag]}_record"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no file is given"),
        (["--max-bytes", "-1", "a"], "--max-bytes -1: expected a number of bytes"),
        (["--max-bytes", "99999999999", "a"], "expected a number of bytes up to 2147483647"),
        (["--files"], "--files needs a value"),
        (["--json=yes", "a"], "unknown argument '--json=yes'"),
        (["--key-decoder-class", "my.Own", "a"], "expected one of StringDecoder"),
        (["--cluster-metadata-decoder=x", "a"], "unknown argument"),
    ],
)
def test_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence.replace("-", "[-]")):
        parse_dump_log(words)
