"""The declaration of a verb: its plan's fields carry their options, and all else comes from them.

    class ArchivePlan(NamedTuple):
        kafka: Annotated[Kafka, Part(ClientOptions, ClientOptions.cluster)]
        to: Annotated[str, Option("--to", DIRECTORY, "directory of the files", example="./archive")]
        follow: Annotated[bool, Option("--follow", SWITCH, "do not end")] = False

A field has its type, its flag, its name in Python, how its value is read, its default and its help.
From that come the parser of the command line (`parser`), the help page (`help_page`), the keyword
of the Python function (`api`), the plan with its checks (`plan_of`) and a line of `--dry-run`.

To add an option: add one field with an `Option` to the plan of the verb (`verbs/VERB/plan.py`), at
the end if it has a default. An option of several verbs is a constant in `options/shared.py`, and
options that only make sense together are a NamedTuple there, which a verb takes as a `Part`. Rules
for two options together stand in `check` of the verb, with `names["follow"]` for what the user
calls the field.

To add a verb: make the room `verbs/VERB/`. Its `plan.py` has the plan and `VERB`, which names two
modules: `job`, which describes and does the work, and `command`, which prints the result:
`cli/stream.py` for jobs that report batches, `cli/one_answer.py` for those with one answer. No
other module names a verb: `verbs/table.py` finds the rooms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_type_hints

from minibroker.pipeline.errors import JobUsageError
from minibroker.pipeline.options.kinds import near

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from minibroker.pipeline.options.kinds import Kind

Names = dict[str, str]
"""PlanField → the user's name of it: its flag on the command line, its keyword in Python."""


class Option(NamedTuple):
    """One option of a verb, on the command line and in Python."""

    flag: str
    """Its flag, or a name without dashes for a value that has its place on the command line."""
    kind: Kind
    help: str
    """Its effect, in lower case and without a full stop; the default is added in brackets."""
    group: str = ""
    """The title of the help page under which it stands; empty: that of the verb itself."""
    name: str = ""
    """The keyword in Python; empty: the name of the field."""
    metavar: str = ""
    """The value's name in the help; empty: that of the kind."""
    default: str = ""
    """The default in the help; empty: that of the field."""
    example: str = ""
    """A value for the sentence that says that the option is missing."""

    @property
    def is_flag(self) -> bool:
        """Return whether a flag stands before the value; else the value has a place: `A`."""
        return self.flag.startswith("-")


class Part(NamedTuple):
    """Options that belong together, in a NamedTuple of their own: one field of the plan."""

    declared: type[Any]
    build: Callable[[Any], Any] | None = None
    """Returns the field's value from the tuple of the options; None: the tuple itself."""


class PlanField(NamedTuple):
    """A field of a plan and what is declared about it."""

    name: str
    declared: Option | Part
    is_needed: bool
    default: Any = None


class Verb(NamedTuple):
    """A verb of `minibroker pipeline`, and a function of `minibroker.pipeline`."""

    name: str
    does: str
    """Its effect, after a colon, in lower case and without a full stop."""
    usage: str
    """The options that it cannot do without."""
    plan: type[Any]
    rank: int
    """Its place in the list of verbs, 1 is the first."""
    job: str
    """The module of its work: `describe(plan)`; with Spark also `check` and `run(spark, plan)`."""
    command: str
    """The module that runs it for the command line: `run(arguments, out, errors)`."""
    group: str
    """The title of its own options in the help page."""
    notes: str
    """Paragraphs of the help page, behind the options."""
    examples: Sequence[str]
    """Words behind `minibroker pipeline`, one example each."""
    check: Callable[[Any, Names], None] | None = None
    """Raises JobUsageError if the options of a plan do not go together."""
    engine: type[Any] | None = None
    """The options of the Spark that runs it, None: it needs none."""
    first: Sequence[str] = ()
    """The fields that may stand first in a call in Python, without their names."""
    function: str = ""
    """The help of its function in Python; empty: it has none."""
    done: Callable[[Any, int], str] | None = None
    """Returns what it has done with so many rows; None: it is no job that reports batches."""
    note: Callable[[Any, Any], Any] | None = None
    """Returns a `Note` about the end of such a job, from the plan and the `Outcome`, or None."""
    brokers: Callable[[Any], str | None] = lambda plan: plan.kafka.bootstrap
    """Returns the addresses that a plan asks, None: it asks no broker."""
    engine_for: Callable[[Any, Any, Mapping[str, str]], Any] | None = None
    """Returns the engine with the settings that a plan needs, from both and the environment."""

    @property
    def reports_batches(self) -> bool:
        """Return whether it is a job that reports batches, and goes on where it ended."""
        return self.done is not None


class InWords(NamedTuple):
    """The way in through the command line: flag → the words behind it, each time it was given."""

    given: Mapping[str, Sequence[str]]

    def name_of(self, field: PlanField) -> str:
        """Return what the user calls a field."""
        return option_of(field).flag

    def has(self, field: PlanField) -> bool:
        """Return whether the user gave the field."""
        return self.name_of(field) in self.given

    def value_of(self, field: PlanField) -> Any:
        """Return the value that was given. Raises JobUsageError without the option's name."""
        option, words = option_of(field), self.given[self.name_of(field)]
        if len(words) > 1 and not (option.kind.is_repeated or option.kind.is_switch):
            raise JobUsageError(f"is given {len(words)} times")
        return option.kind.of_words(words)

    def example_of(self, field: PlanField) -> str:
        """Return an example of the field."""
        example = _quoted(option_of(field).example)
        return f"{self.name_of(field)} {example}" if option_of(field).is_flag else example


class InPython(NamedTuple):
    """The way in through a function: keyword → value; None counts as not given."""

    given: Mapping[str, Any]

    def name_of(self, field: PlanField) -> str:
        """Return what the user calls a field."""
        return option_of(field).name or field.name

    def has(self, field: PlanField) -> bool:
        """Return whether the user gave the field."""
        return self.given.get(self.name_of(field)) is not None

    def value_of(self, field: PlanField) -> Any:
        """Return the value that was given. Raises JobUsageError without the option's name."""
        return option_of(field).kind.of_python(self.given[self.name_of(field)])

    def example_of(self, field: PlanField) -> str:
        """Return an example of the field."""
        return f"{self.name_of(field)}={option_of(field).example!r}"


Way = InWords | InPython


def plan_of(verb: Verb, way: Way) -> Any:
    """Return the plan of a verb. Raises JobUsageError for values that cannot be, also together."""
    plan = built(verb.plan, way)
    if verb.check is not None:
        verb.check(plan, {field.name: way.name_of(field) for field in options_of(verb.plan)})
    return plan


def built(declared: type[Any], way: Way) -> Any:
    """Return a NamedTuple of options, filled. Raises JobUsageError, with the option in front."""
    values = {}
    for field in fields_of(declared):
        if isinstance(field.declared, Part):
            part = built(field.declared.declared, way)
            values[field.name] = part if (make := field.declared.build) is None else make(part)
        elif way.has(field):
            values[field.name] = _read(field, way)
        elif field.is_needed:
            raise _missing(field, way)
    return declared(**values)


def _read(field: PlanField, way: Way) -> Any:
    try:
        value = way.value_of(field)
    except JobUsageError as error:
        raise JobUsageError(f"{way.name_of(field)} {error}") from None
    if field.is_needed and value in ("", ()):
        raise _missing(field, way)
    return value


def _missing(field: PlanField, way: Way) -> JobUsageError:
    return JobUsageError(f"{way.name_of(field)} is missing: for instance {way.example_of(field)}")


def unknown(word: str, known: Sequence[str]) -> JobUsageError:
    """Return the error for a word of the command line that is no flag of the verb."""
    return JobUsageError(f"unknown argument {word!r}{near(word.partition('=')[0], known)}")


def fields_of(declared: type[Any]) -> tuple[PlanField, ...]:
    """Return the fields of a NamedTuple of options."""
    if declared not in _FIELDS:
        _FIELDS[declared] = tuple(_fields_of(declared))
    return _FIELDS[declared]


_FIELDS: Final[dict[type[Any], tuple[PlanField, ...]]] = {}
"""Results of `fields_of`, because type hints are slow to read."""


def _fields_of(declared: type[Any]) -> Iterator[PlanField]:
    defaults: Mapping[str, Any] = declared._field_defaults
    for name, hint in get_type_hints(declared, include_extras=True).items():
        for told in getattr(hint, "__metadata__", ()):
            if isinstance(told, Option | Part):
                yield PlanField(name, told, name not in defaults, defaults.get(name))


def options_of(declared: type[Any]) -> list[PlanField]:
    """Return the fields that are options, those of parts in place of the part."""
    found: list[PlanField] = []
    for field in fields_of(declared):
        if isinstance(field.declared, Part):
            found.extend(options_of(field.declared.declared))
        else:
            found.append(field)
    return found


def option_of(field: PlanField) -> Option:
    """Return the option of a field that is no part."""
    if isinstance(field.declared, Part):
        raise TypeError(f"field {field.name} is a part of several options")
    return field.declared


def given_lines(plan: Any) -> list[str]:
    """Return `--flag value` for each option of a plan that has not its default."""
    lines = []
    for field in fields_of(type(plan)):
        value = getattr(plan, field.name)
        if isinstance(field.declared, Part):
            if isinstance(value, field.declared.declared):
                lines.extend(given_lines(value))
        elif field.is_needed or value != field.default:
            kind = field.declared.kind
            shown = "" if kind.is_switch else f" {_quoted(kind.show(value))}"
            if field.declared.is_flag:
                lines.append(field.declared.flag + shown)
    return lines


def _quoted(text: str) -> str:
    return f"'{text}'" if any(letter in text for letter in " *()") else text


def help_text(field: PlanField) -> str:
    """Return what an option does, whether its flag is repeated, and its default."""
    option = option_of(field)
    often = "; may be given more than once" if option.kind.is_repeated else ""
    default = option.default
    if not default and field.default and not (field.is_needed or option.kind.is_switch):
        default = option.kind.show(field.default)
    return f"{option.help}{often}" + (f" ({default})" if default else "")


def argument_lines(keywords: Mapping[str, PlanField]) -> list[str]:
    """Return `name: what it does` for each keyword of a function."""
    lines = []
    for name, field in keywords.items():
        option = option_of(field)
        words = "" if option.kind.is_switch else f" {option.metavar or option.kind.metavar}"
        lines.append(f"{name}: {option.help} ({option.flag}{words})")
    return lines
