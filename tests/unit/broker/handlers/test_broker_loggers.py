"""Loggers of this process under log4j's names of levels."""

from __future__ import annotations

import logging

import pytest

from minibroker.broker.config.alterations import APPEND, DELETE, SET, SUBTRACT, Change
from minibroker.broker.handlers.configs.loggers import alter_levels, levels
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

NAME = "tests.loggers.one"


@pytest.fixture
def logger() -> logging.Logger:
    plain_logger = logging.getLogger(NAME)
    plain_logger.setLevel(logging.NOTSET)
    return plain_logger


def test_every_logger_has_the_level_that_holds_for_it(logger: logging.Logger) -> None:
    logger.setLevel(5)
    level_of = levels()
    assert level_of[NAME] == "TRACE"
    assert level_of["root"] in ("WARN", "INFO", "DEBUG", "ERROR")
    assert "tests.loggers" not in level_of  # leads to a logger, is none
    logger.setLevel(logging.NOTSET)
    assert levels()[NAME] == level_of["root"]
    logger.setLevel(logging.CRITICAL)
    assert levels()[NAME] == "FATAL"


def test_all_changes_are_checked_before_the_first_is_made(logger: logging.Logger) -> None:
    changes = [Change(NAME, SET, "ERROR"), Change("tests.nowhere", SET, "ERROR")]
    with pytest.raises(KafkaError, match=r"tests\.nowhere does not exist"):
        alter_levels(0, "0", changes, validate_only=False)
    assert logger.level == logging.NOTSET


@pytest.mark.parametrize(
    ("change", "code", "sentence"),
    [
        (Change(NAME, SET, "LOUD"), ErrorCode.INVALID_CONFIG, "Valid log levels are DEBUG, ERROR"),
        (Change(NAME, SET, "info"), ErrorCode.INVALID_CONFIG, "not a supported log level"),
        (Change("root", DELETE, None), ErrorCode.INVALID_REQUEST, "is not allowed"),
        (Change(NAME, APPEND, "INFO"), ErrorCode.INVALID_REQUEST, "APPEND operation"),
        (Change(NAME, SUBTRACT, "INFO"), ErrorCode.INVALID_REQUEST, "SUBTRACT operation"),
        (Change(NAME, 9, "INFO"), ErrorCode.INVALID_REQUEST, "Unknown operation type 9"),
    ],
)
@pytest.mark.usefixtures("logger")
def test_bad_changes_are_refused(change: Change, code: ErrorCode, sentence: str) -> None:
    with pytest.raises(KafkaError) as caught:
        alter_levels(0, "0", [change], validate_only=True)
    assert caught.value.code == code
    assert sentence in str(caught.value)


def test_the_resource_is_this_broker() -> None:
    with pytest.raises(KafkaError, match="Node id must be an integer, but it is: a"):
        alter_levels(0, "a", [], validate_only=True)
