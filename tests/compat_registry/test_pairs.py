"""125 changes of schemas, in both directions, beside Apicurio's registry: 750 calls to each.

`make registry-calls` asks Apicurio's registry anew; here its recorded answers count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.testing import Broker
from tests.compat_registry.differences import DIFFERENCES
from tests.compat_registry.pairs import pairs
from tests.compat_registry.verdicts import Verdict, load, title, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = ("AVRO", "JSON", "PROTOBUF")
RECORDED = load()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(registry=True) as broker:
        yield broker


def expected(name: str) -> Verdict:
    """Return our answer on a pair: Apicurio's, but for the known differences."""
    difference = DIFFERENCES.get(name)
    if difference is None:
        return RECORDED[name]
    return {**RECORDED[name], "backward": difference.backward, "forward": difference.forward}


def test_every_pair_was_recorded() -> None:
    assert [title(pair) for pair in pairs()] == [*RECORDED]
    assert DIFFERENCES.keys() <= RECORDED.keys()
    assert [name for name in DIFFERENCES if expected(name) == RECORDED[name]] == []


@pytest.mark.parametrize("kind", KINDS)
def test_both_registries_agree_but_where_documentation_decides(broker: Broker, kind: str) -> None:
    own = {title(pair): verdict(broker.registry_url, pair) for pair in pairs() if pair.kind == kind}
    assert {name: own[name] for name in own if own[name] != expected(name)} == {}
