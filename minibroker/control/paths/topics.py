"""Paths of topics."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control import shapes, views
from minibroker.control.bodies import answer
from minibroker.control.messages import HttpError, Response
from minibroker.control.operations import NOT_RUNNING, OF_WAITS, ControlOperation, list_of
from minibroker.control.topic_shapes import (
    NewPartitions,
    SettingChange,
    SettingView,
    TopicBody,
    TopicDetail,
    TopicName,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.broker.cluster.image import TopicImage
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope

KNOWN_S: Final = 10.0
"""Longest wait until all brokers of this process know a change."""


async def topics(scope: ControlScope, _: ControlCall) -> Response:
    """Return the topics."""
    return Response(HTTPStatus.OK, await scope.slices.join(views.topics_of(scope.brokers)))


async def wait_for_consumer(scope: ControlScope, call: ControlCall) -> Response:
    """Wait until consumers fetch from a topic."""
    query: shapes.ConsumerQuery = call.query
    waits = scope.nodes.waits.for_consumer(
        call.part,
        partitions=None if query.partition is None else [query.partition],
        client_id=query.client_id,
        timeout_s=query.timeout_ms / 1000,
    )
    return answer(views.offsets_of(await scope.waiting.result(call.request, waits)))


async def create_topic(scope: ControlScope, call: ControlCall) -> Response:
    """Make a topic."""
    from minibroker.control import topic_changes  # noqa: PLC0415  messages that few starts need

    new: TopicBody = call.body
    await topic_changes.create_topic(scope.controller(), new)
    await _until_all_know(scope, lambda topics: new.name in topics, f"topic {new.name}")
    response = await _show(scope, new.name)
    return response._replace(
        status=HTTPStatus.CREATED, headers=(("Location", f"/topics/{new.name}"),)
    )


async def show_topic(scope: ControlScope, call: ControlCall) -> Response:
    """Return a topic in full."""
    return await _show(scope, call.part)


async def _show(scope: ControlScope, name: str) -> Response:
    brokers = scope.brokers
    topic = brokers[0].cluster.image.topics.get(name)
    if topic is None:
        raise HttpError(HTTPStatus.NOT_FOUND, f"there is no topic {name!r:.300}")
    return Response(HTTPStatus.OK, await scope.slices.join(views.topic_of(brokers, topic)))


async def delete_topic(scope: ControlScope, call: ControlCall) -> Response:
    """Delete a topic."""
    from minibroker.control import topic_changes  # noqa: PLC0415  as above

    name = call.part
    await topic_changes.delete_topic(scope.controller(), name)
    await _until_all_know(scope, lambda topics: name not in topics, f"topic {name} is gone")
    return answer(TopicName(name=name))


async def add_partitions(scope: ControlScope, call: ControlCall) -> Response:
    """Give a topic more partitions."""
    from minibroker.control import topic_changes  # noqa: PLC0415  as above

    name, count = call.part, call.body.count
    await topic_changes.add_partitions(scope.controller(), name, count)
    await _until_all_know(
        scope,
        lambda topics: name not in topics or len(topics[name].partitions) >= count,
        f"the partitions of {name}",
    )
    return await _show(scope, name)


async def topic_settings(scope: ControlScope, call: ControlCall) -> Response:
    """Return the settings of a topic."""
    from minibroker.control import settings  # noqa: PLC0415  as above

    return answer(await settings.settings_of(scope.client(), settings.TOPIC, call.part))


async def change_topic_settings(scope: ControlScope, call: ControlCall) -> Response:
    """Change settings of a topic."""
    from minibroker.control import settings  # noqa: PLC0415  as above

    client = scope.client()
    return answer(await settings.change_settings(client, settings.TOPIC, call.part, call.body))


async def _until_all_know(
    scope: ControlScope, holds: Callable[[Mapping[str, TopicImage]], bool], subject: str
) -> None:
    """Wait until the brokers of this process know a change. Raises HttpError(504)."""
    try:
        await scope.nodes.until(
            lambda: all(holds(node.app.cluster.image.topics) for node in scope.nodes.active),
            f"the brokers know {subject}",
            KNOWN_S,
        )
    except TimeoutError as error:
        raise HttpError(HTTPStatus.GATEWAY_TIMEOUT, str(error)) from None


OPERATIONS: Final = (
    ControlOperation(
        "topics",
        "GET",
        "/topics",
        "Topics with their partitions and offsets",
        topics,
        list_of(shapes.TopicView),
        failures=NOT_RUNNING,
    ),
    ControlOperation(
        "wait_for_consumer",
        "GET",
        "/topics/{topic}/consumer",
        "Wait until consumers fetch from a topic's partitions, with a group or without",
        wait_for_consumer,
        list_of(shapes.CommittedView),
        query=shapes.ConsumerQuery,
        failures=OF_WAITS,
    ),
    ControlOperation(
        "create_topic",
        "POST",
        "/topics",
        "Make a topic",
        create_topic,
        TopicDetail,
        body=TopicBody,
        status=HTTPStatus.CREATED,
        failures=(HTTPStatus.CONFLICT, *NOT_RUNNING, HTTPStatus.GATEWAY_TIMEOUT),
    ),
    ControlOperation(
        "show_topic",
        "GET",
        "/topics/{topic}",
        "One topic with its partitions in full",
        show_topic,
        TopicDetail,
        failures=(HTTPStatus.NOT_FOUND, *NOT_RUNNING),
    ),
    ControlOperation(
        "delete_topic",
        "DELETE",
        "/topics/{topic}",
        "Delete a topic with its records",
        delete_topic,
        TopicName,
        failures=(
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            *NOT_RUNNING,
            HTTPStatus.GATEWAY_TIMEOUT,
        ),
    ),
    ControlOperation(
        "add_partitions",
        "POST",
        "/topics/{topic}/partitions",
        "Give a topic more partitions",
        add_partitions,
        TopicDetail,
        body=NewPartitions,
        failures=(
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            *NOT_RUNNING,
            HTTPStatus.GATEWAY_TIMEOUT,
        ),
    ),
    ControlOperation(
        "topic_settings",
        "GET",
        "/topics/{topic}/configs",
        "The settings of a topic, with the place that each value comes from",
        topic_settings,
        list_of(SettingView),
        failures=(HTTPStatus.NOT_FOUND, *NOT_RUNNING),
    ),
    ControlOperation(
        "change_topic_settings",
        "POST",
        "/topics/{topic}/configs",
        "Change settings of a topic",
        change_topic_settings,
        list_of(SettingView),
        body=SettingChange,
        failures=(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, *NOT_RUNNING),
    ),
)
