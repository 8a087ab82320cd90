"""Broker loggers: reads and sets the levels of this process's loggers, by log4j's level names.

Levels are not stored: a restart forgets them, as in Kafka. `root` is the root logger.
Source: Kafka RuntimeLoggerManager, Log4jController, LogLevelConfig.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from minibroker.broker.config.alterations import APPEND, DELETE, SET, SUBTRACT
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.java_numbers import parse_integer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.config.alterations import Change

ROOT: Final = "root"
_TRACE: Final = 5  # Python has no level below DEBUG
_LEVELS: Final = {
    "FATAL": logging.CRITICAL,
    "ERROR": logging.ERROR,
    "WARN": logging.WARNING,
    "INFO": logging.INFO,
    "DEBUG": logging.DEBUG,
    "TRACE": _TRACE,
}
logger = logging.getLogger(__name__)


def levels() -> dict[str, str]:
    """Return the effective level of every logger, by name."""
    loggers = logging.root.manager.loggerDict.items()
    names = [ROOT, *sorted(name for name, entry in loggers if _is_logger(entry))]
    return {name: _level_name(_logger(name).getEffectiveLevel()) for name in names}


def alter_levels(
    broker_id: int, resource_name: str, changes: Sequence[Change], *, validate_only: bool
) -> None:
    """Set and unset levels. Raises KafkaError before the first change if one is not allowed."""
    asked_id = parse_integer(resource_name, 32)
    if asked_id is None:
        raise _invalid(f"Node id must be an integer, but it is: {resource_name}")
    if asked_id != broker_id:
        raise _invalid(f"Unexpected node id. Expected {broker_id}, but received {resource_name}")
    for change in changes:
        _check(change)
    if validate_only:
        return
    for name, operation, level in changes:
        if operation == SET and level is not None:
            _logger(name).setLevel(_LEVELS[level])
            logger.warning("the log level of %s is now %s", name, level)
        else:
            _logger(name).setLevel(logging.NOTSET)
            logger.warning("the log level of %s is now that of its parent", name)


def _check(change: Change) -> None:
    name, operation, level = change
    if operation in (APPEND, SUBTRACT):
        verb = "APPEND" if operation == APPEND else "SUBTRACT"
        raise _invalid(f"{verb} operation is not allowed for the BROKER_LOGGER resource")
    if operation not in (SET, DELETE):
        raise _invalid(
            f"Unknown operation type {operation} is not allowed for the BROKER_LOGGER resource"
        )
    if name != ROOT and not _is_logger(logging.root.manager.loggerDict.get(name)):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
    if operation == SET and level not in _LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {name} to {level} as it is not a supported log level. "
            f"Valid log levels are {', '.join(sorted(_LEVELS))}",
        )
    if operation == DELETE and name == ROOT:
        raise _invalid(f"Removing the log level of the {ROOT} logger is not allowed")


def _invalid(detail: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, detail)


def _is_logger(entry: object) -> bool:
    """Return False for a placeholder: Python keeps one for `a` where only `a.b` is a logger."""
    return isinstance(entry, logging.Logger)


def _logger(name: str) -> logging.Logger:
    return logging.root if name == ROOT else logging.getLogger(name)


def _level_name(level: int) -> str:
    """Return the nearest log4j level that lets no more messages through."""
    for name, value in _LEVELS.items():
        if level >= value:
            return name
    return "TRACE"
