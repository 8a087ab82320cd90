"""`minibroker up`: `serve`, in the background with `-d`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TextIO

from minibroker.cli.declaration import Option, Part, Verb, option_of, options_of, plan_of
from minibroker.cli.errors import EXIT_OK, CommandError
from minibroker.cli.kinds import SWITCH
from minibroker.verbs.background.state import BACKGROUND, StateDirectory, StateOptions
from minibroker.verbs.serve import verb as serve
from minibroker.verbs.serve.plan import CLIENTS, ServePlan, secured

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.cli.declaration import InWords, Names


class UpPlan(NamedTuple):
    """The options of `up`: its own ones, and those of `serve`."""

    detach: Annotated[
        bool,
        Option(
            "--detach",
            SWITCH,
            "run in the background: return when it serves, and write its address",
            short="-d",
        ),
    ] = False
    state: Annotated[StateOptions, Part(StateOptions)] = StateOptions()
    serve: Annotated[ServePlan, Part(ServePlan)] = ServePlan()
    words: tuple[str, ...] = ()
    """The words of the user that are those of `serve`."""


class UpVerb(Verb):
    """`up` hands the words for `serve` to another process, as the user wrote them."""

    def start(self, way: InWords, out: TextIO, errors: TextIO) -> int:
        """Run it; return the exit code. Raises CommandError, UsageError."""
        switches = {
            option_of(field).flag: option_of(field).kind.is_switch
            for field in options_of(ServePlan)
        }
        words = [
            flag if switches[flag] else f"{flag}={word}"
            for flag, word in way.in_order
            if flag in switches
        ]
        plan: UpPlan = plan_of(self, way)
        return self.run(plan._replace(words=tuple(words)), out, errors)


def check(plan: UpPlan, names: Names) -> None:
    """Raise UsageError as `serve` does."""
    serve.check(plan.serve, names)
    secured(plan.serve)


def run(plan: UpPlan, out: TextIO, errors: TextIO) -> int:
    """Serve, or start a broker in the background; return the exit code.

    Raises CommandError: it did not start, or another one runs.
    """
    if not plan.detach:
        return serve.run(plan.serve, out, errors)
    from minibroker.verbs.background.starting import start  # noqa: PLC0415  not for help

    state = StateDirectory(plan.state, os.environ)
    with state.changing():
        background = state.read() if state.lives() else None
        if background is None:
            background = start(state, plan.words, errors)
        elif not _is_same(background.words, plan.words, background.directory):
            raise CommandError(
                f"it runs already at {background.addresses} (pid {background.pid}), with other "
                "options: minibroker stop ends it; --state-dir is for a second one"
            )
    out.writelines(background.ready_lines)
    errors.write(f"pid {background.pid}, log {state.log}; minibroker stop ends it\n")
    return EXIT_OK


def _is_same(words: Sequence[str], new_words: Sequence[str], directory: str) -> bool:
    """Return whether a broker runs with these options; paths among them may be relative."""
    return list(words) == list(new_words) and directory == os.getcwd()  # noqa: PTH109  it is text


VERB: Final = UpVerb(
    name="up",
    does="start the broker, with -d in the background",
    plan=UpPlan,
    run=run,
    group=BACKGROUND,
    groups=(CLIENTS, *serve.VERB.groups),
    notes=f"""
Without -d it is minibroker serve. With -d one broker runs in the background, for each state
directory. minibroker status shows it, minibroker stop ends it, minibroker reset deletes its data
and starts it again. When it runs already with the same options, in the same directory, up -d writes
its address and does nothing.

{serve.VERB.notes}
""",
    examples=(
        "up -d",
        "up -d --memory --topic orders:6",
        "up -d --listen 127.0.0.1:9192 --data-dir ./second --state-dir ./second-state",
    ),
    check=check,
    later_wins=True,
    resumes_collector=True,
)
