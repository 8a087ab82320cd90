"""`refusals`: an error answer of each API and version is that of minibroker's handler."""

from importlib import import_module
from typing import Any

import pytest

from minibroker.broker.handlers.registry import HANDLERS
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import APIS, load_messages
from minibroker.kafka.protocol.primitives import Reader, Writer
from minibroker.proxy.refusals import refusal
from tests.support.protocol_values import ValueMaker
from tests.support.reference_codec import MessageSpec, encode, load_specs

CODE = ErrorCode.COORDINATOR_NOT_AVAILABLE
DETAIL = "refused by a rule"
BETWEEN_BROKERS = {4, 5, 6, 7, 27, 56, 67, 83, 84, 85, 86, 87}
"""APIs that no client sends."""
SEEDS = range(4)
REQUESTS = [
    spec
    for spec in load_specs()
    if spec.key is not None
    and spec.class_name.endswith("Request")
    and spec.key not in BETWEEN_BROKERS
]


def requests_of(spec: MessageSpec, version: int) -> list[Any]:
    """Return requests as they are when they were read from bytes."""
    assert spec.key is not None
    request_class, _ = load_messages(spec.key)
    values = [ValueMaker(spec, seed).message(version) for seed in SEEDS]
    return [request_class.read(Reader(encode(spec, value, version)), version) for value in values]


def frame_of(answer: Any, version: int) -> bytes:
    """Return the bytes of an answer."""
    writer = Writer()
    answer.write(writer, version)
    return writer.to_bytes()


def handlers_answer(request: Any, version: int) -> Any:
    """Return what minibroker itself answers to a request that it refuses."""
    key = request.API_KEY
    module = import_module(f"minibroker.broker.handlers.{HANDLERS[key]}")
    own = getattr(module, "error_response", None)
    if own is not None:
        return own(request, version, CODE, DETAIL)
    _, response_class = load_messages(key)
    answer = response_class(error_code=int(CODE))
    if "error_message" in response_class.__slots__:
        answer.error_message = DETAIL
    return answer


@pytest.mark.parametrize("spec", [spec for spec in REQUESTS if spec.key in HANDLERS], ids=str)
def test_an_error_answer_is_that_of_the_handler(spec: MessageSpec) -> None:
    for version in spec.versions:
        for request in requests_of(spec, version):
            answer = refusal(request, version, CODE, DETAIL)
            assert frame_of(answer, version) == frame_of(handlers_answer(request, version), version)


@pytest.mark.parametrize("spec", REQUESTS, ids=str)
def test_an_error_answer_of_each_api_can_be_written(spec: MessageSpec) -> None:
    """APIs that minibroker does not serve, too."""
    for version in spec.versions:
        for request in requests_of(spec, version):
            answer = refusal(request, version, CODE, DETAIL)
            assert answer is not None, f"{APIS[request.API_KEY].name} v{version}"
            frame_of(answer, version)
