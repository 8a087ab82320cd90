"""Rows that Spark hands to Python, as it does that fast.

    rows ──without_null_headers, listed──► a sink or a function in Python

Spark asks for the size of its Arrow batch before each row. While the last rows have no list, Arrow
goes through all rows of the batch for the answer, 50,000,000 steps for 10,000 rows. A list that is
empty ends that. Headers mean the same either way: null and an empty list are a record without any.

Source: Spark BatchedPythonArrowInput; Arrow ListVector.setValueCount.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f
from pyspark.sql.types import ArrayType

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType

_HEADERS: Final = "headers"


def without_null_headers(rows: DataFrame) -> DataFrame:
    """Return the rows with an empty list in place of null in `headers`, where that is a column."""
    if _HEADERS not in rows.columns:
        return rows
    return rows.withColumn(
        _HEADERS, without_null_list(f.col(_HEADERS), rows.schema[_HEADERS].dataType)
    )


def without_null_list(column: Column, kind: DataType) -> Column:
    """Return a column of this type, an empty list in place of null if it has lists."""
    return f.coalesce(column, f.array().cast(kind)) if isinstance(kind, ArrayType) else column
