"""Paths of topics."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker.control import shapes, views
from minibroker.control.bodies import answer
from minibroker.control.messages import HttpError, Response, in_time
from minibroker.control.operations import NOT_RUNNING, OF_WAITS, ControlOperation, list_of
from minibroker.control.scope import KNOWN_S
from minibroker.control.topic_shapes import (
    NewPartitions,
    SettingChange,
    SettingView,
    TopicBody,
    TopicDetail,
    TopicName,
)

if TYPE_CHECKING:
    from minibroker.control.operations import ControlCall
    from minibroker.control.scope import ControlScope
    from minibroker.rig.inner_client import InnerClient


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
    client = scope.controller()
    await topic_changes.create_topic(client, new)
    await _until_known(scope, new.name, client)
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
    client = scope.controller()
    await topic_changes.delete_topic(client, name)
    await _until_known(scope, name, client)
    return answer(TopicName(name=name))


async def add_partitions(scope: ControlScope, call: ControlCall) -> Response:
    """Give a topic more partitions."""
    from minibroker.control import topic_changes  # noqa: PLC0415  as above

    name, client = call.part, scope.controller()
    await topic_changes.add_partitions(client, name, call.body.count)
    await _until_known(scope, name, client)
    return await _show(scope, name)


async def topic_settings(scope: ControlScope, call: ControlCall) -> Response:
    """Return the settings of a topic."""
    from minibroker.control import settings  # noqa: PLC0415  as above

    return answer(await settings.settings_of(scope.client(), settings.TOPIC, call.part))


async def change_topic_settings(scope: ControlScope, call: ControlCall) -> Response:
    """Change settings of a topic."""
    from minibroker.control import settings  # noqa: PLC0415  as above

    client = scope.client()
    views = await settings.change_settings(client, settings.TOPIC, call.part, call.body)
    await in_time(scope.nodes.until_set(("topics",), call.part, client.metadata, KNOWN_S))
    return answer(views)


async def _until_known(scope: ControlScope, topic: str, client: InnerClient) -> None:
    """Wait until the brokers of this process know a topic, or its end, as the broker that was
    asked. Raises HttpError(504).
    """
    await in_time(scope.nodes.until_known(topic, client.metadata, KNOWN_S))


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
        failures=(
            HTTPStatus.NOT_FOUND,
            HTTPStatus.CONFLICT,
            *NOT_RUNNING,
            HTTPStatus.GATEWAY_TIMEOUT,
        ),
    ),
)
