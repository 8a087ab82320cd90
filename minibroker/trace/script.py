"""A recorded dialogue as a script: the answers that belong to a request.

    exchanges ─► Script.add … ─► Script.find(request) ─► the answer of then, or why there is none

A request is the same if its API, its version and its fields are: all but the correlation id and the
client id, which the header has, passwords, which are recorded nowhere, names and versions of client
libraries, the order of topics and partitions, and of records the time, the compression and the
producer. A request that was recorded several times gets its answers in their order, and then the
last one again. One that nobody answered counts only where no other was: clients ask, close the
connection and ask again on another one, and whether they do depends on the moment.
"""

from __future__ import annotations

import hashlib
import json
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.protocol.api_keys import API_VERSIONS, APIS
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.conversion import read_records
from minibroker.trace.decode import TOKEN
from minibroker.trace.json_lines import DialogueError
from minibroker.trace.plain_values import Plain, to_plain
from minibroker.trace.subject import describe, learn_names

if TYPE_CHECKING:
    from minibroker.kafka.protocol.message import Message
    from minibroker.trace.exchange import Exchange
    from minibroker.trace.subject import TopicNames

EXCHANGES_MAX: Final = 100_000
"""Exchanges of a script; a longer one is refused."""
UNPACKED_BYTES_MAX: Final = 64 << 20
"""Records of a request that are opened; larger ones are compared as they are."""
_OF_THE_LIBRARY: Final = frozenset(
    {"clientSoftwareName", "clientSoftwareVersion", "clientInstanceId"}
)
_OF_THE_MEMBER: Final = frozenset({"memberId"})
"""Left out in a second look: newer members choose their ids themselves, at random."""


_ORDERED: Final = frozenset({"protocols", "records"})
"""Lists whose order says something."""


class ScriptedAnswer(NamedTuple):
    """The answer of then."""

    answer: Message | None
    """None if none came."""
    duration_ms: float
    """Time until it came."""


class _AnswerQueue:
    """The answers to one request, in their order."""

    def __init__(self) -> None:
        self._answers: deque[ScriptedAnswer] = deque()

    def add(self, answer: ScriptedAnswer) -> None:
        """Add the answer of one more recording of the request."""
        if answer.answer is None and self._answers:
            return
        if self._answers and self._answers[0].answer is None:
            self._answers.clear()
        self._answers.append(answer)

    def take(self) -> ScriptedAnswer:
        """Return the next answer, the last one again and again."""
        return self._answers.popleft() if len(self._answers) > 1 else self._answers[0]


class Script:
    """The requests that were recorded. Used by one thread."""

    def __init__(self) -> None:
        self._exact: dict[str, _AnswerQueue] = {}
        self._loose: dict[str, _AnswerQueue] = {}
        """Without the ids of members."""
        self._subjects: dict[tuple[int, int], list[str]] = {}
        """API key and version → the first subjects that were recorded."""
        self._count = 0
        self.names: TopicNames = {}
        self.versions_answer: Message | None = None
        """An answer to ApiVersions that says which versions there are."""
        self.takes_tokens = False
        """True if a login without headers ended with an empty token, as PLAIN does."""

    def add(self, exchange: Exchange) -> None:
        """Add an exchange; one that could not be read is passed over.

        Raises DialogueError for more than `EXCHANGES_MAX`.
        """
        if exchange.answer is not None:
            learn_names(exchange.answer, self.names)
        self._count += 1
        if self._count > EXCHANGES_MAX:
            raise DialogueError(f"a script has at most {EXCHANGES_MAX:,} exchanges")
        if exchange.api == TOKEN:
            self.takes_tokens = self.takes_tokens or exchange.answer_bytes == 0
        key = _KEYS.get(exchange.api)
        if key is None or exchange.request is None:
            return
        if exchange.answer is None and exchange.answer_bytes is not None:
            return  # there was one, but nobody could read it
        answer = ScriptedAnswer(exchange.answer, exchange.duration_ms or 0.0)
        if key == API_VERSIONS and not getattr(exchange.answer, "error_code", 1):
            self.versions_answer = exchange.answer
        for place, ignored in ((self._exact, frozenset[str]()), (self._loose, _OF_THE_MEMBER)):
            text = _text(key, exchange.version, exchange.request, ignored)
            place.setdefault(text, _AnswerQueue()).add(answer)
        subjects = self._subjects.setdefault((key, exchange.version), [])
        subject = describe(exchange.request, self.names)
        if len(subjects) < 3 and subject not in subjects:
            subjects.append(subject)

    def find(self, api_key: int, version: int, request: Message) -> ScriptedAnswer | None:
        """Return the answer to a request, None if it was not recorded."""
        lines = self._exact.get(_text(api_key, version, request, frozenset()))
        if lines is None:
            lines = self._loose.get(_text(api_key, version, request, _OF_THE_MEMBER))
        return None if lines is None else lines.take()

    def reason(self, api_key: int, version: int) -> str:
        """Return what was recorded in place of a request that was not."""
        api = APIS[api_key]
        subjects = self._subjects.get((api_key, version))
        if subjects:
            about = "; ".join(subject or "no subject" for subject in subjects)
            return f"{api.name} v{version} was recorded about: {about}"
        versions = sorted(number for key, number in self._subjects if key == api_key)
        if versions:
            return f"{api.name} was recorded in version {', '.join(map(str, versions))}"
        return f"{api.name} was never recorded"


_KEYS: Final = {api.name: api.key for api in APIS.values()}


def _text(api_key: int, version: int, request: Message, ignored: frozenset[str]) -> str:
    """Return a text that is equal for requests that are the same."""
    content = _pruned(to_plain(request, version, _of_bytes), _OF_THE_LIBRARY | ignored)
    text = json.dumps([api_key, version, content], sort_keys=True)
    # Requests may have megabytes of records.
    return text if len(text) < 1_000 else hashlib.sha256(text.encode()).hexdigest()


def _pruned(value: Plain, ignored: frozenset[str], name: str = "") -> Plain:
    """Return the value without these fields, with lists in one order where it does not count."""
    if isinstance(value, dict):
        return {
            field: _pruned(part, ignored, field)
            for field, part in value.items()
            if field not in ignored
        }
    if not isinstance(value, list):
        return value
    items = [_pruned(item, ignored, name) for item in value]
    return items if name in _ORDERED else sorted(items, key=json.dumps)


def _of_bytes(name: str, data: bytes) -> Plain:
    """Return keys, values and headers of records; other bytes as they are."""
    if name != "records" or len(data) > UNPACKED_BYTES_MAX:
        return bytes(data).hex()
    try:
        return [
            [
                _hex(record.key),
                _hex(record.value),
                [[key, _hex(part)] for key, part in record.headers],
            ]
            for position, header in iterate_headers(data)
            for record in read_records(data, position, header)
        ]
    except (CorruptionError, KafkaError):
        return bytes(data).hex()


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()
