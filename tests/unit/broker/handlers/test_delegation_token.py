"""The APIs of delegation tokens, and the login by one, on a SASL listener.

The refusals on a PLAINTEXT listener stand in tests/compat/scenarios/admin.py.
"""

from __future__ import annotations

import base64
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.config.listeners import SecurityProtocol
from minibroker.broker.handlers.common.tokens import check_client
from minibroker.broker.security.acls import Operation, ResourceType
from minibroker.broker.server import dispatch
from minibroker.client.sasl import ScramClient
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import ANONYMOUS
from minibroker.kafka.protocol.messages.create_delegation_token import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from minibroker.kafka.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from minibroker.kafka.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from minibroker.kafka.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from minibroker.kafka.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from minibroker.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.counted_work import CountedWork
from tests.unit.broker.handlers.acl_requests import SETTINGS, acl, allow

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, ManualClock, RawClient


MECHANISM = "SCRAM-SHA-256"
LARGE = 1_000
"""Items of a list in a large request."""


@pytest.fixture
def settings(request: pytest.FixtureRequest) -> dict[str, str]:
    return {
        **SETTINGS,
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "inter.broker.listener.name": "SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": MECHANISM,
        "sasl.mechanism.inter.broker.protocol": MECHANISM,
        "minibroker.users": 'alice="a" bob="b" root="r"',
        "delegation.token.secret.key": "the secret",
        "delegation.token.expiry.time.ms": "100000",
        "connection.failed.authentication.delay.ms": "0",
        **getattr(request, "param", {}),
    }


async def log_in(
    running: InProcessBroker, name: str, password: str, *, is_token: bool = False
) -> tuple[RawClient, int, int]:
    """Return a connection, the error of its login, and the life of its session in ms."""
    client = await running.connect()
    exchange = ScramClient(MECHANISM, name, password, "nonce", is_token=is_token)
    await client.call(SaslHandshakeRequest(mechanism=MECHANISM), 1)
    answer = await client.call(SaslAuthenticateRequest(auth_bytes=exchange.begin()), 1)
    if not answer.error_code:
        token = exchange.respond(bytes(answer.auth_bytes))
        answer = await client.call(SaslAuthenticateRequest(auth_bytes=token), 1)
    return client, answer.error_code, answer.session_lifetime_ms


async def log_in_by(
    running: InProcessBroker, token: CreateDelegationTokenResponse
) -> tuple[RawClient, int, int]:
    password = base64.b64encode(token.hmac).decode()
    return await log_in(running, token.token_id, password, is_token=True)


def creation(owner: str = "", renewer_type: str = "User") -> CreateDelegationTokenRequest:
    renewers = [CreatableRenewers(principal_type=renewer_type, principal_name="bob")]
    return CreateDelegationTokenRequest(
        owner_principal_type="User",
        owner_principal_name=owner,
        renewers=renewers,
        max_lifetime_ms=-1,
    )


async def test_a_client_logs_in_by_a_token_until_it_ends(
    running: InProcessBroker, clock: ManualClock
) -> None:
    alice, _, _ = await log_in(running, "alice", "a")
    async with alice:
        token = await alice.call(creation(), 3)
        assert (token.error_code, token.principal_name) == (0, "alice")
        assert token.token_requester_principal_name == "alice"
        assert token.expiry_timestamp_ms == clock.now_ms() + 100_000
        client, error, session_ms = await log_in_by(running, token)
        async with client:
            assert (error, session_ms) == (0, 100_000)
            refused = [
                await client.call(creation(), 3),
                await client.call(RenewDelegationTokenRequest(hmac=token.hmac), 2),
                await client.call(ExpireDelegationTokenRequest(hmac=token.hmac), 2),
                await client.call(DescribeDelegationTokenRequest(owners=None), 3),
            ]
            not_allowed = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            assert {answer.error_code for answer in refused} == {not_allowed}
            clock.advance(100_001)
            with pytest.raises(ConnectionError):
                await client.call(MetadataRequest(topics=[]), 9)
        client, error, _ = await log_in_by(running, token)
        await client.close()
        assert error == ErrorCode.SASL_AUTHENTICATION_FAILED


async def test_a_wrong_hmac_lets_nobody_in(running: InProcessBroker) -> None:
    alice, _, _ = await log_in(running, "alice", "a")
    async with alice:
        token = await alice.call(creation(), 3)
    token.hmac = bytes(64)
    client, error, _ = await log_in_by(running, token)
    await client.close()
    assert error == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.parametrize("version", [0, 1, 2, 3])
async def test_owner_and_renewers_move_the_end(
    running: InProcessBroker, clock: ManualClock, version: int
) -> None:
    alice, _, _ = await log_in(running, "alice", "a")
    bob, _, _ = await log_in(running, "bob", "b")
    async with alice, bob:
        request = creation()
        if version < 3:
            request.owner_principal_type = ""
        token = await alice.call(request, version)
        low = min(version, 2)
        clock.advance(1)
        renewal = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1)
        renewed = await bob.call(renewal, low)
        assert renewed.expiry_timestamp_ms == token.expiry_timestamp_ms + 1
        renewal.hmac = b"unknown"
        unknown = await bob.call(renewal, low)
        assert unknown.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        expiry = ExpireDelegationTokenRequest(hmac=token.hmac, expiry_time_period_ms=-1)
        ended = await alice.call(expiry, low)
        assert (ended.error_code, ended.expiry_timestamp_ms) == (0, clock.now_ms())
        answer = await alice.call(DescribeDelegationTokenRequest(owners=None), version)
        assert (answer.error_code, answer.tokens) == (0, [])


async def test_permissions_are_asked_for_in_kafkas_order(running: InProcessBroker) -> None:
    alice, _, _ = await log_in(running, "alice", "a")
    bob, _, _ = await log_in(running, "bob", "b")
    async with alice, bob:
        denied = await alice.call(creation("carol", "Group"), 3)
        assert denied.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (denied.principal_name, denied.expiry_timestamp_ms) == ("carol", -1)
        await allow(running, acl(Operation.CREATE_TOKENS, ResourceType.USER, "User:carol"))
        bad = await alice.call(creation("carol", "Group"), 3)
        assert bad.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
        token = await alice.call(creation("carol"), 3)
        assert (token.error_code, token.principal_name) == (0, "carol")
        renewal = RenewDelegationTokenRequest(hmac=token.hmac, renew_period_ms=-1)
        mismatch = await alice.call(renewal, 2)  # she asked for it and does not own it
        assert mismatch.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH


async def test_a_token_is_described_to_those_who_may_see_it(running: InProcessBroker) -> None:
    alice, _, _ = await log_in(running, "alice", "a")
    root, _, _ = await log_in(running, "root", "r")
    everyones = DescribeDelegationTokenRequest(owners=None)
    async with alice, root:
        token = await root.call(creation(), 3)
        assert (await alice.call(everyones, 3)).tokens == []
        await allow(running, acl(Operation.DESCRIBE_TOKENS, ResourceType.USER, "User:root"))
        (description,) = (await alice.call(everyones, 3)).tokens
        assert (description.token_id, description.hmac) == (token.token_id, token.hmac)
        assert description.token_requester_principal_name == "root"
        assert [renewer.principal_name for renewer in description.renewers] == ["bob"]
        nobodys = DescribeDelegationTokenRequest(owners=[])
        assert (await root.call(nobodys, 3)).tokens == []
        owner = DescribeDelegationTokenOwner(principal_type="User", principal_name="alice")
        others = DescribeDelegationTokenRequest(owners=[owner])
        assert (await root.call(others, 3)).tokens == []


async def test_a_token_that_is_too_large_for_a_node_is_refused(running: InProcessBroker) -> None:
    """ZooKeeper ends the connection of a broker that writes such a node."""
    create = creation()
    create.renewers = [
        CreatableRenewers(principal_type="User", principal_name="u" * 30_000) for _ in range(34)
    ]
    alice, _, _ = await log_in(running, "alice", "a")
    async with alice:
        refused = await alice.call(create, 3)
        assert (refused.error_code, refused.principal_name) == (-1, "alice")
        described = await alice.call(DescribeDelegationTokenRequest(owners=None), 3)
        assert described.tokens == []
        del create.renewers[-1]
        assert (await alice.call(create, 3)).error_code == 0


async def hold_of(client: RawClient, request: Any) -> int:
    """Return the lines of the longest step of the broker for a request."""
    client.send(request, 3)
    with CountedWork() as work:
        await client.receive_frame()
    client._unanswered.clear()
    return work.longest_hold


@pytest.mark.pure("counts lines of Python between two turns of the loop")
async def test_many_renewers_and_owners_hold_nobody_up(
    running: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    monkeypatch.setattr(dispatch, "LARGE_FRAME_BYTES", 0)
    names = [f"user-{number}" for number in range(LARGE)]
    create = creation()
    create.renewers = [
        CreatableRenewers(principal_type="User", principal_name=name) for name in names
    ]
    owners = [
        DescribeDelegationTokenOwner(principal_type="User", principal_name=f"{name}!")
        for name in names
    ]
    alice, _, _ = await log_in(running, "alice", "a")
    async with alice:
        for request in (
            creation(),  # imports, caches
            DescribeDelegationTokenRequest(owners=None),
            create,
            DescribeDelegationTokenRequest(owners=None),
            DescribeDelegationTokenRequest(owners=owners),
        ):
            hold = await hold_of(alice, request)
            assert hold < LARGE, request
        described = await alice.call(DescribeDelegationTokenRequest(owners=None), 3)
    assert [len(token.renewers) for token in described.tokens] == [1, LARGE]


@pytest.mark.parametrize("settings", [{"delegation.token.secret.key": ""}], indirect=True)
async def test_without_a_secret_tokens_are_off(running: InProcessBroker) -> None:
    alice, _, _ = await log_in(running, "alice", "a")
    async with alice:
        answers = [
            await alice.call(creation(), 3),
            await alice.call(RenewDelegationTokenRequest(), 2),
            await alice.call(ExpireDelegationTokenRequest(), 2),
            await alice.call(DescribeDelegationTokenRequest(owners=[]), 3),
        ]
    disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
    assert {answer.error_code for answer in answers} == {disabled}


ALICE = "User:alice"


def client(protocol: SecurityProtocol, principal: str, *, is_token: bool = False) -> Any:
    listener = SimpleNamespace(security_protocol=protocol)
    return SimpleNamespace(listener=listener, principal=principal, is_token=is_token)


@pytest.mark.parametrize(
    ("protocol", "principal", "is_token"),
    [
        (SecurityProtocol.PLAINTEXT, ANONYMOUS, False),
        (SecurityProtocol.PLAINTEXT, ALICE, False),
        (SecurityProtocol.SSL, ANONYMOUS, False),
        (SecurityProtocol.SASL_SSL, ALICE, True),
    ],
)
def test_a_client_that_proved_nothing_itself_is_refused(
    protocol: SecurityProtocol, principal: str, is_token: bool
) -> None:
    with pytest.raises(KafkaError) as refused:
        check_client(client(protocol, principal, is_token=is_token))
    assert refused.value.code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED


def test_a_login_or_a_certificate_is_enough() -> None:
    for protocol in (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL):
        check_client(client(protocol, ALICE))
    check_client(client(SecurityProtocol.SASL_PLAINTEXT, ANONYMOUS))
