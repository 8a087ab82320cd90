"""Sensors: who shares them, what changes of limits do to them, how long they live, their cost."""

from __future__ import annotations

import gc
import sys
from types import FunctionType, ModuleType

import pytest

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.quotas import manager
from minibroker.broker.quotas.limits import Limits, split_entity
from minibroker.broker.quotas.manager import SILENCE_MS_MAX, QuotaManager
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from tests.support.in_process import ManualClock

ME = ("User:me", "app")
HOUR_MS = 3_600_000
BYTES_PER_SAMPLE = 24


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def quotas(clock: ManualClock) -> QuotaManager:
    return QuotaManager(BrokerConfig({}), clock)


def limit(quotas: QuotaManager, entity_type: str, name: str, **values: str) -> None:
    quotas.on_config_changed(entity_type, name, values)


def test_nothing_is_counted_while_no_limit_is_set(quotas: QuotaManager) -> None:
    assert not quotas.is_active
    assert quotas.record_produce(ME, 10**12) == 0
    assert len(quotas) == 0


def test_bytes_over_the_limit_wait_until_the_rate_is_down(
    quotas: QuotaManager, clock: ManualClock
) -> None:
    limit(quotas, "clients", "app", producer_byte_rate="1000")
    assert quotas.is_active
    assert quotas.record_produce(ME, 10_000) == 0
    assert quotas.record_produce(ME, 5_000) == 5000
    clock.advance(5000)
    assert quotas.record_produce(ME, 0) == 5000  # ten windows from the burst are not over yet
    clock.advance(6000)
    assert quotas.record_produce(ME, 0) == 0


def test_connections_of_one_user_and_client_id_share(quotas: QuotaManager) -> None:
    limit(quotas, "users", "<default>/clients/<default>", producer_byte_rate="1000")
    assert quotas.record_produce(ME, 10_000) == 0
    assert quotas.record_produce(("User:me", "other"), 10_000) == 0
    assert quotas.record_produce(("User:me", "app"), 10_000) > 0


def test_a_user_name_is_looked_up_as_the_tree_spells_it(quotas: QuotaManager) -> None:
    limit(quotas, "users", "CN%3Da%20b", producer_byte_rate="1")
    assert quotas.record_produce(("User:CN=a b", "x"), 100) > 0


def test_each_quota_is_resolved_by_itself(quotas: QuotaManager) -> None:
    limit(quotas, "users", "me", producer_byte_rate="1")
    limit(quotas, "clients", "app", consumer_byte_rate="1")
    assert quotas.record_produce(ME, 100) > 0
    assert quotas.record_fetch(ME, 100) > 0


def test_changes_act_at_once_and_keep_what_was_used(quotas: QuotaManager) -> None:
    limit(quotas, "clients", "app", producer_byte_rate="1000")
    assert quotas.record_produce(ME, 8_000) == 0
    limit(quotas, "clients", "app", producer_byte_rate="400")
    assert quotas.record_produce(ME, 0) == 10_000
    limit(quotas, "clients", "app")
    assert not quotas.is_active
    assert quotas.record_produce(ME, 10**9) == 0


def test_a_limit_that_is_no_number_is_ignored(
    quotas: QuotaManager, caplog: pytest.LogCaptureFixture
) -> None:
    limit(quotas, "clients", "app", producer_byte_rate="much")
    assert not quotas.is_active
    assert "producer_byte_rate=much" in caplog.text


def test_a_fetch_over_the_limit_is_not_counted(quotas: QuotaManager) -> None:
    limit(quotas, "clients", "app", consumer_byte_rate="1000")
    assert quotas.record_fetch(ME, 15_000) == 5000
    assert quotas.record_fetch(ME, 10_000) == 0


def test_a_fetch_may_be_as_large_as_its_windows(quotas: QuotaManager) -> None:
    assert quotas.fetch_bytes_max(ME) is None
    limit(quotas, "clients", "other", consumer_byte_rate="1000")
    assert quotas.fetch_bytes_max(ME) is None
    assert quotas.fetch_bytes_max(("User:me", "other")) == 10_000


def test_request_time_waits_one_window_at_most(quotas: QuotaManager) -> None:
    limit(quotas, "clients", "app", request_percentage="1")
    assert quotas.record_request_time(ME, 100_000_000) == 0  # 0.1 s in 10 s are 1 percent
    assert quotas.record_request_time(ME, 1_000_000) == 100
    assert quotas.record_request_time(ME, 10**10) == 1000


def test_strict_mutations_are_refused_when_the_bucket_is_empty(
    quotas: QuotaManager, clock: ManualClock
) -> None:
    limit(quotas, "clients", "app", controller_mutation_rate="1")
    first = quotas.mutations(ME, is_strict=True)
    first.record(15)  # 11 tokens are there: let through as a whole
    assert first.throttle_time_ms == 0
    second = quotas.mutations(ME, is_strict=True)
    with pytest.raises(KafkaError) as refused:
        second.record(1)
    assert refused.value.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert second.throttle_time_ms == 4000
    clock.advance(1000)
    assert second.throttle_time_ms == 3000
    clock.advance(3000)
    quotas.mutations(ME, is_strict=True).record(1)


def test_permissive_mutations_are_done_and_waited_for(quotas: QuotaManager) -> None:
    limit(quotas, "clients", "app", controller_mutation_rate="1")
    account = quotas.mutations(ME, is_strict=False)
    account.record(15)
    assert account.throttle_time_ms == 4000


def test_mutations_without_a_limit_are_free(quotas: QuotaManager) -> None:
    account = quotas.mutations(ME, is_strict=True)
    account.record(10**9)
    assert account.throttle_time_ms == 0


def test_sensors_go_after_an_hour_of_silence(quotas: QuotaManager, clock: ManualClock) -> None:
    limit(quotas, "clients", "<default>", producer_byte_rate="1000")
    quotas.record_produce(ME, 1)
    quotas.record_produce(("User:me", "busy"), 1)
    for _ in range(60):
        clock.advance(SILENCE_MS_MAX // 60)
        quotas.record_produce(("User:me", "busy"), 1)
    assert len(quotas) == 1


def held_bytes(top: object) -> int:
    """Return the memory of an object and of everything that only it and its parts refer to.

    Classes, functions, modules and what the test itself holds are not counted.
    """
    counts: dict[int, object] = {}
    waiting = [top]
    while waiting:
        waiter = waiting.pop()
        if id(waiter) in counts or isinstance(
            waiter, type | FunctionType | ModuleType | ManualClock
        ):
            continue
        counts[id(waiter)] = waiter
        waiting += gc.get_referents(waiter)
    return sum(map(sys.getsizeof, counts.values()))


def test_a_thousand_client_ids_cost_less_than_two_megabytes(
    quotas: QuotaManager, clock: ManualClock
) -> None:
    """Each has as many samples as it can have: one more than the windows that are looked at."""
    limit(quotas, "clients", "<default>", producer_byte_rate="1", consumer_byte_rate="1")
    limit(quotas, "users", "<default>", request_percentage="1")
    names = [("User:me", f"client-{index}") for index in range(10_000)]
    before_bytes = held_bytes(quotas)
    for _ in range(12):
        for name in names:
            quotas.record_produce(name, 1)
            quotas.record_fetch(name, 1)
        clock.advance(1000)
    assert len(quotas) == 20_000
    used_bytes = held_bytes(quotas) - before_bytes
    assert 20_000 * 12 * BYTES_PER_SAMPLE < used_bytes < 20_000_000


class Connection:
    """The part of a connection that the manager uses."""

    def __init__(self, client: tuple[str, str], api_key: int = 0) -> None:
        self.quota_client = client
        self.api_key = api_key


def test_client_ids_that_share_a_limit_are_forgotten_beyond_a_number(
    quotas: QuotaManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager, "_CLIENTS_MAX", 100)
    limit(quotas, "users", "<default>", producer_byte_rate="1000")
    for number in range(250):
        assert quotas.record_produce(("User:me", f"client-{number}"), 40) == 0
    assert len(quotas) == 1
    assert len(quotas._produce._sensor_of_client) <= 100
    assert quotas.record_produce(("User:me", "one more"), 40) > 0
    quotas.record_produce(("User:me", "x" * 32_000), 40)
    assert all(len(client) < 100 for _, client in quotas._produce._sensor_of_client)


def test_clients_without_a_limit_are_not_charged(quotas: QuotaManager) -> None:
    limit(quotas, "users", "me/clients/app", request_percentage="1")
    assert quotas.charges(Connection(ME))
    assert not quotas.charges(Connection(("User:me", "other")))
    assert quotas.charges(Connection(("User:me", "other"), api_key=-1))  # not known yet
    limit(quotas, "clients", "<default>", consumer_byte_rate="1")
    assert quotas.charges(Connection(("User:me", "other")))


def test_ips_go_to_the_connection_rates(quotas: QuotaManager, clock: ManualClock) -> None:
    limit(quotas, "ips", "127.0.0.1", connection_creation_rate="1")
    rates = quotas.connection_rates
    assert [rates.address_delay_ms("127.0.0.1", clock.now_ms()) for _ in range(11)] == [
        *[0] * 10,
        1000,
    ]
    assert not quotas.is_active


# The eight scopes, their order, and who shares a limit.


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
