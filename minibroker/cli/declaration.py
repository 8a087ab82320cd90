"""The declaration of a verb: its plan's fields carry their options, and all else comes from them.

    class ProducePlan(NamedTuple):
        topic: Annotated[str, Option("TOPIC", TOPIC, "topic to write", example="orders")]
        connection: Annotated[Connection, CONNECTION_OPTIONS] = Connection()
        is_json: Annotated[bool, Option("--json", SWITCH, "each line is a record as JSON")] = False

A field has its type, its flag, how its value is read, its default and its help. From that come the
parser of the command line (`parser`), the help page (`help_page`), the completion of shells, and
the plan with its checks (`plan_of`). The verbs of the pipeline are functions in Python, too: there
a field has a keyword, and both ways in read and refuse the same.

`minibroker.cli` says how to declare a verb, and CONTRIBUTING.md how to add one to the pipeline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, ForwardRef, get_type_hints

from minibroker.cli.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TextIO

    from minibroker.cli.kinds import Kind

Names = dict[str, str]
"""PlanField → the user's name of it: its flag on the command line, its keyword in Python."""


class Option:
    """One option of a verb, on the command line and in Python. Constant after construction."""

    __slots__ = (
        "default",
        "example",
        "flag",
        "group",
        "help",
        "kind",
        "metavar",
        "name",
        "short",
    )

    def __init__(
        self,
        flag: str,
        kind: Kind,
        help: str,  # noqa: A002  the word of its page
        group: str = "",
        *,
        name: str = "",
        metavar: str = "",
        default: str = "",
        example: str = "",
        short: str = "",
    ) -> None:
        """Declare an option.

        Args:
            flag: its flag, or a name without dashes for a value that has its place on the command
                line.
            kind: how its value is read and shown.
            help: its effect, in lower case and without a full stop; the default is added in
                brackets.
            group: the title of the help page under which it stands; empty: that of the verb itself.
            name: the keyword in Python; empty: the name of the field.
            metavar: the value's name in the help; empty: that of the kind.
            default: the default in the help; empty: that of the field.
            example: a value for the sentence that says that the option is missing.
            short: a flag of one letter beside the long one: `-n`; empty: it has none.
        """
        self.flag = flag
        self.kind = kind
        self.help = help
        self.group = group
        self.name = name
        self.metavar = metavar
        self.default = default
        self.example = example
        self.short = short

    @property
    def is_flag(self) -> bool:
        """Return whether a flag stands before the value; else the value has a place: `A`."""
        return self.flag.startswith("-")

    def changed(self, **changes: str) -> Option:
        """Return the same option with other texts, for another verb."""
        texts = {name: getattr(self, name) for name in self.__slots__ if name != "kind"}
        return Option(kind=self.kind, **texts | changes)


class Part:
    """Options that belong together, in a NamedTuple of their own: one field of the plan."""

    __slots__ = ("build", "declared")

    def __init__(self, declared: type[Any], build: Callable[[Any], Any] | None = None) -> None:
        """Take the NamedTuple, and the function that returns the field's value from the tuple of
        the options; None: the tuple is the value.
        """
        self.declared = declared
        self.build = build


class InOrder:
    """Options whose order on the command line counts: one field of the plan, a tuple of the values
    of their kinds, in the order of the words. It has no way in from Python.
    """

    __slots__ = ("options",)

    def __init__(self, options: Sequence[Option]) -> None:
        self.options = tuple(options)


class PlanField:
    """A field of a plan and its declaration."""

    __slots__ = ("declared", "default", "is_needed", "name")

    def __init__(
        self, name: str, declared: Option | Part | InOrder, *, is_needed: bool, default: Any = None
    ) -> None:
        self.name = name
        self.declared = declared
        self.is_needed = is_needed
        self.default = default


EXITS: Final = (
    "Exit codes: 0; 1 for a failure, with one sentence that says why; 2 for wrong usage; 130 after "
    "Ctrl-C."
)


class Verb:
    """A verb of the program. Constant after construction."""

    within = "minibroker"
    """The words before its name."""

    def __init__(
        self,
        *,
        name: str,
        does: str,
        plan: type[Any],
        run: Callable[[Any, TextIO, TextIO], int],
        examples: Sequence[str],
        usage: str = "",
        group: str = "Options",
        groups: Sequence[str] = (),
        notes: str = "",
        exits: str = EXITS,
        check: Callable[[Any, Names], None] | None = None,
        later_wins: bool = False,
        resumes_collector: bool = False,
    ) -> None:
        """Declare a verb.

        Args:
            name: its word on the command line.
            does: its effect, after a colon, in lower case and without a full stop.
            plan: the NamedTuple of its options.
            run: does the work of a plan, writes results and complaints, returns the exit code.
            examples: words behind `minibroker`, one example each.
            usage: the options that it cannot do without; empty: those of the plan.
            group: the title of its own options in the help page.
            groups: the titles behind it, in their order; others follow in the order of the plan.
            notes: paragraphs of the help page, behind the options.
            exits: the paragraph about its exit codes.
            check: raises UsageError if the options of a plan do not go together.
            later_wins: of an option that is given again the last counts; else it is refused.
            resumes_collector: `run` calls `resume_collector`; else it is called before.
        """
        self.name = name
        self.does = does
        self.plan = plan
        self.run = run
        self.examples = examples
        self.usage = usage
        self.group = group
        self.groups = groups
        self.notes = notes
        self.exits = exits
        self.check = check
        self.later_wins = later_wins
        self.resumes_collector = resumes_collector

    @property
    def command(self) -> str:
        """Return its words on the command line: `minibroker produce`."""
        return f"{self.within} {self.name}"

    def fields(self) -> list[PlanField]:
        """Return the fields of all its options on the command line."""
        return options_of(self.plan)

    def start(self, way: InWords, out: TextIO, errors: TextIO) -> int:
        """Run it with the words of a user; return the exit code.

        Raises CommandError, UsageError, and the errors of its `run`.
        """
        return self.run(plan_of(self, way), out, errors)


class VerbGroup:
    """Verbs behind one word: the program itself, or `minibroker pipeline`."""

    __slots__ = ("aliases", "command", "does", "modules", "notes", "sections", "shows_examples")

    def __init__(
        self,
        *,
        command: str,
        does: str,
        sections: Mapping[str, Mapping[str, str]],
        aliases: Mapping[str, str] | None = None,
        notes: str = "",
        shows_examples: bool = False,
    ) -> None:
        """Declare a group.

        Args:
            command: its words on the command line.
            does: its subject, after a colon, in lower case and without a full stop.
            sections: title of the help → name → the module that has the verb, or a group, as
                `VERB`.
            aliases: other words for a name.
            notes: paragraphs of the help page, behind the verbs.
            shows_examples: the help page has the first example of each verb.
        """
        self.command = command
        self.does = does
        self.sections = sections
        self.aliases = aliases or {}
        self.notes = notes
        self.shows_examples = shows_examples
        self.modules = {name: module for part in sections.values() for name, module in part.items()}
        """Name → module of all sections."""


class InWords:
    """The way in through the command line."""

    __slots__ = ("in_order", "later_wins", "values")

    def __init__(
        self,
        values: Mapping[str, Sequence[str]],
        in_order: Sequence[tuple[str, str]] = (),
        *,
        later_wins: bool = False,
    ) -> None:
        """Take the words of a user.

        Args:
            values: flag → the words behind it, each time it was given.
            in_order: flag and word, in the order of the command line.
            later_wins: of several words for one value the last one counts.
        """
        self.values = values
        self.in_order = in_order
        self.later_wins = later_wins

    def name_of(self, field: PlanField) -> str:
        """Return what the user calls a field."""
        return option_of(field).flag

    def has(self, field: PlanField) -> bool:
        """Return whether the user gave the field."""
        return self.name_of(field) in self.values

    def value_of(self, field: PlanField) -> Any:
        """Return the value that was given. Raises UsageError without the option's name."""
        option, words = option_of(field), self.values[self.name_of(field)]
        is_often = option.kind.is_repeated or option.kind.is_switch or self.later_wins
        if len(words) > 1 and not is_often:
            raise UsageError(f"is given {len(words)} times")
        return option.kind.of_words(words)

    def example_of(self, field: PlanField) -> str:
        """Return an example of the field."""
        example = _quoted(option_of(field).example)
        return f"{self.name_of(field)} {example}" if option_of(field).is_flag else example


class InPython:
    """The way in through a function."""

    __slots__ = ("values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        """Take the arguments of a call: keyword → value; None counts as not given."""
        self.values = values

    def name_of(self, field: PlanField) -> str:
        """Return what the user calls a field."""
        return option_of(field).name or field.name

    def has(self, field: PlanField) -> bool:
        """Return whether the user gave the field."""
        return self.values.get(self.name_of(field)) is not None

    def value_of(self, field: PlanField) -> Any:
        """Return the value that was given. Raises UsageError without the option's name."""
        return option_of(field).kind.of_python(self.values[self.name_of(field)])

    def example_of(self, field: PlanField) -> str:
        """Return an example of the field."""
        return f"{self.name_of(field)}={option_of(field).example!r}"


Way = InWords | InPython


def plan_of(verb: Verb, way: Way) -> Any:
    """Return the plan of a verb. Raises UsageError for values that cannot be, also together."""
    plan = built(verb.plan, way)
    if verb.check is not None:
        verb.check(plan, {field.name: way.name_of(field) for field in options_of(verb.plan)})
    return plan


def built(declared: type[Any], way: Way) -> Any:
    """Return a NamedTuple of options, filled. Raises UsageError, with the option in front."""
    values = {}
    for field in fields_of(declared):
        if isinstance(field.declared, InOrder):
            values[field.name] = _read_in_order(field.declared, way)
        elif isinstance(field.declared, Part):
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
    except UsageError as error:
        raise UsageError(f"{way.name_of(field)} {error}") from None
    if field.is_needed and value in ("", ()):
        raise _missing(field, way)
    return value


def _read_in_order(declared: InOrder, way: Way) -> tuple[Any, ...]:
    kinds = {option.flag: option.kind for option in declared.options}
    values: list[Any] = []
    for flag, word in way.in_order if isinstance(way, InWords) else ():
        if flag in kinds:
            try:
                value = kinds[flag].of_words([word])
            except UsageError as error:
                raise UsageError(f"{flag} {error}") from None
            values += value if kinds[flag].is_repeated else [value]
    return tuple(values)


def _missing(field: PlanField, way: Way) -> UsageError:
    return UsageError(f"{way.name_of(field)} is missing: for instance {way.example_of(field)}")


def fields_of(declared: type[Any]) -> tuple[PlanField, ...]:
    """Return the fields of a NamedTuple of options."""
    if declared not in _FIELDS:
        _FIELDS[declared] = tuple(_fields_of(declared))
    return _FIELDS[declared]


_FIELDS: Final[dict[type[Any], tuple[PlanField, ...]]] = {}
"""Results of `fields_of`, because type hints are slow to read."""


def _fields_of(declared: type[Any]) -> Iterator[PlanField]:
    defaults: Mapping[str, Any] = declared._field_defaults
    hints = declared.__annotations__
    if any(isinstance(hint, ForwardRef) for hint in hints.values()):  # annotations are strings
        hints = get_type_hints(declared, include_extras=True)
    for name, hint in hints.items():
        for note in getattr(hint, "__metadata__", ()):
            if isinstance(note, Option | Part | InOrder):
                yield PlanField(
                    name, note, is_needed=name not in defaults, default=defaults.get(name)
                )


def options_of(declared: type[Any]) -> list[PlanField]:
    """Return the fields that are options, those of parts in place of the part."""
    fields: list[PlanField] = []
    for field in fields_of(declared):
        if isinstance(field.declared, Part):
            fields.extend(options_of(field.declared.declared))
        elif isinstance(field.declared, InOrder):
            fields.extend(
                PlanField(option.name or option.flag.lstrip("-"), option, is_needed=False)
                for option in field.declared.options
            )
        else:
            fields.append(field)
    return fields


def option_of(field: PlanField) -> Option:
    """Return the option of a field that is a single one."""
    if not isinstance(field.declared, Option):
        raise TypeError(f"field {field.name} has several options")
    return field.declared


def given_lines(plan: Any) -> list[str]:
    """Return `--flag value` for each option of a plan that has not its default."""
    lines = []
    for field in fields_of(type(plan)):
        value = getattr(plan, field.name)
        if isinstance(field.declared, Part):
            if isinstance(value, field.declared.declared):
                lines.extend(given_lines(value))
        elif isinstance(field.declared, Option) and (field.is_needed or value != field.default):
            kind = field.declared.kind
            value_text = "" if kind.is_switch else f" {_quoted(kind.show(value))}"
            if field.declared.is_flag:
                lines.append(field.declared.flag + value_text)
    return lines


def _quoted(text: str) -> str:
    return f"'{text}'" if any(letter in text for letter in " *()") else text


def help_text(field: PlanField) -> str:
    """Return what an option does, whether its flag is repeated, and its default."""
    option = option_of(field)
    is_often = option.kind.is_repeated and option.is_flag
    often = "; may be given more than once" if is_often else ""
    default = option.default
    if not default and field.default and not (field.is_needed or option.kind.is_switch):
        default = option.kind.show(field.default)
    return f"{option.help}{often}" + (f" (default: {default})" if default else "")


def argument_lines(keywords: Mapping[str, PlanField]) -> list[str]:
    """Return `name: what it does` for each keyword of a function."""
    lines = []
    for name, field in keywords.items():
        option = option_of(field)
        words = "" if option.kind.is_switch else f" {option.metavar or option.kind.metavar}"
        lines.append(f"{name}: {option.help} ({option.flag}{words})")
    return lines
