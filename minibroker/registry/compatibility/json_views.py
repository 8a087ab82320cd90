"""A JSON Schema as conditions that hold together: `$ref` and `allOf` are dissolved.

    {allOf: [{$ref: A}, B], anyOf: [C, D], not: E, …}  ─►  conditions A, B, …; the sum C or D; not E

A condition is an object of a schema and its plain keywords. A value fits a view if it fits every
condition, one branch of each sum, and none of the schemas in `nots`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.patterns import PatternError, compile_pattern
from minibroker.registry.formats import json_text
from minibroker.registry.formats.json_schemas import REFERENCES, JsonContent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.registry.formats.limits import WorkBudget

TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_VALUES_OF_A_STEP: Final = 10
_STEPS_OF_A_PATTERN: Final = 20
_SUMS: Final = ("anyOf", "oneOf")


class PatternTrials:
    """Patterns of one comparison, tried on names of properties by RE2."""

    def __init__(self, budget: WorkBudget) -> None:
        self._budget = budget
        self._patterns: dict[str, Any] = {}
        """Pattern → compiled; None: RE2 does not know it, or is not installed."""

    def matches(self, pattern: str, name: str) -> bool | None:
        """Return whether a pattern is in a name; None: it cannot be tried. Raises
        InvalidSchemaError.
        """
        self._budget.step()
        if pattern not in self._patterns:
            self._budget.step(_STEPS_OF_A_PATTERN)
            try:
                self._patterns[pattern] = compile_pattern(pattern)
            except PatternError:
                self._patterns[pattern] = None
        compiled = self._patterns[pattern]
        return None if compiled is None else compiled.search(name) is not None


class JsonSum(NamedTuple):
    """Schemas of which a value fits at least one."""

    keyword: str
    """`anyOf` or `oneOf`."""
    branches: tuple[JsonContent, ...]


class JsonCondition(NamedTuple):
    """`if`, `then` and `else`; true where a part is missing."""

    test: JsonContent
    positive: JsonContent
    negative: JsonContent


@dataclass(frozen=True, eq=False)
class JsonView:
    """Conditions, sums and the rest: a value has to fit all of them."""

    conditions: tuple[JsonContent, ...] = ()
    """Objects of schemas; only their plain keywords count."""
    sums: tuple[JsonSum, ...] = ()
    nots: tuple[JsonContent, ...] = ()
    tests: tuple[JsonCondition, ...] = ()
    is_false: bool = False
    """No value fits."""
    mentions: frozenset[str] = field(default_factory=frozenset)
    """Properties that a branch of a sum knows: they count as evaluated."""

    def values(self, keyword: str) -> list[Any]:
        """Return the values of a keyword in the conditions that have it."""
        return [
            node.schema[keyword] for node in self.conditions if node.schema.get(keyword) is not None
        ]

    @cached_property
    def constants(self) -> dict[str, Any] | None:
        """Return the values that an enum or a const allows, by their texts; None: any."""
        allowed: dict[str, Any] | None = None
        for node in self.conditions:
            for values in _constants(node.schema):
                texts = {canonical_value(value): value for value in values}
                if allowed is not None:
                    texts = {text: value for text, value in texts.items() if text in allowed}
                allowed = texts
        if allowed is None:
            return None
        types = self._keyword_types
        return {text: value for text, value in allowed.items() if types & types_of(value)}

    @cached_property
    def types(self) -> frozenset[str]:
        """Return the types that a value can have."""
        if self.constants is not None:
            return frozenset(most_special(types_of(value)) for value in self.constants.values())
        return self._keyword_types

    @cached_property
    def _keyword_types(self) -> frozenset[str]:
        types = TYPES - {"integer"}
        for keyword in self.values("type"):
            names = {keyword} if isinstance(keyword, str) else {*keyword}
            types = common_types(types, frozenset(names))
        return types

    @cached_property
    def required(self) -> frozenset[str]:
        """Return the properties that an object must have."""
        return frozenset(
            name for names in self.values("required") if isinstance(names, list) for name in names
        )

    @cached_property
    def names(self) -> dict[str, None]:
        """Return the names in `properties`, in their order."""
        return {name: None for part in self.values("properties") for name in part}

    @cached_property
    def weight(self) -> int:
        """Return the steps of work that one look at the view takes."""
        parts = ("enum", "properties", "patternProperties", "required")
        values = sum(len(value) for keyword in parts for value in self.values(keyword))
        return len(self.conditions) + values // _VALUES_OF_A_STEP

    def property_schemas(
        self, name: str, patterns: PatternTrials, *, may_match: bool
    ) -> list[JsonContent]:
        """Return the schemas that a property has to fit; none: anything fits.

        Args:
            may_match: what to do with a pattern that cannot be tried: True takes its schema.

        Raises InvalidSchemaError: too much work.
        """
        schemas: list[JsonContent] = []
        for node in self.conditions:
            own = _own_property_schemas(node, name, patterns, may_match=may_match)
            if own is None and "additionalProperties" in node.schema:
                own = [node.part(node.schema["additionalProperties"])]
            if (
                own is None
                and "unevaluatedProperties" in node.schema
                and not self._knows(name, patterns)
            ):
                own = [node.part(node.schema["unevaluatedProperties"])]
            schemas += own or ()
        return schemas

    def other_properties(self) -> list[JsonContent]:
        """Return the schemas that a property without a name or a pattern here has to fit."""
        return [schema for node in self.conditions if (schema := rest_of_object(node)) is not None]

    def pattern_schemas(self, pattern: str) -> list[JsonContent]:
        """Return the schemas that a property with a pattern of this view, and no name, has to
        fit.
        """
        schemas = []
        for node in self.conditions:
            patterns = node.schema.get("patternProperties", {})
            if pattern in patterns:
                schemas.append(node.part(patterns[pattern]))
            elif not patterns and (rest := rest_of_object(node)) is not None:
                schemas.append(rest)
        return schemas

    def item_schemas(self, index: int | None) -> list[JsonContent]:
        """Return the schemas that an item has to fit; None: one behind all with a place."""
        schemas = []
        for node in self.conditions:
            prefix, rest = items_of(node)
            if index is not None and index < len(prefix):
                schemas.append(prefix[index])
            elif rest is not None:
                schemas.append(rest)
        return schemas

    def prefix_length(self) -> int:
        """Return how many items have schemas of their own."""
        return max((len(items_of(node)[0]) for node in self.conditions), default=0)

    def with_branch(self, removed: JsonSum, branch: JsonContent, budget: WorkBudget) -> JsonView:
        """Return the view with one branch in place of a sum. Raises InvalidSchemaError."""
        rest = tuple(part for part in self.sums if part is not removed)
        return merged(replace(self, sums=rest), view((branch,), budget))

    def _knows(self, name: str, patterns: PatternTrials) -> bool:
        return name in self.mentions or any(
            _own_property_schemas(node, name, patterns, may_match=True) is not None
            for node in self.conditions
        )


def view(nodes: Iterable[JsonContent], budget: WorkBudget) -> JsonView:
    """Return schemas that hold together as one view. Raises InvalidSchemaError."""
    conditions: list[JsonContent] = []
    sums: list[JsonSum] = []
    nots: list[JsonContent] = []
    tests: list[JsonCondition] = []
    pending = [*nodes]
    visited: set[int] = set()
    while pending:
        node = pending.pop()
        budget.step()
        if node.schema is False:
            return JsonView(is_false=True)
        if not isinstance(node.schema, dict) or id(node.schema) in visited:
            continue
        visited.add(id(node.schema))
        node = node.of_draft()
        references = [key for key in REFERENCES if isinstance(node.schema.get(key), str)]
        pending.extend(node.target(node.schema[key]) for key in references)
        if references and node.reference_alone:
            continue
        conditions.append(node)
        pending.extend(node.part(part) for part in reversed(node.schema.get("allOf", ())))
        for keyword in _SUMS:
            branches = tuple(map(node.part, node.schema.get(keyword, ())))
            if len(branches) == 1:
                pending.extend(branches)
            elif branches:
                sums.append(JsonSum(keyword, branches))
        if "not" in node.schema:
            nots.append(node.part(node.schema["not"]))
        if "if" in node.schema:
            parts = (node.part(node.schema.get(key, True)) for key in ("if", "then", "else"))
            tests.append(JsonCondition(*parts))
    mentions = frozenset(
        name
        for part in sums
        for branch in part.branches
        if isinstance(branch.schema, dict)
        for name in branch.schema.get("properties", ())
    )
    return JsonView(tuple(conditions), tuple(sums), tuple(nots), tuple(tests), mentions=mentions)


def merged(first: JsonView, second: JsonView) -> JsonView:
    """Return the view of what fits both."""
    return JsonView(
        first.conditions + second.conditions,
        first.sums + second.sums,
        first.nots + second.nots,
        first.tests + second.tests,
        first.is_false or second.is_false,
        first.mentions | second.mentions,
    )


def rest_of_object(node: JsonContent) -> JsonContent | None:
    """Return the schema of properties that a condition does not name; None: any."""
    for keyword in ("additionalProperties", "unevaluatedProperties"):
        if keyword in node.schema:
            return node.part(node.schema[keyword])
    return None


def items_of(node: JsonContent) -> tuple[list[JsonContent], JsonContent | None]:
    """Return the schemas of the first items, and that of all others (None: any)."""
    schema = node.schema
    prefix, rest = schema.get("prefixItems"), "items"
    if not isinstance(prefix, list):
        prefix = schema.get("items")
        if isinstance(prefix, list):
            rest = "additionalItems"
        else:
            prefix = []
    if rest not in schema:
        rest = "unevaluatedItems"
    return [*map(node.part, prefix)], node.part(schema[rest]) if rest in schema else None


def types_of(value: Any) -> frozenset[str]:
    """Return the types of a value: an integer is a number too."""
    match value:
        case None:
            return frozenset({"null"})
        case bool():
            return frozenset({"boolean"})
        case int():
            return frozenset({"integer", "number"})
        case float():
            return frozenset({"integer", "number"} if value.is_integer() else {"number"})
        case str():
            return frozenset({"string"})
        case list():
            return frozenset({"array"})
    return frozenset({"object"})


def most_special(types: frozenset[str]) -> str:
    """Return the one type of a value that says most."""
    return "integer" if "integer" in types else next(iter(types))


def common_types(first: frozenset[str], second: frozenset[str]) -> frozenset[str]:
    """Return the types of a value that has a type of both."""
    types = first & second
    for one_side, other in ((first, second), (second, first)):
        if "number" in one_side and "integer" in other:
            types |= {"integer"}
    return types - {"integer"} if "number" in types else types


def canonical_value(value: Any) -> str:
    """Return a text that is the same for equal values of JSON."""
    return json_text.dump(_equalized(value))


def _equalized(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _equalized(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_equalized(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _constants(schema: dict[str, Any]) -> Iterable[list[Any]]:
    if isinstance(schema.get("enum"), list):
        yield schema["enum"]
    if "const" in schema:
        yield [schema["const"]]


def _own_property_schemas(
    node: JsonContent, name: str, patterns: PatternTrials, *, may_match: bool
) -> list[JsonContent] | None:
    """Return the schemas of `properties` and `patternProperties` for a name; None: neither."""
    schemas = []
    properties = node.schema.get("properties", {})
    if name in properties:
        schemas.append(node.part(properties[name]))
    is_known = name in properties
    for pattern, schema in node.schema.get("patternProperties", {}).items():
        fits = patterns.matches(pattern, name)
        if fits is not False:
            is_known = True
        if fits or (fits is None and may_match):
            schemas.append(node.part(schema))
    return schemas if is_known else None
