"""Fetch: positions, limits, sessions, epochs, topic ids."""

from __future__ import annotations

import gzip
import time
from typing import TYPE_CHECKING, Any

import lz4.frame

from tests.compat.scenarios import scenario
from tests.compat.scenarios.produces import UNKNOWN_ID
from tests.compat.transactional import Producer
from tests.support.batches import GZIP, HEADER, LZ4, TIMESTAMP, Item, batch, describe

if TYPE_CHECKING:
    from tests.compat.dialogue import Dialogue
    from tests.support.wire import Answer

BY_ID = 13
SESSIONS = 7
WHOLE = 1 << 24


class Fetcher:
    """Fetch requests of one dialogue; it knows the ids of its topics."""

    def __init__(self, talk: Dialogue) -> None:
        self.talk = talk
        self.ids: dict[str, bytes] = {}

    def topic(self, name: str, *partitions: dict[str, Any]) -> dict[str, Any]:
        """Return one topic of the request, named as the version demands."""
        return {**self.name_fields(name), "partitions": list(partitions)}

    def name_fields(self, name: str) -> dict[str, Any]:
        if self.talk.version < BY_ID:
            return {"topic": name}
        if name not in self.ids:
            self.ids[name] = self.talk.topic_id(name)
        return {"topic_id": self.ids[name]}

    def ask(self, label: str, *topics: dict[str, Any], **fields: Any) -> Answer:
        """Send Fetch and record the answer, with its records decoded."""
        defaults: dict[str, Any] = {"max_wait_ms": 0, "min_bytes": 0}
        if self.talk.version < 15:
            defaults["replica_id"] = -1
        answer = self.talk.quietly(
            "fetch", self.talk.version, topics=list(topics), **{**defaults, **fields}
        )
        for response in answer["responses"]:
            for partition in response["partitions"]:
                partition["records"] = describe(partition["records"])
        self.talk.note(label, answer)
        return answer


def at(offset: int, partition: int = 0, max_bytes: int = WHOLE, **fields: Any) -> dict[str, Any]:
    """Return one partition of a Fetch request."""
    return {
        "partition": partition,
        "fetch_offset": offset,
        "partition_max_bytes": max_bytes,
        **fields,
    }


def three_batches(talk: Dialogue, name: str = "log", partitions: int = 1) -> str:
    """Make a topic whose partition 0 has batches of 2, 3 and 1 records: offsets 0-1, 2-4, 5."""
    topic = talk.make_topic(name, partitions=partitions)
    talk.produce(topic, batch(b"a", b"b"), batch(b"c", b"d", b"e"), batch(b"f"))
    return topic


@scenario("fetch", since=4)
def fetch_positions(talk: Dialogue) -> None:
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    for offset in range(7):
        fetch.ask(f"offset {offset}", fetch.topic(topic, at(offset)))
    for offset in (7, 100, -1, -2):
        fetch.ask(f"out of range {offset}", fetch.topic(topic, at(offset)))


@scenario("fetch", until=3)
def fetch_old_versions_empty(talk: Dialogue) -> None:
    """Answers of old versions where no record has to be converted."""
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    fetch.ask("at the end", fetch.topic(topic, at(6)))
    fetch.ask("out of range", fetch.topic(topic, at(7)))
    fetch.ask("unknown topic", fetch.topic(talk.topic("unknown"), at(0)))


@scenario("fetch", until=3)
def fetch_old_versions_convert(talk: Dialogue) -> None:
    """Old clients get messages of their format, from within a batch as well."""
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    for offset in (0, 1, 2, 3, 5):
        fetch.ask(f"from {offset}", fetch.topic(topic, at(offset)))
    for limit in (1, 60, 100, 150):
        fetch.ask(f"limit {limit}", fetch.topic(topic, at(0, max_bytes=limit)))


@scenario("fetch", until=3)
def fetch_old_versions_convert_everything(talk: Dialogue) -> None:
    """Keys, nulls, headers (which old formats lack), timestamps, compression."""
    fetch = Fetcher(talk)
    topic = talk.make_topic("rich")
    items = (
        Item(b"value", b"key", TIMESTAMP + 5, ((b"h", b"1"),)),
        Item(None, b"gone", TIMESTAMP + 3),
        Item(b"", b""),
    )
    payload = batch(*items)[HEADER.size :]
    talk.produce(
        topic,
        batch(*items),
        batch(*items, payload=gzip.compress(payload, mtime=0), attributes=GZIP),
        batch(*items, payload=lz4.frame.compress(payload), attributes=LZ4),
    )
    for offset in (0, 3, 4, 6, 8):
        fetch.ask(f"from {offset}", fetch.topic(topic, at(offset)))


@scenario("fetch", until=3)
def fetch_old_versions_convert_append_time(talk: Dialogue) -> None:
    fetch = Fetcher(talk)
    topic = talk.make_topic("stamped", configs={"message.timestamp.type": "LogAppendTime"})
    talk.produce(topic, batch(b"a", b"b"))
    fetch.ask("from 0", fetch.topic(topic, at(0)))


@scenario("fetch", since=4)
def fetch_isolation(talk: Dialogue) -> None:
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    for level in (0, 1):
        fetch.ask(f"level {level}", fetch.topic(topic, at(2)), isolation_level=level)


@scenario("fetch", since=4)
def fetch_limits(talk: Dialogue) -> None:
    """The first batch comes whole at any size; after that the limits cut."""
    fetch = Fetcher(talk)
    topic = three_batches(talk, partitions=2)
    talk.produce(topic, batch(b"g", b"h"), partition=1)
    size = len(batch(b"a", b"b"))
    for limit in (0, 1, size - 1, size, size + 1, size + 20, 2 * size + 10, 3 * size):
        fetch.ask(f"partition limit {limit}", fetch.topic(topic, at(0, max_bytes=limit)))
        fetch.ask(f"request limit {limit}", fetch.topic(topic, at(0), at(0, 1)), max_bytes=limit)
    both = fetch.topic(topic, at(6), at(0, 1))
    fetch.ask("empty one first", both, max_bytes=1)
    fetch.ask("empty one first, negative request limit", both, max_bytes=-1)


@scenario("fetch", since=4)
def fetch_negative_limits(talk: Dialogue) -> None:
    """A negative limit is an error where records are; the next partition has the limit 0."""
    fetch = Fetcher(talk)
    topic = three_batches(talk, partitions=3)
    talk.produce(topic, batch(b"g", b"h"), partition=1)
    for limit in (-1, -(2**31)):
        negative = [at(0, max_bytes=limit), at(0, 1, max_bytes=limit), at(0, 2, max_bytes=limit)]
        fetch.ask(f"partition limit {limit}", fetch.topic(topic, *negative))
        whole = [at(0), at(0, 1), at(0, 2)]
        fetch.ask(f"request limit {limit}", fetch.topic(topic, *whole), max_bytes=limit)
        fetch.ask(f"from the end, limit {limit}", fetch.topic(topic, at(6, max_bytes=limit)))
        fetch.ask(f"too far, limit {limit}", fetch.topic(topic, at(99, max_bytes=limit)))
        mixed = [at(0), at(0, 1, max_bytes=limit), at(2)]
        fetch.ask(f"second limit {limit}", fetch.topic(topic, *mixed))


@scenario("fetch", since=9)
def fetch_negative_epochs(talk: Dialogue) -> None:
    """A negative epoch is none, whatever it is."""
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    for epoch in (-(2**31), -2, -1, 0, 1):
        place = at(0, current_leader_epoch=epoch)
        fetch.ask(f"epoch {epoch}", fetch.topic(topic, place))
        if talk.version >= 12:
            place = at(0, last_fetched_epoch=epoch)
            fetch.ask(f"last epoch {epoch}", fetch.topic(topic, place))


NEVER = 60_000
"""A wait longer than a dialogue's time-out: the answer has to come at once."""
SEGMENT_BYTES = 1 << 20  # the smallest that Kafka 4 takes
EARLY_MS = 10
"""A broker's clock counts whole milliseconds and may end a wait this much early."""


@scenario("fetch", since=4)
def fetch_waits(talk: Dialogue) -> None:
    """With too little data the answer comes when the time is up, with enough at once."""
    fetch = Fetcher(talk)
    topic = three_batches(talk)

    def note_wait(label: str, place: dict[str, Any], wait_ms: int, min_bytes: int) -> None:
        begin = time.monotonic()
        fetch.ask(label, fetch.topic(topic, place), max_wait_ms=wait_ms, min_bytes=min_bytes)
        waited_ms = (time.monotonic() - begin) * 1000
        talk.note(f"{label}: the time is up", waited_ms >= wait_ms - EARLY_MS)

    note_wait("min bytes never reached", at(0), 150, 1 << 20)
    note_wait("nothing new", at(6), 100, 1)
    fetch.ask("error at once", fetch.topic(topic, at(99)), max_wait_ms=NEVER, min_bytes=1)
    fetch.ask("enough at once", fetch.topic(topic, at(0)), max_wait_ms=NEVER, min_bytes=1)
    fetch.ask("no bytes wanted", fetch.topic(topic, at(6)), max_wait_ms=NEVER, min_bytes=0)
    fetch.ask("negative wait", fetch.topic(topic, at(6)), max_wait_ms=-1, min_bytes=1)


@scenario("fetch", since=4)
def fetch_waits_by_segment(talk: Dialogue) -> None:
    """Behind the newest segment no fetch waits; in it bytes count from the offset."""
    fetch = Fetcher(talk)
    topic = talk.make_topic("rolling", configs={"segment.bytes": str(SEGMENT_BYTES)})
    large = batch(bytes(270_000))
    talk.produce(topic, *[large] * 5)  # three and two
    slow = {"max_wait_ms": NEVER, "min_bytes": 2 * SEGMENT_BYTES}
    for offset in range(3):
        fetch.ask(f"older segment from {offset}", fetch.topic(topic, at(offset)), **slow)
    capped = at(0, max_bytes=len(large))
    fetch.ask("older segment, one batch", fetch.topic(topic, capped), **slow)
    enough = {"max_wait_ms": NEVER, "min_bytes": 2 * len(large)}
    fetch.ask("newest segment, enough", fetch.topic(topic, at(3)), **enough)
    over = {"max_wait_ms": 100, "min_bytes": 2 * len(large) + 1}
    fetch.ask("newest segment, one byte more", fetch.topic(topic, at(3)), **over)


@scenario("fetch", since=4)
def fetch_waits_beyond_the_stable_offset(talk: Dialogue) -> None:
    """A read_committed fetch behind the stable offset is answered at once, one at it waits."""
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    producer = Producer(talk).begin_session()
    producer.add(topic, 0)
    producer.produce(topic, b"open")
    talk.produce(topic, batch(b"behind"))
    fields = {"min_bytes": 1, "isolation_level": 1}
    fetch.ask("beyond", fetch.topic(topic, at(7)), max_wait_ms=NEVER, **fields)
    fetch.ask("the end", fetch.topic(topic, at(8)), max_wait_ms=NEVER, **fields)
    fetch.ask("the stable offset", fetch.topic(topic, at(6)), max_wait_ms=100, **fields)
    producer.end(committed=False)


@scenario("fetch", since=4)
def fetch_unknown_places(talk: Dialogue) -> None:
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    fetch.ask("partition", fetch.topic(topic, at(0), at(0, 7), at(0, -1)))
    if talk.version < BY_ID:
        fetch.ask("topic", fetch.topic(talk.topic("unknown"), at(0)), fetch.topic(topic, at(5)))
        fetch.ask("illegal", fetch.topic("a/b", at(0)))
    else:
        unknown = {"topic_id": UNKNOWN_ID, "partitions": [at(0)]}
        fetch.ask("topic", unknown, fetch.topic(topic, at(5)))
        fetch.ask("zero id", {"topic_id": bytes(16), "partitions": [at(0)]})
    fetch.ask("no topics")


@scenario("fetch", since=5)
def fetch_log_start(talk: Dialogue) -> None:
    """A consumer sends -1 as its log start offset; any other value has no effect."""
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    fetch.ask("zero", fetch.topic(topic, at(0, log_start_offset=0)))


@scenario("fetch", since=9)
def fetch_leader_epochs(talk: Dialogue) -> None:
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    for epoch in (-1, 0, 1, 9):
        fetch.ask(f"current {epoch}", fetch.topic(topic, at(5, current_leader_epoch=epoch)))


@scenario("fetch", since=12)
def fetch_diverging_epochs(talk: Dialogue) -> None:
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    for last, offset in ((-1, 5), (0, 5), (0, 6), (0, 7), (1, 5), (0, 99)):
        fetch.ask(
            f"last fetched {last} at {offset}",
            fetch.topic(topic, at(offset, last_fetched_epoch=last, current_leader_epoch=0)),
        )


@scenario("fetch", since=SESSIONS)
def fetch_session(talk: Dialogue) -> None:
    """KIP-227: the first answer is complete, the next ones have the changes."""
    fetch = Fetcher(talk)
    topic = three_batches(talk, partitions=3)
    whole = fetch.topic(topic, at(0), at(0, 1), at(0, 2))
    first = fetch.ask("open", whole, session_id=0, session_epoch=0)
    session = first["session_id"]
    fetch.ask("advance one", fetch.topic(topic, at(6)), session_id=session, session_epoch=1)
    fetch.ask("nothing changed", session_id=session, session_epoch=2)
    talk.produce(topic, batch(b"new"), partition=1)
    fetch.ask("partition 1 grew", session_id=session, session_epoch=3)
    fetch.ask("not advanced: again", session_id=session, session_epoch=4)
    forgotten = [{**fetch.name_fields(topic), "partitions": [1]}]
    fetch.ask("forget it", session_id=session, session_epoch=5, forgotten_topics_data=forgotten)
    talk.produce(topic, batch(b"newer"), partition=2)
    fetch.ask("partition 2 grew", session_id=session, session_epoch=6)
    fetch.ask("epoch too old", session_id=session, session_epoch=6)
    fetch.ask("epoch too new", session_id=session, session_epoch=9)
    fetch.ask("still good", session_id=session, session_epoch=7)
    fetch.ask("out of range", fetch.topic(topic, at(77)), session_id=session, session_epoch=8)
    fetch.ask("error again", session_id=session, session_epoch=9)
    fetch.ask("close", session_id=session, session_epoch=-1)
    fetch.ask("closed", session_id=session, session_epoch=10)


@scenario("fetch", since=SESSIONS)
def fetch_session_refused(talk: Dialogue) -> None:
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    whole = fetch.topic(topic, at(5))
    fetch.ask("unknown session", whole, session_id=4711, session_epoch=1)
    fetch.ask("no session wanted", whole, session_id=0, session_epoch=-1)
    fetch.ask("no session, epoch 1", whole, session_id=0, session_epoch=1)
    fetch.ask("close an unknown one", whole, session_id=4711, session_epoch=-1)
    answer = fetch.ask("open", whole, session_id=0, session_epoch=0)
    fetch.ask("open anew", whole, session_id=answer["session_id"], session_epoch=0)
    fetch.ask("empty session", session_id=0, session_epoch=0)


@scenario("fetch", since=SESSIONS)
def fetch_session_unknown_partition(talk: Dialogue) -> None:
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    answer = fetch.ask("open", fetch.topic(topic, at(6), at(0, 5)), session_id=0, session_epoch=0)
    session = answer["session_id"]
    fetch.ask("error comes again", session_id=session, session_epoch=1)


@scenario("fetch", since=BY_ID)
def fetch_session_unknown_topic_id(talk: Dialogue) -> None:
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    unknown = {"topic_id": UNKNOWN_ID, "partitions": [at(0)]}
    answer = fetch.ask("open", fetch.topic(topic, at(6)), unknown, session_id=0, session_epoch=0)
    fetch.ask("again", session_id=answer["session_id"], session_epoch=1)


@scenario("fetch", since=SESSIONS, until=BY_ID - 1)
def fetch_session_topic_appears(talk: Dialogue) -> None:
    fetch = Fetcher(talk)
    name = talk.topic("later")
    answer = fetch.ask("open", fetch.topic(name, at(0)), session_id=0, session_epoch=0)
    session = answer["session_id"]
    talk.make_topic("later")
    talk.produce(name, batch(b"a"))
    fetch.ask("now there", session_id=session, session_epoch=1)


@scenario("fetch", since=11)
def fetch_rack(talk: Dialogue) -> None:
    fetch = Fetcher(talk)
    topic = three_batches(talk)
    fetch.ask("rack", fetch.topic(topic, at(5)), rack_id="somewhere")


@scenario("fetch", since=4)
def fetch_several_topics(talk: Dialogue) -> None:
    """The order of the answer is the order of the request."""
    fetch = Fetcher(talk)
    first, second = three_batches(talk, "z"), three_batches(talk, "a")
    fetch.ask("two", fetch.topic(first, at(5)), fetch.topic(second, at(2)))
    fetch.ask("swapped", fetch.topic(second, at(5)), fetch.topic(first, at(5)))
