"""JAAS lines and files: quotes, comments, and errors that hold no secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.jaas import LoginModule, parse_file, parse_line
from minibroker.kafka.java_formats.properties import escape, parse_properties, read_properties

if TYPE_CHECKING:
    from pathlib import Path


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_a_line_has_a_module_and_options() -> None:
    line = (
        f'{PLAIN} required\n username="admin"  user_a-b.c=\'x y\' // more\n n="q\\"\\u41\\n\\101";'
    )
    assert parse_line(line) == LoginModule(
        PLAIN, {"username": "admin", "user_a-b.c": "x y", "n": 'q"u41\nA'}
    )


def test_a_module_without_options_is_a_line() -> None:
    assert parse_line("a.B optional;") == LoginModule("a.B", {})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a.B",
        "a.B required",
        'a.B required user_a="s3cret"',
        'a.B maybe user_a="s3cret";',
        "a.B required user_a;",
        'a.B required user_a "s3cret";',
        'a.B required user_a="s3cret;',
        'a.B required user_a="s3cret"; a.B required;',
        "a.B required user_a=s3cret%;",
        "= ;",
    ],
)
def test_a_broken_line_is_refused_without_its_values(text: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parse_line(text)
    assert "s3cret" not in str(refused.value)


def test_a_file_has_contexts() -> None:
    text = """
    # of the broker
    KafkaServer { a.B required x="1"; c.D required; };
    sasl.KafkaServer { /* nothing
       more */ e.F required; };
    """
    assert parse_file(text) == {
        "KafkaServer": [LoginModule("a.B", {"x": "1"}), LoginModule("c.D", {})],
        "sasl.KafkaServer": [LoginModule("e.F", {})],
    }
    with pytest.raises(ConfigError, match="missing"):
        parse_file("KafkaServer { a.B required; }")


def test_a_printed_module_has_no_values() -> None:
    assert "s3cret" not in repr(parse_line('a.B required user_a="s3cret";'))


# Properties files, as Java reads them.


def test_properties_are_read_as_java_reads_them() -> None:
    text = (
        "# a comment\n"
        "! another, \\\n"
        "  \n"
        "a=1\n"
        "b : 2\r\n"
        "c 3\r"
        "   d=  spaced value  \n"
        "e\\ f\\=g=h\\:i\n"
        "long=one,\\\n"
        "    two,\\\n"
        "    three\n"
        "unicode=\\u00e9\\t\\\\\n"
        "empty=\n"
        "alone\n"
        "a=again"
    )
    assert parse_properties(text) == {
        "a": "again",
        "b": "2",
        "c": "3",
        "d": "spaced value  ",
        "e f=g": "h:i",
        "long": "one,two,three",
        "unicode": "\u00e9\t\\",
        "empty": "",
        "alone": "",
    }


def test_a_comment_inside_a_continued_line_is_text() -> None:
    assert parse_properties("a=1,\\\n#2") == {"a": "1,#2"}


def test_a_broken_unicode_escape_is_refused() -> None:
    with pytest.raises(ValueError, match="four hexadecimal digits"):
        parse_properties("a=\\u12")


@given(st.text(max_size=60))
def test_any_text_is_properties_or_a_value_error(text: str) -> None:
    try:
        properties = parse_properties(text)
    except ValueError:
        return
    assert all(isinstance(value, str) for value in properties.values())


def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read the configuration file .*no\.properties"):
        read_properties(str(tmp_path / "no.properties"))
    path = tmp_path / "broken.properties"
    path.write_text("a=\\uzzzz")
    with pytest.raises(ConfigError, match=r"broken\.properties"):
        read_properties(str(path))


def test_files_are_latin_1_as_in_java(tmp_path: Path) -> None:
    path = tmp_path / "server.properties"
    path.write_bytes(b"broker.rack=caf\xe9\n")
    assert read_properties(str(path)) == {"broker.rack": "caf\u00e9"}


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("a b=c", "a b=c"),
        ("  a", "\\  a"),
        ("a\\b", "a\\\\b"),
        ("\t\n\r\f", "\\t\\n\\r\\f"),
        ("é\N{GRINNING FACE}", "\\u00e9\\ud83d\\ude00"),
        ("a\\", "a\\\\"),
    ],
)
def test_a_value_is_escaped_for_a_line(value: str, line: str) -> None:
    assert escape(value) == line
    assert parse_properties(f"k={line}\nl=1") == {"k": value, "l": "1"}
