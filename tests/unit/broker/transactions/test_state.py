"""The state machine of a transactional id, step by step; whole stories are in tests/scenario."""

from __future__ import annotations

import pytest

from minibroker.broker.transactions.state import (
    PRODUCER_EPOCH_MAX,
    TIMEOUT_MS_NEVER,
    TransactionMetadata,
    TransactionState,
    add_partitions,
    check_initializable,
    complete,
    end,
    fence,
    initialize,
    partitions_not_added,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition

S = TransactionState
NOW_MS = 1_000
NEW_ID = 2_000
A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
CODES = ErrorCode


def metadata(
    state: TransactionState = S.EMPTY, epoch: int = 5, **others: object
) -> TransactionMetadata:
    fields = {"timeout_ms": 60_000, "last_update_ms": 500, **others}
    if state in {S.ONGOING, S.PREPARE_COMMIT, S.PREPARE_ABORT}:
        fields = {"partitions": frozenset({A0}), "start_ms": 400, **fields}
    return TransactionMetadata("t", 1_000, epoch, state=state, **fields)  # type: ignore[arg-type]


def refusal(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code == code)


def init(
    earlier: TransactionMetadata, expected: tuple[int, int] | None = None
) -> TransactionMetadata:
    return initialize(
        earlier, timeout_ms=7_000, client_identity=expected, new_producer_id=NEW_ID, now_ms=NOW_MS
    )


def ended(
    earlier: TransactionMetadata,
    is_commit: bool,
    *,
    producer_id: int = 1_000,
    epoch: int = 5,
    version: int = 2,
) -> TransactionMetadata | None:
    return end(
        earlier,
        producer_id,
        epoch,
        is_commit=is_commit,
        client_version=version,
        new_producer_id=NEW_ID,
        now_ms=NOW_MS,
    )


# InitProducerId.


def test_a_new_id_begins_with_epoch_0() -> None:
    first = init(TransactionMetadata("t", 1_000))
    assert (first.producer_id, first.producer_epoch, first.state) == (1_000, 0, S.EMPTY)
    assert (first.timeout_ms, first.last_update_ms, first.start_ms) == (7_000, NOW_MS, -1)


@pytest.mark.parametrize("state", [S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT])
def test_a_new_session_raises_the_epoch_and_forgets_the_last(state: TransactionState) -> None:
    after = init(metadata(state, last_producer_epoch=4))
    assert (after.producer_epoch, after.last_producer_epoch, after.state) == (6, -1, S.EMPTY)


def test_exhausted_epochs_take_a_new_producer_id() -> None:
    after = init(metadata(epoch=PRODUCER_EPOCH_MAX - 1))
    assert (after.producer_id, after.producer_epoch, after.last_producer_epoch) == (NEW_ID, 0, -1)
    assert after.previous_producer_id == 1_000


def test_recovery_over_exhausted_epochs_may_be_repeated_once_the_new_id_is_known() -> None:
    after = init(metadata(epoch=PRODUCER_EPOCH_MAX - 1), expected=(1_000, PRODUCER_EPOCH_MAX - 1))
    assert (after.producer_id, after.last_producer_epoch) == (NEW_ID, PRODUCER_EPOCH_MAX - 1)
    again = init(after, expected=(1_000, PRODUCER_EPOCH_MAX - 1))
    assert (again.producer_id, again.producer_epoch) == (NEW_ID, 0)


def test_recovery_with_an_old_epoch_when_epochs_are_exhausted_is_kafkas_unknown_error() -> None:
    with refusal(CODES.UNKNOWN_SERVER_ERROR):
        init(metadata(epoch=PRODUCER_EPOCH_MAX - 1, last_producer_epoch=3), expected=(1_000, 3))


def test_somebody_elses_producer_id_is_fenced_before_the_state_counts() -> None:
    with refusal(CODES.PRODUCER_FENCED):
        check_initializable(metadata(S.ONGOING), (999, 5))
    check_initializable(metadata(S.ONGOING), (1_000, 5))


# Fencing.


@pytest.mark.parametrize(("broker_version", "last_epoch"), [(0, -1), (1, -1), (2, 5)])
def test_fence_aborts_with_an_epoch_that_nobody_has(broker_version: int, last_epoch: int) -> None:
    after = fence(
        metadata(S.ONGOING), broker_version=broker_version, new_producer_id=NEW_ID, now_ms=NOW_MS
    )
    assert (after.state, after.producer_epoch) == (S.PREPARE_ABORT, 6)
    assert after.last_producer_epoch == last_epoch
    assert (after.partitions, after.start_ms) == (frozenset({A0}), 400)


# Partitions.


def added(earlier: TransactionMetadata, *partitions: TopicPartition) -> TransactionMetadata | None:
    return add_partitions(earlier, 1_000, 5, partitions, client_version=2, now_ms=NOW_MS)


def test_add_partitions_checks_in_kafkas_order() -> None:
    with refusal(CODES.CONCURRENT_TRANSACTIONS):
        add_partitions(metadata(S.PREPARE_COMMIT), 9, 9, [A0], client_version=0, now_ms=NOW_MS)
    with refusal(CODES.INVALID_PRODUCER_ID_MAPPING):
        add_partitions(metadata(), 9, 9, [A0], client_version=0, now_ms=NOW_MS)
    for epoch in (4, 6):
        with refusal(CODES.PRODUCER_FENCED):
            add_partitions(metadata(), 1_000, epoch, [A0], client_version=0, now_ms=NOW_MS)


def test_verification_names_what_was_not_added() -> None:
    assert partitions_not_added(metadata(S.ONGOING), 1_000, 5, [A0, A1]) == [A1]
    assert partitions_not_added(metadata(S.EMPTY), 1_000, 5, [A0]) == [A0]
    with refusal(CODES.INVALID_PRODUCER_ID_MAPPING):
        partitions_not_added(metadata(S.PREPARE_ABORT), 9, 5, [A0])
    with refusal(CODES.CONCURRENT_TRANSACTIONS):
        partitions_not_added(metadata(S.PREPARE_ABORT), 1_000, 5, [A0])


# The end, first protocol.


@pytest.mark.parametrize(
    ("is_commit", "prepared", "completed"),
    [(True, S.PREPARE_COMMIT, S.COMPLETE_COMMIT), (False, S.PREPARE_ABORT, S.COMPLETE_ABORT)],
)
def test_the_first_protocol_keeps_the_epoch(
    is_commit: bool, prepared: TransactionState, completed: TransactionState
) -> None:
    first = ended(metadata(S.ONGOING), is_commit, version=0)
    assert first is not None
    assert (first.state, first.producer_epoch, first.partitions) == (prepared, 5, {A0})
    done = complete(first, 2_000)
    assert (done.state, done.producer_epoch, done.partitions) == (completed, 5, frozenset())
    assert (done.start_ms, done.last_update_ms) == (400, 2_000)
    assert ended(done, is_commit, version=0) is None
    with refusal(CODES.INVALID_TXN_STATE):
        ended(done, not is_commit, version=0)


def test_the_first_protocol_ends_nothing_that_was_not_begun() -> None:
    for is_commit in (True, False):
        with refusal(CODES.INVALID_TXN_STATE):
            ended(metadata(), is_commit, version=0)
    with refusal(CODES.INVALID_PRODUCER_ID_MAPPING):
        ended(metadata(S.ONGOING), True, producer_id=9, version=0)
    for epoch in (4, 6):
        with refusal(CODES.PRODUCER_FENCED):
            ended(metadata(S.PREPARE_COMMIT), True, epoch=epoch, version=0)
    with refusal(CODES.CONCURRENT_TRANSACTIONS):
        ended(metadata(S.PREPARE_COMMIT), False, version=0)


# The end, second protocol.


PF, ITS = CODES.PRODUCER_FENCED, CODES.INVALID_TXN_STATE


@pytest.mark.parametrize(
    ("state", "is_commit", "epoch", "answer"),
    [
        # KIP-890: "bump" ends an empty transaction, None is a repetition.
        (S.EMPTY, False, 4, PF),
        (S.EMPTY, False, 5, "bump"),
        (S.EMPTY, True, 4, PF),
        (S.EMPTY, True, 5, ITS),
        (S.COMPLETE_ABORT, False, 4, None),
        (S.COMPLETE_ABORT, False, 5, "bump"),
        (S.COMPLETE_ABORT, True, 4, ITS),
        (S.COMPLETE_ABORT, True, 5, ITS),
        (S.COMPLETE_COMMIT, False, 4, ITS),
        (S.COMPLETE_COMMIT, False, 5, "bump"),
        (S.COMPLETE_COMMIT, True, 4, None),
        (S.COMPLETE_COMMIT, True, 5, ITS),
        (S.COMPLETE_COMMIT, True, 3, PF),
        (S.COMPLETE_COMMIT, True, 6, PF),
        (S.ONGOING, True, 4, PF),
    ],
)
def test_ends_of_the_second_protocol(
    state: TransactionState, is_commit: bool, epoch: int, answer: object
) -> None:
    if isinstance(answer, ErrorCode):
        with refusal(answer):
            ended(metadata(state), is_commit, epoch=epoch)
        return
    after = ended(metadata(state), is_commit, epoch=epoch)
    if answer is None:
        assert after is None
        return
    assert after is not None
    assert (after.state, after.producer_epoch) == (S.PREPARE_ABORT, 6)
    assert (after.start_ms, after.partitions) == (NOW_MS, frozenset())


def test_an_end_waits_for_the_markers_of_another() -> None:
    with refusal(CODES.CONCURRENT_TRANSACTIONS):
        ended(metadata(S.PREPARE_COMMIT), False, producer_id=9, epoch=9)


def test_the_last_epoch_goes_over_to_a_new_producer_id() -> None:
    earlier = metadata(S.ONGOING, epoch=PRODUCER_EPOCH_MAX - 1)
    first = ended(earlier, True, epoch=PRODUCER_EPOCH_MAX - 1)
    assert first is not None
    assert (first.producer_id, first.producer_epoch) == (1_000, PRODUCER_EPOCH_MAX)
    assert first.next_producer_id == NEW_ID
    done = complete(first, NOW_MS)
    assert (done.producer_id, done.producer_epoch, done.next_producer_id) == (NEW_ID, 0, -1)
    assert (done.previous_producer_id, done.last_producer_epoch) == (1_000, PRODUCER_EPOCH_MAX - 1)
    assert ended(done, True, epoch=PRODUCER_EPOCH_MAX - 1) is None
    with refusal(CODES.INVALID_PRODUCER_ID_MAPPING):
        ended(done, True, epoch=PRODUCER_EPOCH_MAX - 2)


# Time.


def test_overdue_is_later_than_the_time_out() -> None:
    open_since_400 = metadata(S.ONGOING)
    assert not open_since_400.is_overdue(60_400)
    assert open_since_400.is_overdue(60_401)
    assert not metadata(S.PREPARE_COMMIT).is_overdue(10**9)
    assert not metadata(S.ONGOING, timeout_ms=TIMEOUT_MS_NEVER).is_overdue(10**13)


def test_only_ids_between_transactions_expire() -> None:
    assert metadata(S.COMPLETE_COMMIT).expires_before(500)
    assert not metadata(S.COMPLETE_COMMIT).expires_before(499)
    assert not metadata(S.ONGOING).expires_before(10**9)
    assert not metadata(S.PREPARE_ABORT).expires_before(10**9)


def test_states_have_kafkas_names() -> None:
    assert [state.title for state in S] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
