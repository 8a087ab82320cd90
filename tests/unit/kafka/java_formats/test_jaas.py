"""JAAS lines and files: quotes, comments, and errors that hold no secret."""

from __future__ import annotations

import pytest

from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.jaas import LoginModule, parse_file, parse_line

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
