"""Counters and request times under Kafka's names: plain objects that the control API reads.

Kafka splits the time of a request (`kafka.network:type=RequestMetrics`) into

| name                | from … to                                                              |
|---------------------|------------------------------------------------------------------------|
| RequestQueueTimeMs  | its bytes have arrived … its handler starts                            |
| LocalTimeMs         | the handler runs                                                       |
| RemoteTimeMs        | it waits: long poll, other replicas, a task                            |
| ThrottleTimeMs      | quotas delay it                                                        |
| ResponseQueueTimeMs | it is answered … its bytes go to the socket                            |
| ResponseSendTimeMs  | the socket takes its bytes                                             |
| TotalTimeMs         | the sum                                                                |

A time is added to a sum and to a histogram whose bucket b holds 2^(b-1) ≤ t < 2^b microseconds.
The requests of one read of a socket are handled together and counted together, because a clock
call per request would be a tenth of its cost. A request is handled as soon as it is read, so the
request queue stays empty. Remote time is counted only for requests that waited.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

TIME_NAMES: Final = (
    "RequestQueueTimeMs",
    "LocalTimeMs",
    "RemoteTimeMs",
    "ThrottleTimeMs",
    "ResponseQueueTimeMs",
    "ResponseSendTimeMs",
    "TotalTimeMs",
)
BUCKET_COUNT: Final = 40
"""2^39 µs are six days; no request lives longer."""
LONGEST_US: Final = (1 << (BUCKET_COUNT - 1)) - 1
"""Longest counted time; only a throttle may be longer."""


class TimeSum:
    """A kind of time of one API: how often, the sum in µs, and a histogram. The loop owns it."""

    __slots__ = ("buckets", "count", "max_us", "scraped", "total_us")

    def __init__(self) -> None:
        self.count = 0
        self.total_us = 0
        self.max_us = 0
        self.buckets = [0] * BUCKET_COUNT
        self.scraped = (-1, "")
        """Count and text of the last scrape, the exporter's: most APIs are idle between two."""

    def add(self, elapsed_us: int, count: int = 1) -> None:
        """Count `count` equal times of `elapsed_us` microseconds (0 or more)."""
        self.count += count
        self.total_us += elapsed_us * count
        self.buckets[elapsed_us.bit_length()] += count
        self.max_us = max(self.max_us, elapsed_us)

    def quantiles_ms(self, fractions: Sequence[float]) -> list[float]:
        """Return, for each fraction (0 … 1), the upper edge in ms of the bucket that reaches it."""
        sums = list(accumulate(self.buckets))
        buckets = [bisect_left(sums, max(1.0, fraction * self.count)) for fraction in fractions]
        return [min(1 << bucket, self.max_us) / 1000 for bucket in buckets]


class RequestMetrics:
    """The times of an API, and its numbers of requests and errors. The loop owns it."""

    __slots__ = (
        "_local",
        "_remote",
        "_request_queue",
        "_response_queue",
        "_response_send",
        "_total",
        "api_name",
        "throttle",
    )

    def __init__(self, api_name: str) -> None:
        self.api_name = api_name
        self._request_queue = TimeSum()
        self._local = TimeSum()
        self._remote = TimeSum()
        self.throttle = TimeSum()
        self._response_queue = TimeSum()
        self._response_send = TimeSum()
        self._total = TimeSum()

    def record(
        self, count: int, local_ns: int, remote_ns: int, queue_ns: int, send_ns: int
    ) -> None:
        """Count `count` requests that were read, answered and sent together.
        The times are those of all of them: of the handlers (divided evenly), of the request that
        waited, of encoding, and of the write to the socket.
        """
        self._local.add(local_ns // (1000 * count), count)
        if remote_ns:
            self._remote.add(remote_ns // 1000, count)
        self._response_queue.add(queue_ns // 1000, count)
        self._response_send.add(send_ns // 1000, count)
        self._total.add((local_ns + remote_ns + queue_ns + send_ns) // 1000, count)

    def by_name(self) -> dict[str, TimeSum]:
        """Return Kafka's metric name → times, in the order of `TIME_NAMES`."""
        times = (
            self._request_queue,
            self._local,
            self._remote,
            self.throttle,
            self._response_queue,
            self._response_send,
            self._total,
        )
        return dict(zip(TIME_NAMES, times, strict=True))


class Metrics:
    """All counters of a broker. The loop owns it."""

    __slots__ = (
        "connections",
        "failed_authentications",
        "malformed_requests",
        "refused_connections",
        "requests",
    )

    def __init__(self) -> None:
        self.requests: dict[str, RequestMetrics] = {}
        self.connections = 0
        self.refused_connections = 0
        self.malformed_requests = 0
        self.failed_authentications = 0

    def of_api(self, api_name: str) -> RequestMetrics:
        """Return the counters of an API; the first request of the API makes them."""
        metrics = self.requests.get(api_name)
        if metrics is None:
            metrics = self.requests[api_name] = RequestMetrics(api_name)
        return metrics
