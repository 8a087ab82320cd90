"""The eight scopes, their order, and who shares a limit."""

from __future__ import annotations

import pytest

from minibroker.broker.quotas.limits import Limits, split_entity

ANY = "<default>"
SCOPES: list[tuple[str | None, str | None]] = [
    ("u", "c"),
    ("u", ANY),
    ("u", None),
    (ANY, "c"),
    (ANY, ANY),
    (ANY, None),
    (None, "c"),
    (None, ANY),
]
TAGS = [("u", "c"), ("u", "c"), ("u", ""), ("u", "c"), ("u", "c"), ("u", ""), ("", "c"), ("", "c")]


@pytest.mark.parametrize("first", range(8))
def test_the_first_scope_that_has_a_limit_decides(first: int) -> None:
    limits = Limits()
    for place in range(7, first - 1, -1):
        limits.set(*SCOPES[place], float(place))
    tags = limits.tags("u", "c")
    assert tags == TAGS[first]
    assert limits.limit(tags) == float(first)


def test_worked_example() -> None:
    limits = Limits()
    limits.set("good-user", None, 100e6)
    limits.set("good-user", "producer-1", 50e6)
    assert limits.limit(limits.tags("good-user", "producer-1")) == 50e6
    assert limits.limit(limits.tags("good-user", "producer-2")) == 100e6
    assert limits.limit(limits.tags("other", "producer-1")) is None


def test_without_limits_nobody_has_one() -> None:
    limits = Limits()
    assert not limits
    assert limits.limit(limits.tags("u", "c")) is None


def test_all_client_ids_of_a_user_share_its_limit_and_pairs_do_not() -> None:
    limits = Limits()
    limits.set("u", None, 1.0)
    assert limits.tags("u", "a") == limits.tags("u", "b") == ("u", "")
    limits.set("u", ANY, 2.0)
    assert limits.tags("u", "a") != limits.tags("u", "b")


def test_default_is_nobodys_own_name() -> None:
    limits = Limits()
    limits.set(None, ANY, 1.0)
    assert limits.limit(limits.tags("u", "%3Cdefault%3E")) == 1.0
    limits.set(None, "%3Cdefault%3E", 2.0)
    assert limits.limit(limits.tags("u", "%3Cdefault%3E")) == 2.0
    assert limits.limit(limits.tags("u", "c")) == 1.0


def test_a_client_without_an_id_is_met_by_users_only() -> None:
    limits = Limits()
    limits.set(None, ANY, 1.0)
    assert limits.limit(limits.tags("u", "")) is None
    limits.set(ANY, None, 2.0)
    assert limits.limit(limits.tags("u", "")) == 2.0


def test_setting_tells_whether_it_changed_anything() -> None:
    limits = Limits()
    assert limits.set("u", None, 1.0)
    assert not limits.set("u", None, 1.0)
    assert limits.set("u", None, None)
    assert not limits.set("u", None, None)
    assert not limits


@pytest.mark.parametrize(
    ("entity_type", "name", "entity"),
    [
        ("users", "u", ("u", None)),
        ("users", "u/clients/c", ("u", "c")),
        ("users", "<default>/clients/<default>", (ANY, ANY)),
        ("clients", "c", (None, "c")),
    ],
)
def test_entity_of_a_node(
    entity_type: str, name: str, entity: tuple[str | None, str | None]
) -> None:
    assert split_entity(entity_type, name) == entity
