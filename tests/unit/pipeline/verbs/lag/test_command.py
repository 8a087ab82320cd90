"""A watch of lag: the line that is shown, and the metrics beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.verbs.lag import command as lag
from minibroker.pipeline.verbs.lag.text import Look

if TYPE_CHECKING:
    from minibroker.pipeline.verbs.lag.metrics import LagMetrics


class Metrics:
    """The metrics that a scrape gets."""

    look: Look | None = Look(1, (), {})


class Watch:
    """Looks that are answered, or not."""

    def __init__(self, *answers: Look | PipelineError) -> None:
        self._answers = list(answers)

    def look(self) -> Look:
        answer = self._answers.pop(0)
        if isinstance(answer, PipelineError):
            raise answer
        return answer


def test_the_metrics_are_new_before_the_line_is_shown() -> None:
    """A reader of the line that scrapes at once finds the same numbers."""
    metrics, events = Metrics(), list[Any]()

    class View:
        def show(self, look: Look) -> None:
            events.append((look, metrics.look))

        def tell(self, sentence: str) -> None:
            events.append((sentence, metrics.look))

    second = Look(2, (), {})
    watch = Watch(second, PipelineError("no broker answers"))
    for _ in range(2):
        lag._next(cast("Any", watch), cast("Any", View()), cast("LagMetrics", metrics))
    assert events == [(second, second), ("no broker answers", None)]


def test_a_page_that_cannot_be_written_is_told_and_the_watch_goes_on() -> None:
    lines, metrics = list[Any](), Metrics()

    class View:
        def show(self, look: Look) -> None:
            lines.append(look)

        def tell(self, sentence: str) -> None:
            lines.append(sentence)

    class Report:
        def write(self, look: Look) -> None:
            raise PipelineError("lag.html cannot be written")

    second = Look(2, (), {})
    watch, view = cast("Any", Watch(second)), cast("Any", View())
    assert lag._next(watch, view, cast("LagMetrics", metrics), cast("Any", Report())) == second
    assert (lines, metrics.look) == ([second, "lag.html cannot be written"], second)
