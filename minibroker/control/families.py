"""The families of `/metrics`: those of the broker under Kafka's names, and those of this process.

The rule from Kafka's names to Prometheus': domain, type and name of the MBean and the attribute, if
it is not `Value` or `Count`, joined with `_`, in lower case; any other character than a letter or
digit is `_`; further key properties are labels. So

    kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce
    kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"}

A counter ends in `_total`, as Prometheus requires. A histogram is a summary: quantiles since the
start, `_count`, and `_sum` (in ms if Kafka's name says so).

Lists grow with topics and groups, so all text comes in small pieces, and `slices` lets the broker
serve between two pieces. An empty piece is a chance to pause before there is text. The families of
the process come from the kernel by prometheus-client, at most once a second: its collector lists
every open file and connection, 0.2 ms at rest, 10 ms with 9,000 of them. A thread does it, and the
loop runs meanwhile.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest

from minibroker import __version__
from minibroker.broker.cluster.image import NO_CONTROLLER
from minibroker.broker.cluster.internal_topics import OFFSETS_TOPIC
from minibroker.broker.metrics import TIME_NAMES
from minibroker.broker.storage.compaction.cleaner_settings import CleanerMetrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from minibroker.broker.app import Broker
    from minibroker.broker.metrics import TimeSum
    from minibroker.broker.storage.partition_log import PartitionLog

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


@cache
def metric_name(domain: str, type_name: str, name: str = "") -> str:
    """Return the name by the rule above."""
    parts = [domain, type_name, *([name] if name else [])]
    return re.sub(r"[^a-z0-9]", "_", "_".join(parts).lower())


def head(name: str, kind: str, text: str) -> str:
    """Return the lines before the samples of a family; `kind`: `gauge`, `counter` or `summary`."""
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def labels(**values: str) -> str:
    """Return the labels of one sample as text."""
    pairs = [f'{name}="{value.translate(_ESCAPED)}"' for name, value in values.items()]
    return f"{{{','.join(pairs)}}}"


def sample(name: str, value: float, labelled: str = "") -> str:
    """Return the line of a sample; `labelled` is a result of `labels`."""
    return f"{name}{labelled} {float(value)!r}\n"


def gauge(name: str, text: str, value: float) -> str:
    """Return a family with one sample."""
    return head(name, "gauge", text) + sample(name, value)


def counter(name: str, text: str, value: float) -> str:
    """Return a family with one sample; `_total` is added to its name."""
    return head(f"{name}_total", "counter", text) + sample(f"{name}_total", value)


def summary(name: str, api_name: str, times: TimeSum) -> str:
    """Return all samples of the times of an API; the last text again if nothing was added."""
    count, text = times.scraped
    if count != times.count:
        values = (*times.quantiles_ms(QUANTILES), times.count, times.total_us / 1000)
        text = _summary_lines(name, api_name) % values
        times.scraped = times.count, text
    return text


@cache
def _summary_lines(name: str, api_name: str) -> str:
    of_api = f'request="{api_name}"'
    lines = [f'{name}{{{of_api},quantile="{fraction}"}} %r\n' for fraction in QUANTILES]
    return "".join([*lines, f"{name}_count{{{of_api}}} %d.0\n", f"{name}_sum{{{of_api}}} %r\n"])


FRESH_S: Final = 1.0


class ProcessMetrics:
    """The families `process_…`; there are none without `/proc`. The loop owns it."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._one_at_a_time = asyncio.Lock()
        self._text = ""
        self._gathered_s = -FRESH_S

    async def text(self) -> str:
        """Return the families as text of Prometheus."""
        async with self._one_at_a_time:
            if monotonic() - self._gathered_s >= FRESH_S:
                self._text = await asyncio.to_thread(self._gather)
                self._gathered_s = monotonic()
            return self._text

    def _gather(self) -> str:
        return generate_latest(self._registry).decode()


_OF_LOG: Final[tuple[tuple[str, str, Callable[[PartitionLog], int]], ...]] = (
    ("Size", "Bytes in the segments' .log files", lambda log: log.size_bytes),
    ("NumLogSegments", "Segments", lambda log: len(log.segments)),
    ("LogStartOffset", "First offset", lambda log: log.log_start_offset),
    ("LogEndOffset", "Offset of the next record", lambda log: log.log_end_offset),
)
GROUP_STATES: Final = ("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty")


def families(broker: Broker | None) -> Iterator[str]:
    """Yield every family of the broker in small pieces; None stands for a broker that is down."""
    yield head("minibroker_info", "gauge", "Version of minibroker")
    yield sample("minibroker_info", 1, labels(version=__version__))
    yield gauge("minibroker_up", "1 while the broker runs", broker is not None)
    if broker is not None:
        yield from _requests(broker)
        yield from _connections(broker)
        yield from _cluster(broker)
        yield from _logs(broker)
        yield from _groups(broker)
        yield from _cleaner(broker)


def _requests(broker: Broker) -> Iterator[str]:
    of_apis = [
        (metrics.api_name, metrics.by_name())
        for metrics in list(broker.services.metrics.requests.values())
    ]
    name = metric_name("kafka.network", "RequestMetrics", "RequestsPerSec") + "_total"
    yield head(name, "counter", "Requests answered")
    for api_name, times in of_apis:
        yield sample(name, times["TotalTimeMs"].count, labels(request=api_name))
    for time_name in TIME_NAMES if of_apis else ():
        name = metric_name("kafka.network", "RequestMetrics", time_name)
        yield head(name, "summary", f"{time_name} of requests, milliseconds")
        for api_name, times in of_apis:
            yield summary(name, api_name, times[time_name])


def _connections(broker: Broker) -> Iterator[str]:
    metrics = broker.services.metrics
    yield gauge(
        metric_name("kafka.server", "socket-server-metrics", "connection-count"),
        "Connections open",
        metrics.connections,
    )
    yield counter(
        "minibroker_server_refused_connections",
        "Connections refused by max.connections.per.ip",
        metrics.refused_connections,
    )
    yield counter(
        "minibroker_server_malformed_requests",
        "Connections ended for bytes that are no request",
        metrics.malformed_requests,
    )
    yield counter(
        "minibroker_server_failed_authentications",
        "Connections ended because the client did not prove its identity",
        metrics.failed_authentications,
    )
    yield gauge(
        "minibroker_quotas_sensors",
        "Clients whose use is counted for a quota",
        len(broker.services.quotas),
    )


def _cluster(broker: Broker) -> Iterator[str]:
    image = broker.cluster.image
    broker_id = broker.config.broker_id
    total = leaderless = mine = led = offline = behind = 0
    for topic in list(image.topics.values()):
        for partition in topic.partitions:
            total += 1
            leaderless += partition.leader < 0
            mine += broker_id in partition.replicas
            led += partition.leader == broker_id
            offline += broker_id in partition.offline
            behind += partition.leader == broker_id and len(partition.isr) < len(partition.replicas)
            yield ""
    type_name = "KafkaController"
    for name, text, value in (
        ("ActiveControllerCount", "1: this broker is the controller", broker.cluster.is_controller),
        ("GlobalTopicCount", "Topics of the cluster", len(image.topics)),
        ("GlobalPartitionCount", "Partitions of the cluster", total),
        ("OfflinePartitionsCount", "Partitions without a leader", leaderless),
    ):
        yield gauge(metric_name("kafka.controller", type_name, name), text, value)
    has_controller = image.controller_id != NO_CONTROLLER
    yield gauge("minibroker_cluster_controller_known", "1: there is a controller", has_controller)
    yield gauge(
        "minibroker_cluster_controller_epoch", "Epoch of the controller", image.controller_epoch
    )
    age_ms = broker.cluster.requests.metadata_age_ms()
    if age_ms is not None:
        yield gauge(
            "minibroker_cluster_metadata_age_seconds",
            "Time since the controller's last UpdateMetadata request",
            age_ms / 1000,
        )
    for name, text, value in (
        ("PartitionCount", "Partitions with a replica here", mine),
        ("LeaderCount", "Partitions led here", led),
        ("OfflineReplicaCount", "Replicas in offline directories", offline),
        ("UnderReplicatedPartitions", "Partitions led here whose replicas are not all in sync",
         behind),
    ):  # fmt: skip
        yield gauge(metric_name("kafka.server", "ReplicaManager", name), text, value)


def _logs(broker: Broker) -> Iterator[str]:
    logs = broker.logs.logs
    places = list(logs)
    for kafka_name, text, of_log in _OF_LOG:
        name = metric_name("kafka.log", "Log", kafka_name)
        yield head(name, "gauge", text)
        for place in places:
            log = logs.get(place)
            if log is not None:  # not deleted meanwhile; topic names need no escaping
                labelled = f'{{topic="{place.topic}",partition="{place.partition}"}}'
                yield sample(name, of_log(log), labelled)
    yield gauge(
        metric_name("kafka.log", "LogManager", "OfflineLogDirectoryCount"),
        "Log directories that failed",
        sum(directory.is_offline for directory in broker.logs.directories),
    )


def _groups(broker: Broker) -> Iterator[str]:
    if OFFSETS_TOPIC not in broker.cluster.image.topics:
        return
    shards = broker.services.groups.active_shards()
    states: Counter[str] = Counter()
    for shard in shards:
        for group in list(shard.groups.values()):
            states[group.state_name] += 1
            yield ""
    name = metric_name("kafka.coordinator.group", "GroupMetadataManager", "NumGroups")
    yield gauge(name, "Groups coordinated here", states.total())
    for state in GROUP_STATES:
        yield gauge(f"{name}{state.lower()}", f"Groups that are {state}", states[state])
    name = "minibroker_group_committed_offset"
    yield head(name, "gauge", "Offset a group committed")
    for shard in shards:
        for group_id in list(shard.offsets.group_ids()):
            for topic, partitions in list(shard.offsets.of_group(group_id).items()):
                for partition, committed in list(partitions.items()):
                    labelled = labels(group=group_id, topic=topic, partition=str(partition))
                    yield sample(name, committed.offset, labelled)


def _cleaner(broker: Broker) -> Iterator[str]:
    """Yield the families of the cleaner; all are zero while there is no cleaner."""
    cleaner = broker.housekeeping.compaction.cleaner
    now_ms = broker.clock.now_ms()
    metrics = CleanerMetrics(now_ms) if cleaner is None else cleaner.metrics
    manager = "LogCleanerManager"
    of_manager = ("max-dirty-percent", "time-since-last-run-ms")
    for name, value in metrics.by_name(now_ms).items():
        type_name = manager if name in of_manager else "LogCleaner"
        yield gauge(metric_name("kafka.log", type_name, name), f"{name} of the cleaner", value)
    if cleaner is None:
        aside = dict.fromkeys(
            (directory.path for directory in broker.logs.live_directories), (0, 0)
        )
    else:
        aside = cleaner.uncleanable()
    for index, name in enumerate(("uncleanable-partitions-count", "uncleanable-bytes")):
        full_name = metric_name("kafka.log", manager, name)
        yield head(full_name, "gauge", f"{name} of what the cleaner set aside")
        for path, values in aside.items():
            yield sample(full_name, values[index], labels(logdirectory=path))
