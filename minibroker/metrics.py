"""Counters and request times under Kafka's names: plain objects, read by whoever shows them.

Kafka splits the time of a request (`kafka.network:type=RequestMetrics`, behaviour row R8) into

| name                | from … to                                                              |
|---------------------|------------------------------------------------------------------------|
| RequestQueueTimeMs  | its bytes are here … its handler starts                                |
| LocalTimeMs         | the handler runs                                                       |
| RemoteTimeMs        | it waits: long poll, other replicas, a task                            |
| ThrottleTimeMs      | quotas hold it back                                                    |
| ResponseQueueTimeMs | it is answered … its bytes go to the socket                            |
| ResponseSendTimeMs  | the socket takes its bytes                                             |
| TotalTimeMs         | the sum                                                                |

A time is added to a sum and to a histogram whose bucket b holds 2^(b-1) ≤ t < 2^b microseconds.
Requests that one read of a socket brought are handled together and counted together: a clock call
per request would be a tenth of its cost. Here a request is handled as soon as it is read, so the
request queue stays empty, and remote time is counted for those that waited only.
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
"""2^39 µs are six days: no request lives longer."""
LONGEST_US: Final = (1 << (BUCKET_COUNT - 1)) - 1
"""Only a throttle may be longer; it is counted as this."""


class TimeSum:
    """How often, how long in all (µs), and the histogram of one of the times of one API."""

    __slots__ = ("__weakref__", "buckets", "count", "max_us", "total_us")

    def __init__(self) -> None:
        self.count = 0
        self.total_us = 0
        self.max_us = 0
        self.buckets = [0] * BUCKET_COUNT

    def add(self, elapsed_us: int, count: int = 1) -> None:
        """Count `count` equal times in microseconds (0 or more)."""
        self.count += count
        self.total_us += elapsed_us * count
        self.buckets[elapsed_us.bit_length()] += count
        self.max_us = max(self.max_us, elapsed_us)

    @property
    def mean_ms(self) -> float:
        """Average in milliseconds; 0.0 when nothing was counted."""
        return self.total_us / self.count / 1000 if self.count else 0.0

    def quantiles_ms(self, fractions: Sequence[float]) -> list[float]:
        """Upper edges (ms) of the buckets in which these fractions (0 … 1) of all are reached."""
        reached = list(accumulate(self.buckets))
        buckets = [bisect_left(reached, max(1.0, one * self.count)) for one in fractions]
        return [min(1 << bucket, self.max_us) / 1000 for bucket in buckets]


class RequestMetrics:
    """The times of one API, and how often it was asked and failed."""

    __slots__ = (
        "api_name",
        "local",
        "remote",
        "request_queue",
        "response_queue",
        "response_send",
        "throttle",
        "total",
    )

    def __init__(self, api_name: str) -> None:
        self.api_name = api_name
        self.request_queue = TimeSum()
        self.local = TimeSum()
        self.remote = TimeSum()
        self.throttle = TimeSum()
        self.response_queue = TimeSum()
        self.response_send = TimeSum()
        self.total = TimeSum()

    def record(
        self, count: int, local_ns: int, remote_ns: int, queue_ns: int, send_ns: int
    ) -> None:
        """Count `count` requests that were read, answered and sent together.

        The times are those of all of them: the handlers' (shared out evenly), the wait of the one
        that waited, encoding, and handing the bytes to the socket.
        """
        self.local.add(local_ns // (1000 * count), count)
        if remote_ns:
            self.remote.add(remote_ns // 1000, count)
        self.response_queue.add(queue_ns // 1000, count)
        self.response_send.add(send_ns // 1000, count)
        self.total.add((local_ns + remote_ns + queue_ns + send_ns) // 1000, count)

    def by_name(self) -> dict[str, TimeSum]:
        """Kafka's metric name → times, in the order of `TIME_NAMES`."""
        times = (
            self.request_queue,
            self.local,
            self.remote,
            self.throttle,
            self.response_queue,
            self.response_send,
            self.total,
        )
        return dict(zip(TIME_NAMES, times, strict=True))


class Metrics:
    """Everything that is counted; one instance per broker."""

    __slots__ = ("connections", "malformed_requests", "refused_connections", "requests")

    def __init__(self) -> None:
        self.requests: dict[str, RequestMetrics] = {}
        self.connections = 0
        self.refused_connections = 0
        self.malformed_requests = 0

    def of_api(self, api_name: str) -> RequestMetrics:
        """The times of an API, made at its first request."""
        metrics = self.requests.get(api_name)
        if metrics is None:
            metrics = self.requests[api_name] = RequestMetrics(api_name)
        return metrics
