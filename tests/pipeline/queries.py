"""Runs Spark's queries to their end, on a busy machine too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.query import StreamingQuery

SECONDS: Final = 800.0
TOO_SLOW: Final = "Python worker failed to connect back"


def is_over(query: StreamingQuery) -> bool:
    """Return whether the query has ended by itself."""
    return not query.isActive


def run(
    start: Callable[[], StreamingQuery], is_done: Callable[[StreamingQuery], bool] = is_over
) -> StreamingQuery:
    """Run a query until it is done or over, and return it. Raises its error.

    Spark gives its Python in the driver ten seconds to start, which is short on a busy machine:
    such a query is started again, as the jobs of the pipeline do it.
    """
    while True:
        query = start()
        wait_until(
            lambda query=query: is_done(query) or not query.isActive, "the query is done", SECONDS
        )
        query.stop()
        error = query.exception()
        if error is None:
            return query
        if TOO_SLOW not in str(error):
            raise error
