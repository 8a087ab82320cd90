"""kill -9 while clients register schemas: no id that was answered is lost, none is given twice; nor
is one whose schema was deleted for good.

Several clients register new schemas in subjects of their own and in one that all use. The broker
is killed after a random number of answers, starts again, and goes on. `MINIBROKER_CRASHES=500`
(`make crash`) makes 48 kills of it.
"""

from __future__ import annotations

import os
import random
import threading
from http.client import HTTPException
from typing import TYPE_CHECKING

import pytest

from tests.support.broker import Minibroker
from tests.support.processes import free_port
from tests.support.registry_calls import ask, posted, record, register

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 60
KILLS_A_DIRECTORY = 4
DIRECTORIES = max(1, int(os.environ.get("MINIBROKER_CRASHES", "30")) // 40)
CLIENTS = 6


class Registering:
    """Clients that register schemas until the broker is gone."""

    def __init__(self, url: str, turn: int) -> None:
        self._url = url
        self._turn = turn
        self.answered: dict[str, int] = {}
        """Text of a schema → the id that was answered."""
        self.arrived = threading.Semaphore(0)
        self._threads = [
            threading.Thread(target=self._register_all, args=(number,)) for number in range(CLIENTS)
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def _register_all(self, client: int) -> None:
        for number in range(100_000):
            body = posted(record("x", name=f"R{self._turn}_{client}_{number}"))
            subject = f"client-{client}" if number % 3 else "shared"
            try:
                answer = ask(self._url, "POST", f"/subjects/{subject}/versions", body)
            except (OSError, HTTPException):
                return  # it was killed
            assert answer.status == 200, answer
            self.answered[body["schema"].replace(" ", "")] = answer.body["id"]
            self.arrived.release()


@pytest.mark.parametrize("seed", range(DIRECTORIES))
def test_registry_that_is_killed_loses_no_id_and_gives_none_twice(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    broker = Minibroker(
        tmp_path / "data", tmp_path / "log", arguments=["--registry", f"127.0.0.1:{port}"]
    )
    answered: dict[str, int] = {}
    for turn in range(KILLS_A_DIRECTORY):
        broker.start()
        if not turn:
            level = ask(url, "PUT", "/config", {"compatibility": "NONE"})
            assert level.status == 200, level
        registering = Registering(url, turn)
        registering.start()
        for _ in range(chance.randrange(1, 60)):
            assert registering.arrived.acquire(timeout=SECONDS)
        broker.kill()
        registering.join()
        answered |= registering.answered
    broker.start()
    try:
        check(url, answered)
    finally:
        broker.stop()


def check(url: str, answered: dict[str, int]) -> None:
    """Check that every id has its schema, and every version an id of its own text."""
    assert len(set(answered.values())) == len(answered), "an id was given twice"
    schemas, texts = {}, {}
    while page := ask(url, "GET", f"/schemas?offset={len(schemas)}").body:
        for entry in page:
            schemas[entry["subject"], entry["version"]] = entry
            other = texts.setdefault(entry["id"], entry["schema"])
            assert other == entry["schema"], f"id {entry['id']} has two schemas"
    assert len(set(texts.values())) == len(texts), "a schema has two ids"
    lost = {text: number for text, number in answered.items() if texts.get(number) != text}
    assert lost == {}
    last = max(texts)
    new = ask(url, "POST", "/subjects/new/versions", posted(record("y", name="Last")))
    assert new.body["id"] == last + 1


EAGER_CLEANER = {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.initial.task.delay.ms": "0",
    "minibroker.log.cleaner.idle.ms": "100",
}


def in_the_log(directory: Path, text: bytes) -> bool:
    """Return whether a segment has a text, or is being replaced."""
    try:
        return any(text in segment.read_bytes() for segment in directory.glob("*.log"))
    except FileNotFoundError:
        return True


def test_id_of_an_erased_schema_is_not_given_again_after_a_compaction_and_a_kill(
    tmp_path: Path,
) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    # A segment has a batch or two, so that the cleaner takes all but the last ones.
    topic = "_schemas:1:cleanup.policy=compact:segment.bytes=400:delete.retention.ms=0"
    broker = Minibroker(
        tmp_path / "data",
        tmp_path / "log",
        settings=EAGER_CLEANER,
        topics=[topic],
        arguments=["--registry", f"127.0.0.1:{port}"],
    )
    broker.start()
    assert broker.process is not None
    for subject, schema in (("a", '"int"'), ("b", '"long"'), (":.c:a", '"int"')):
        register(url, subject, schema)
    for subject, number in (("b", 2), (":.c:a", 1)):
        text = b'"subject":"%b","version":1,"id":%d' % (subject.encode(), number)
        assert in_the_log(broker.data_dir / "_schemas-0", text)
        for query in ("", "?permanent=true"):
            answer = ask(url, "DELETE", f"/subjects/{subject}{query}")
            assert answer.status == 200, answer
        for level in ("FULL", "NONE") * 4:
            assert ask(url, "PUT", "/config", {"compatibility": level}).status == 200
        broker.process.wait_until(
            lambda text=text: not in_the_log(broker.data_dir / "_schemas-0", text),
            SECONDS,
            f"a compaction without {text!r}",
        )
    broker.kill()
    broker.start()
    try:
        assert register(url, "a", '"string"') == 3
        assert register(url, ":.c:a", '"string"') == 2
        assert ask(url, "GET", "/subjects/b/versions?deleted=true").status == 404
    finally:
        broker.kill()
