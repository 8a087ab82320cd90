"""The shapes of topics in full, and of settings."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta, field

from minibroker.control.shapes import AnswerShape, Count, QueryShape

Setting = Annotated[str, Meta(max_length=32 << 10)]
SETTINGS_MAX: Final = 500


class TopicBody(QueryShape):
    """A topic to make."""

    name: Annotated[str, Meta(max_length=1000)]
    partitions: (
        Annotated[int, Meta(ge=1, le=10_000, description="Missing: `num.partitions`.")] | None
    ) = None
    replicas: (
        Annotated[int, Meta(ge=1, le=1000, description="Missing: `default.replication.factor`.")]
        | None
    ) = None
    configs: Annotated[dict[str, Setting], Meta(max_length=SETTINGS_MAX)] = field(
        default_factory=dict
    )


class NewPartitions(QueryShape):
    """The number of partitions that a topic is to have."""

    count: Annotated[int, Meta(ge=1, le=10_000)]


class PartitionDetail(AnswerShape):
    """A partition in full; offsets are -1 where a broker of another process leads it."""

    partition: int
    leader: Annotated[int, Meta(description="The id of the leader, -1 where there is none.")]
    leader_epoch: int
    replicas: list[int]
    in_sync: list[int]
    offline: list[int]
    log_start_offset: int
    last_stable_offset: Annotated[
        int, Meta(description="The first offset that an open transaction may still change.")
    ]
    high_watermark: int
    log_end_offset: int
    size_bytes: int
    segments: int


class TopicDetail(AnswerShape):
    """A topic in full."""

    name: str
    topic_id: Annotated[str, Meta(description="As Kafka writes it: 22 letters and digits.")]
    internal: bool
    partitions: list[PartitionDetail]


class TopicName(AnswerShape):
    """A topic that was deleted."""

    name: str


class SettingLayer(AnswerShape):
    """A place that gives a setting a value; the first one counts."""

    name: str
    value: str | None
    source: str


class SettingView(AnswerShape):
    """A setting of a topic or a broker."""

    name: str
    value: Annotated[str, Meta(description="Null: a secret, or none.")] | None
    source: Annotated[
        str, Meta(description="Kafka's name, such as `DYNAMIC_TOPIC_CONFIG`, `DEFAULT_CONFIG`.")
    ]
    is_default: bool
    read_only: bool
    sensitive: bool
    type: Annotated[str, Meta(description="Kafka's name, such as `INT`, `LIST`.")]
    documentation: str | None
    synonyms: list[SettingLayer]


class SettingChange(QueryShape):
    """Settings to change, all of them or none."""

    set: Annotated[dict[str, Setting], Meta(max_length=SETTINGS_MAX)] = field(default_factory=dict)
    reset: Annotated[
        list[str],
        Meta(max_length=SETTINGS_MAX, description="Back to the value of the layer below."),
    ] = field(default_factory=list)


class BrokerQuery(QueryShape):
    """A choice of a broker of this process."""

    broker_id: Annotated[Count, Meta(description="Missing: this one.")] | None = None
