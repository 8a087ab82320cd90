"""The command line of the whole program: one declaration of a verb makes everything around it.

From the declaration come the parser, `--help`, "did you mean", the completion of shells and
`docs/reference/command-line.md`. Nothing here imports a verb, the broker or the pipeline: the table
of `verbs_table` names the module of each verb, and `program` imports it when a user asks for it.

To declare a verb, write a module in `minibroker/verbs` with its options as a NamedTuple, a
function `run` and the constant `VERB`:

    class ConsumePlan(NamedTuple):
        topic: Annotated[str, Option("TOPIC", TOPIC, "topic to read", example="orders")]
        connection: Annotated[ConnectionOptions, Part(ConnectionOptions)] = ConnectionOptions()
        count: Annotated[int | None, Option("--count", COUNT, "end after N", short="-n")] = None
        follow: Annotated[bool, Option("--follow", SWITCH, "wait for new records")] = False

    def run(plan: ConsumePlan, out: TextIO, errors: TextIO) -> int:
        from minibroker.client.client import Client  # noqa: PLC0415  not for help
        ...
        return EXIT_OK

    VERB: Final = Verb(
        name="consume",
        does="read records of a topic",
        plan=ConsumePlan,
        run=run,
        examples=("consume orders -n 10",),
    )

and add `"consume": "minibroker.verbs.consume"` to a section of `verbs_table.SECTIONS`.

- The module imports at its top only what the declaration needs: the help page and the completion of
  a shell load it. The module that does the work is imported in `run`.
- An `Option` whose name has no dashes is a word with a place. A field without a default is needed;
  then `example` completes the sentence that says so. `kinds` has the kinds of values. `Many(…)`,
  `choice(…)` and `Kind("METAVAR", read)` make more: `read` raises UsageError without the name of
  the option. A lambda inside an annotation sees no name of its module: write a function.
- Options that several verbs share are a NamedTuple of their own, and a `Part` in the plan, such as
  `connection.ConnectionOptions`. Options whose order counts are one field, `InOrder`.
- `check=` of a `Verb` raises UsageError for options that do not go together.
- `run` gets the plan and returns the exit code. Results go to `out` (bytes: `out.buffer`), all else
  to `errors`. For a failure it raises CommandError, for wrong usage UsageError, each one sentence
  without the name of the verb. `program` writes the sentence, and returns 1 or 2. MinibrokerError
  and OSError are failures, too. Ctrl-C (130) and a closed pipe (0) need no code in a verb.
- In a test, `program.run_words(["consume", "orders"], out, errors)` is the whole way of a command,
  and `plan_of(VERB, parse(VERB, words))` the plan alone.
"""

from __future__ import annotations

import gc

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself is one of the imports below
    from collections.abc import Sequence


def main(words: Sequence[str] | None = None) -> int:
    """Run a command with the streams of the process; return the exit code.

    The garbage collector rests until `resume_collector`: what a start imports and makes stays for
    ever, so it would look at each module and each part for nothing.
    """
    gc.disable()
    try:
        from minibroker.cli import program  # noqa: PLC0415  see above

        return program.main(words)
    finally:
        resume_collector()  # a command without a verb, or a broker that is not made


def resume_collector() -> None:
    """Set the garbage collector going if it rests. It leaves alone what there is now.

    `program` calls it before a verb runs, and `serve` once its broker is made.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
