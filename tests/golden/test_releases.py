"""A broker that passes for a release answers as that release of Apache Kafka was recorded to."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.testing import Broker
from tests.golden.release_dialogues import DIALOGUES, RELEASES, SETTINGS, Peer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

STORED = Path(__file__).parent / "releases"
DIFFERENCES: dict[tuple[str, str], str] = {
    ("0.11", "deleted_topics"): "takes deletions though delete.topic.enable is false, and keeps"
    " them until it is true; here they are refused, as later",
}
"""(release, dialogue) → why the answers differ."""


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def peer(release: str) -> Iterator[Peer]:
    with Broker(version=release, config=SETTINGS) as broker:
        host, _, port = broker.bootstrap.rpartition(":")
        yield Peer(host, int(port))


@pytest.mark.parametrize("dialogue", DIALOGUES, ids=lambda dialogue: dialogue.__name__)
def test_answers_are_those_of_the_release(
    peer: Peer, release: str, dialogue: Callable[[Peer], Any]
) -> None:
    recorded = json.loads((STORED / f"{release}.json").read_text())[dialogue.__name__]
    answers = json.loads(json.dumps(dialogue(peer)))
    if (release, dialogue.__name__) in DIFFERENCES:
        assert answers != recorded, "a known difference is gone: take it off the list"
    else:
        assert answers == recorded
