"""Salvage: every good value is read, every bad one has a reason, in few calls."""

from __future__ import annotations

import pyarrow as pa

from minibroker.pipeline.values.salvage import salvaged


class Numbers:
    """Reads decimal numbers; counts its calls."""

    type = pa.int64()

    def __init__(self) -> None:
        self.calls = 0

    def read(self, values: pa.Array) -> pa.Array:
        self.calls += 1
        return pa.array([int(value.as_py()) for value in values], self.type)

    def read_alone(self, value: bytes) -> pa.Array:
        try:
            return pa.array([int(value)], self.type)
        except ValueError as error:
            raise ValueError(f"is no number: {value!r}") from error


def values(count: int, bad: set[int]) -> pa.Array:
    found = [b"x" if index in bad else str(index).encode() for index in range(count)]
    return pa.array(found, pa.binary())


def test_good_values_take_one_call() -> None:
    reader = Numbers()
    found = salvaged(reader, values(1000, set()))
    assert (found.array.to_pylist(), found.reasons) == (list(range(1000)), {})
    assert reader.calls == 1


def test_bad_values_among_many_stand_alone() -> None:
    reader, bad = Numbers(), {0, 500, 999}
    found = salvaged(reader, values(1000, bad))
    wanted = [None if index in bad else index for index in range(1000)]
    assert found.array.to_pylist() == wanted
    assert found.reasons == dict.fromkeys(sorted(bad), "is no number: b'x'")
    assert reader.calls < 60


def test_nothing_and_all_bad() -> None:
    assert salvaged(Numbers(), values(0, set())).array.equals(pa.nulls(0, pa.int64()))
    found = salvaged(Numbers(), values(40, set(range(40))))
    assert (found.array.null_count, sorted(found.reasons)) == (40, list(range(40)))


class Times(Numbers):
    """Reads microseconds."""

    type = pa.timestamp("us")


def test_a_time_that_no_table_keeps_is_bad_in_a_table_alone() -> None:
    given = pa.array([b"0", b"9223372036825200000", b"1"], pa.binary())
    found = salvaged(Times(), given, has_bounds=True)
    assert found.reasons == {1: "has a time outside of the years 1 to 9999 in it"}
    assert found.array.cast(pa.int64()).to_pylist() == [0, None, 1]
    assert salvaged(Times(), given).reasons == {}
