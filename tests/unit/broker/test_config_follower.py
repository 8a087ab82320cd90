"""Each kind of configuration reaches the part that goes by it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from minibroker.broker.config_follower import ConfigFollower
from tests.support.evidence import MARKED


class Told:
    """Stands for all of them; writes down what it is told."""

    broker_id = 3

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def config_of(self, entity_type: str, name: str) -> dict[str, str]:
        return {"of": f"{entity_type}/{name}"}

    def __call__(self) -> Told:
        return self

    def __getattr__(self, name: str) -> Any:
        return lambda *arguments: self.calls.append((name, *arguments))


@pytest.mark.parametrize(
    ("entity_type", "name", "call"),
    [
        ("topics", "t", ("set_topic", "t")),
        ("brokers", "<default>", ("set_cluster_default",)),
        ("brokers", "3", ("set_broker",)),
        ("users", "u", ("on_config_changed", "users", "u")),
        ("clients", "c", ("on_config_changed", "clients", "c")),
    ],
)
def test_a_change_goes_where_it_belongs(entity_type: str, name: str, call: tuple[str, ...]) -> None:
    told = Told()
    follower = ConfigFollower(told, told, told, told, told)  # type: ignore[arg-type]
    follower.on_config_changed(entity_type, name)
    assert told.calls == [(*call, {"of": f"{entity_type}/{name}"})]


def test_another_brokers_settings_are_not_ours() -> None:
    told = Told()
    ConfigFollower(told, told, told, told, told).on_config_changed("brokers", "4")  # type: ignore[arg-type]
    assert [call[0] for call in told.calls] == ["on_config_changed"]


def test_a_topic_comes_with_its_configuration_and_goes_without() -> None:
    told = Told()
    follower = ConfigFollower(told, told, told, told, told)  # type: ignore[arg-type]
    topic: Any = SimpleNamespace(name="t")
    follower.on_topic_created(topic)
    follower.on_topic_deleted(topic, MARKED)
    assert told.calls == [("set_topic", "t", {"of": "topics/t"}), ("set_topic", "t", {})]
