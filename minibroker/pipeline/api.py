"""The verbs as functions: `from minibroker.pipeline import archive, replay, compare` and so on.

Each takes the options of its verb as keywords, with the same values and the same refusals. Its
signature and the texts of its arguments come from the declaration in `verbs`: see `help(archive)`.
Functions that copy return an `Outcome`: rows, batches, seconds and other counts. All raise a
`PipelineError` for wrong arguments, and for anything that prevents the job.
"""

from __future__ import annotations

import inspect as signatures
import textwrap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.cli.declaration import (
    InPython,
    argument_lines,
    built,
    option_of,
    options_of,
    plan_of,
)
from minibroker.cli.errors import UsageError
from minibroker.cli.kinds import near
from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.options.shared import Engine
from minibroker.pipeline.spark import launch
from minibroker.pipeline.verbs.table import VERBS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.cli.declaration import PlanField
    from minibroker.pipeline.options.declaration import PipelineVerb

_SESSION: Final = {
    "spark": "a SparkSession to run in, which is not stopped; without it one is made and stopped",
}
_REPORTS: Final = {
    "progress": "called after each batch with a `Batch`",
    "stop": "a threading.Event: once another thread sets it, the job ends after the running batch",
}


class Order(NamedTuple):
    """A call of a function: the plan, the Spark, and what only Python has."""

    plan: Any
    engine: Engine
    more: Mapping[str, Any]
    """The session, and for a job with batches who is told of them."""


def _keywords(verb: PipelineVerb) -> dict[str, PlanField]:
    """Return keyword → field of the plan, and of the Spark that runs it."""
    fields = [*options_of(verb.plan), *(options_of(verb.engine) if verb.engine else ())]
    way = InPython({})
    return {way.name_of(field): field for field in fields}


def _more(verb: PipelineVerb) -> Mapping[str, str]:
    """Return the arguments that only Python has, with their texts."""
    return {**(_SESSION if verb.engine else {}), **(_REPORTS if verb.reports_batches else {})}


def _declared(verb: PipelineVerb, function: Callable[..., Any]) -> Callable[..., Any]:
    keywords, more = _keywords(verb), _more(verb)
    parameters = [
        signatures.Parameter(
            name,
            signatures.Parameter.POSITIONAL_OR_KEYWORD
            if field.name in verb.first
            else signatures.Parameter.KEYWORD_ONLY,
            default=signatures.Parameter.empty
            if field.is_needed
            else option_of(field).kind.as_python(field.default),
        )
        for name, field in keywords.items()
    ]
    parameters += [
        signatures.Parameter(name, signatures.Parameter.KEYWORD_ONLY, default=None) for name in more
    ]
    parameters.sort(
        key=lambda parameter: (parameter.kind, parameter.default is not parameter.empty)
    )
    function.__signature__ = signatures.Signature(parameters)  # type: ignore[attr-defined]
    lines = [*argument_lines(keywords), *(f"{name}: {text}" for name, text in more.items())]
    explanations = "\n".join(
        textwrap.fill(line, 100, initial_indent=" " * 8, subsequent_indent=" " * 12)
        for line in lines
    )
    text = verb.function.replace("\n", "\n    ").replace("    \n", "\n")
    function.__doc__ = f"{text}\n\n    Args:\n{explanations}\n"
    return function


def function_of(name: str) -> Callable[..., Any]:
    """Return the function of a verb, with its signature and the texts of its arguments."""
    verb = VERBS[name]

    def function(*first: Any, **options: Any) -> Any:
        call = _called(verb, first, options)
        if verb.reports_batches:
            return launch.run(verb, call.plan, call.engine, **call.more)
        return launch.answer(verb, call.plan, call.engine, **call.more)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "minibroker.pipeline"
    return _declared(verb, function)


def _called(verb: PipelineVerb, first: tuple[Any, ...], options: Mapping[str, Any]) -> Order:
    """Return what a call asks for.

    Raises:
        PipelineError: a value that cannot be, alone or beside the others.
        TypeError: an argument that the function does not have.
    """
    name, keywords, more = verb.name, _keywords(verb), _more(verb)
    for word in options:
        if word not in keywords and word not in more:
            raise TypeError(f"{name}() has no argument {word!r}{near(word, [*keywords, *more])}")
    arguments = dict(zip(verb.first, first, strict=False))
    if len(first) > len(verb.first) or arguments.keys() & options.keys():
        most = "one argument" if len(verb.first) == 1 else f"{len(verb.first)} arguments"
        raise TypeError(f"{name}() takes {most} without a name: {', '.join(verb.first)}")
    way = InPython({**arguments, **options})
    try:
        engine = Engine() if verb.engine is None else built(verb.engine, way)
        plan = plan_of(verb, way)
    except UsageError as error:
        raise JobUsageError(str(error)) from None
    return Order(plan, engine, {word: options[word] for word in more if word in options})
