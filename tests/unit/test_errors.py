"""What each exception tells, and that one base catches them all."""

from __future__ import annotations

import inspect

from minibroker import errors
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, MinibrokerError


def test_a_kafka_error_tells_its_code_by_name() -> None:
    assert str(KafkaError(ErrorCode.NOT_CONTROLLER)) == "NOT_CONTROLLER"
    error = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "no dots")
    assert str(error) == "INVALID_TOPIC_EXCEPTION: no dots"
    assert (error.code, error.detail) == (ErrorCode.INVALID_TOPIC_EXCEPTION, "no dots")


def test_all_errors_have_one_base_and_a_line_that_says_what_they_are() -> None:
    classes = [found for _, found in inspect.getmembers(errors, inspect.isclass)]
    ours = [found for found in classes if found.__module__ == errors.__name__]
    assert len(ours) == 7
    for found in ours:
        assert issubclass(found, MinibrokerError)
        assert found.__doc__


def test_the_table_of_the_module_names_every_class() -> None:
    ours = [
        found for found in MinibrokerError.__subclasses__() if found.__module__ == errors.__name__
    ]
    for found in ours:
        assert found.__name__ in (errors.__doc__ or "")
