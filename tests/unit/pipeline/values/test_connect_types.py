"""Types that Connect and Debezium name: decimals as text, and the columns of decimals."""

from __future__ import annotations

import base64

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.pipeline.values.connect_types import (
    decimal_of,
    decimal_text,
    variable_scale_text,
)


@pytest.mark.parametrize(
    ("number", "scale", "text"),
    [
        (0, 0, "0"),
        (0, 2, "0.00"),
        (0, -3, "0"),
        (-5, 3, "-0.005"),
        (12345, 2, "123.45"),
        (-7, -2, "-700"),
    ],
)
def test_text_of_a_decimal(number: int, scale: int, text: str) -> None:
    assert decimal_text(number.to_bytes(4, signed=True), scale) == text


@given(st.integers(-(10**40), 10**40), st.integers(0, 60))
def test_a_text_is_the_number(number: int, scale: int) -> None:
    text = decimal_text(number.to_bytes(20, signed=True), scale)
    assert int(text.replace(".", "")) == number
    assert len(text.partition(".")[2]) == scale


def test_a_decimal_that_claims_too_many_digits() -> None:
    with pytest.raises(ValueError, match="a decimal has scale -2147483648"):
        decimal_text(b"\x01", -(2**31))


def test_a_decimal_with_its_own_scale() -> None:
    assert variable_scale_text(None) is None
    assert variable_scale_text({"scale": 1, "value": b"\x0f"}) == "1.5"
    assert variable_scale_text({"scale": 1, "value": base64.b64encode(b"\x0f").decode()}) == "1.5"
    for value in ({"scale": 1}, {"scale": "1", "value": b"x"}, 5):
        with pytest.raises(ValueError, match="is no VariableScaleDecimal"):
            variable_scale_text(value)


def test_columns_of_decimals() -> None:
    assert decimal_of(10, 2) == pa.decimal128(10, 2)
    assert decimal_of(None, 2) == decimal_of(39, 2) == decimal_of(5, 6) == decimal_of(5, -1)
    assert decimal_of(5, -1) == pa.string()
