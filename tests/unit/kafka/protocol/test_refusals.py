"""`refusals`: the error answers of each API and version, byte for byte."""

import json
from importlib import import_module
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from minibroker.broker.handlers.registry import HANDLERS
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import APIS, load_messages
from minibroker.kafka.protocol.primitives import Reader
from minibroker.kafka.protocol.refusals import refusal
from tests.support.message_bytes import body_of
from tests.support.protocol_values import ValueMaker
from tests.support.reference_codec import MessageSpec, encode, load_specs

CODE = ErrorCode.COORDINATOR_NOT_AVAILABLE
DETAIL = "refused by a rule"
OWN_ITEMS = {4, 5, 27}
"""APIs between brokers whose answers have items of no list of the request."""
NOT_OF_CLIENTS = {*OWN_ITEMS, 6, 7, 56, 67, 83, 84, 85, 86, 87}
SEEDS = range(4)
CHECKSUMS = json.loads(Path(__file__).with_name("refusals.json").read_text("utf-8"))
"""API → CRC-32 of all its answers, a word a version. The broker's handlers wrote these answers by a
function each, before the table came."""
REQUESTS = [
    spec
    for spec in load_specs()
    if spec.key is not None and spec.class_name.endswith("Request") and spec.key not in OWN_ITEMS
]


def requests_of(spec: MessageSpec, version: int) -> list[Any]:
    """Return requests as they are when they were read from bytes."""
    assert spec.key is not None
    request_class, _ = load_messages(spec.key)
    values = [ValueMaker(spec, seed).message(version) for seed in SEEDS]
    return [request_class.read(Reader(encode(spec, value, version)), version) for value in values]


def checksum(spec: MessageSpec, version: int) -> str:
    """Return the CRC-32 of the broker's error answers, with a text and without."""
    assert spec.key is not None
    module = import_module(f"minibroker.broker.handlers.{HANDLERS[spec.key]}")
    refuse = getattr(module, "error_response", refusal)
    crc = 0
    for request in requests_of(spec, version):
        for detail in (DETAIL, None):
            crc = crc32(body_of(refuse(request, version, CODE, detail), version), crc)
    return f"{crc:08x}"


@pytest.mark.parametrize("spec", [spec for spec in REQUESTS if spec.key in HANDLERS], ids=str)
def test_an_error_answer_has_each_item_and_the_code_in_its_place(spec: MessageSpec) -> None:
    name = spec.class_name.removesuffix("Request")
    assert " ".join(checksum(spec, version) for version in spec.versions) == CHECKSUMS[name]


@pytest.mark.parametrize(
    "spec", [spec for spec in REQUESTS if spec.key not in NOT_OF_CLIENTS], ids=str
)
def test_an_error_answer_of_each_api_can_be_written(spec: MessageSpec) -> None:
    """APIs that minibroker does not serve, too."""
    for version in spec.versions:
        for request in requests_of(spec, version):
            answer = refusal(request, version, CODE, DETAIL)
            assert answer is not None, f"{APIS[request.API_KEY].name} v{version}"
            body_of(answer, version)
