"""The declaration of a verb of the pipeline: `minibroker.cli.declaration`, and what a job has more.

    class ArchivePlan(NamedTuple):
        kafka: Annotated[Kafka, Part(ClientOptions, ClientOptions.cluster)]
        to: Annotated[str, Option("--to", DIRECTORY, "directory of the files", example="./archive")]
        follow: Annotated[bool, Option("--follow", SWITCH, "do not end")] = False

A field is an option of the command line, a keyword of the Python function (`api`) and a line of
`--dry-run`.

To add an option: add one field with an `Option` to the plan of the verb (`verbs/VERB/plan.py`), at
the end if it has a default. An option of several verbs is a constant in `options/shared.py`, and
options that only make sense together are a NamedTuple there, which a verb takes as a `Part`. Rules
for two options together stand in `check` of the verb, with `names["follow"]` for what the user
calls the field.

To add a verb: make the room `verbs/VERB/`. Its `plan.py` has the plan and `VERB`, its `job.py`
describes and does the work. `cli/stream.py` prints the result of a job that reports batches,
`cli/one_answer.py` that of one with one answer. No other module names a verb: `verbs/table.py`
finds the rooms.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.cli.declaration import Verb, built, options_of, plan_of
from minibroker.pipeline.options.shared import GROUPS, CommandOptions, Engine

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TextIO

    from minibroker.cli.declaration import InWords, Names, PlanField

_COMMAND_LINE: Final = "minibroker.pipeline.command_line"
"""The module that runs a verb from words. It stands above the verbs, so only its name is here."""
_VERBS: Final = "minibroker.pipeline.verbs"
_STREAM: Final = "minibroker.pipeline.cli.stream"
_ENDS: Final = """
On a terminal one line shows the progress; otherwise each batch is one JSON line on stdout. A line
without "batch" is a note, for instance about a new topic or about open windows. Ctrl-C ends the job
after the running batch.
"""
_EXITS: Final = (
    "Exit codes: 0; 1 for an error, with one sentence that says why; 2 for wrong usage; 4 for a "
    "record that cannot be used and has no place (--dead-letters); 130 after "
    "Ctrl-C."
)


class Arguments(NamedTuple):
    """A command line, parsed."""

    verb: PipelineVerb
    plan: Any
    engine: Engine
    dry_run: bool


class PipelineVerb(Verb):
    """A verb of `minibroker pipeline`, and a function of `minibroker.pipeline`."""

    within = "minibroker pipeline"

    def __init__(
        self,
        *,
        name: str,
        does: str,
        usage: str,
        plan: type[Any],
        rank: int,
        group: str,
        notes: str,
        examples: Sequence[str],
        job: str = "job",
        command: str = "minibroker.pipeline.cli.one_answer",
        check: Callable[[Any, Names], None] | None = None,
        engine: type[Any] | None = None,
        first: Sequence[str] = (),
        function: str = "",
        done: Callable[[Any, int], str] | None = None,
        note: Callable[[Any, Any], Any] | None = None,
        brokers: Callable[[Any], str | None] = lambda plan: plan.kafka.bootstrap,
        engine_for: Callable[[Any, Any, Mapping[str, str]], Any] | None = None,
    ) -> None:
        """Declare a verb; the arguments of `Verb` are not repeated here.

        Args:
            rank: its place in the list of verbs, 1 is the first.
            job: the module of its work, in its room: `describe(plan)`; with Spark also `check` and
                `run(spark, plan)`.
            command: the module that runs it for the command line, `run(arguments, out, errors)`.
                One that reports batches (`done`) has `cli.stream`.
            engine: the options of the Spark that runs it, None: it needs none.
            first: the fields that may stand first in a call in Python, without their names.
            function: the help of its function in Python; empty: it has none.
            done: returns what it has done with so many rows; None: it is no job that reports
                batches.
            note: returns a `Note` about the end of such a job, from the plan and the `Outcome`, or
                None.
            brokers: returns the addresses that a plan asks, None: it asks no broker.
            engine_for: returns the engine with the settings that a plan needs, from both and the
                environment.
        """
        super().__init__(
            name=name,
            does=does,
            plan=plan,
            run=_run_arguments,
            examples=[f"pipeline {words}" for words in examples],
            usage=usage,
            group=group,
            groups=GROUPS,
            notes=notes if done is None else f"{notes}\n{_ENDS}",
            exits=_EXITS,
            check=check,
        )
        self.rank = rank
        self.job = f"{_VERBS}.{name}.{job}"
        self.command_module = command if done is None else _STREAM
        self.engine = engine
        self.first = first
        self.function = function
        self.done = done
        self.note = note
        self.brokers = brokers
        self.engine_for = engine_for

    @property
    def reports_batches(self) -> bool:
        """Return whether it is a job that reports batches, and goes on where it ended."""
        return self.done is not None

    def fields(self) -> list[PlanField]:
        """Return the fields of the plan, of the Spark that runs it, and of the command line."""
        engine = [] if self.engine is None else options_of(self.engine)
        return [*options_of(self.plan), *engine, *options_of(CommandOptions)]

    def start(self, way: InWords, out: TextIO, errors: TextIO) -> int:
        """Run it with the words of a user; return the exit code.

        Raises PipelineError, UsageError.
        """
        return self.run(self.arguments(way), out, errors)

    def arguments(self, way: InWords) -> Arguments:
        """Return the plan and the options around it. Raises UsageError."""
        plan = plan_of(self, way)
        engine = Engine() if self.engine is None else built(self.engine, way)
        return Arguments(self, plan, engine, built(CommandOptions, way).dry_run)


def _run_arguments(arguments: Arguments, out: TextIO, errors: TextIO) -> int:
    code: int = import_module(_COMMAND_LINE).run(arguments, out, errors)
    return code
