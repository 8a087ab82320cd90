"""JSON Schemas: text ─► ParsedSchema, whose content is a JsonContent.

The package `jsonschema` says whether a text is a schema of its draft, and `referencing`, which it
brings, finds the targets of `$ref`: inside the text and in the references that were given. Nothing
is ever fetched.

Canonical is the text without blanks, keys in their order. Normalized has sorted keys.

Source: JSON Schema drafts 4, 6, 7, 2019-09, 2020-12; Confluent's JsonSchema (draft 7 without
`$schema`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urljoin

from jsonschema import FormatChecker, validators
from jsonschema.exceptions import SchemaError
from jsonschema_specifications import REGISTRY
from referencing.exceptions import Unresolvable
from referencing.jsonschema import (
    DRAFT4,
    DRAFT6,
    DRAFT7,
    DRAFT201909,
    DRAFT202012,
    specification_with,
)

from minibroker.registry.formats import json_text
from minibroker.registry.formats.limits import WorkBudget
from minibroker.registry.formats.parsed_schema import InvalidSchemaError, ParsedSchema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from referencing import Resource, Specification
    from referencing._core import Resolver

SCHEMA_DEPTH_MAX: Final = 80
"""Brackets inside brackets: the metaschema of 2020-12 takes eight frames of Python for one, and its
registry, which is no Python, ends badly where the stack does."""
LIST_MAX: Final = 1000
"""Values in a list that cannot be sorted: the metaschema compares each with each."""
PATTERN_MAX: Final = 2000
"""Characters of a pattern."""
_VALIDATORS: Final = {
    DRAFT4: validators.Draft4Validator,
    DRAFT6: validators.Draft6Validator,
    DRAFT7: validators.Draft7Validator,
    DRAFT201909: validators.Draft201909Validator,
    DRAFT202012: validators.Draft202012Validator,
}
_NO_FORMATS: Final = FormatChecker(formats=())
"""Patterns are those of ECMAScript, which Python's do not judge."""
REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_REFERENCE_ALONE: Final = {DRAFT4, DRAFT6, DRAFT7}
"""Drafts in which nothing beside a `$ref` counts."""
_SINCE_6: Final = frozenset({"const", "contains", "propertyNames"})
_SINCE_7: Final = frozenset({"if", "then", "else"})
_SINCE_2019: Final = frozenset(
    {
        *("dependentRequired", "dependentSchemas", "maxContains", "minContains"),
        *("unevaluatedItems", "unevaluatedProperties"),
    }
)
_SINCE_2020: Final = frozenset({"prefixItems", "$dynamicRef"})
_UNKNOWN_KEYWORDS: Final = {
    DRAFT4: _SINCE_6 | _SINCE_7 | _SINCE_2019 | _SINCE_2020 | {"$recursiveRef"},
    DRAFT6: _SINCE_7 | _SINCE_2019 | _SINCE_2020 | {"$recursiveRef"},
    DRAFT7: _SINCE_2019 | _SINCE_2020 | {"$recursiveRef"},
    DRAFT201909: _SINCE_2020,
    DRAFT202012: frozenset({"additionalItems", "$recursiveRef"}),
}
"""Draft → keywords of other drafts: they mean nothing, and their values can be anything."""
_NAME_OF_A_GROUP: Final = re.compile(r"\(\?<(?![=!])")
_UNICODE_CLASS: Final = re.compile(r"\\[pP]\{[^}]*\}|\\u\{[^}]*\}|\\c[A-Za-z]")


@dataclass(frozen=True, slots=True)
class JsonContent:
    """A JSON Schema for comparisons."""

    schema: Any
    """The value of the text: an object, true or false."""
    resolver: Resolver[Any]
    """Finds the targets of its references."""
    draft: Specification[Any]

    @property
    def reference_alone(self) -> bool:
        """Return whether nothing beside a `$ref` counts."""
        return self.draft in _REFERENCE_ALONE

    def part(self, schema: Any) -> JsonContent:
        """Return a schema that stands inside this one."""
        resolver = self.resolver
        if isinstance(schema, dict) and ("$id" in schema or "id" in schema):
            resolver = resolver.in_subresource(self.draft.create_resource(schema))
        return JsonContent(schema, resolver, self.draft)

    def of_draft(self) -> JsonContent:
        """Return the schema without the keywords of other drafts."""
        unknown = _UNKNOWN_KEYWORDS[self.draft]
        if unknown.isdisjoint(self.schema):
            return self
        schema = {key: value for key, value in self.schema.items() if key not in unknown}
        return JsonContent(schema, self.resolver, self.draft)

    def target(self, reference: str) -> JsonContent:
        """Return the schema that a reference names. Raises InvalidSchemaError."""
        try:
            resolved = self.resolver.lookup(reference)
        except (Unresolvable, ValueError, TypeError) as error:
            raise InvalidSchemaError(
                f"the reference {reference:.200} has no target: it is neither inside the schema"
                f" nor one of its references ({type(error).__name__})"
            ) from None
        if not isinstance(resolved.contents, dict | bool):
            raise InvalidSchemaError(f"the target of the reference {reference:.200} is no schema")
        return JsonContent(resolved.contents, resolved.resolver, self.draft)


def parse(text: str, references: Sequence[tuple[str, str]]) -> ParsedSchema:
    """Return the schema of a text; see `formats.parse`. Raises InvalidSchemaError."""
    schema = _checked(text)
    resource = _resource(schema)
    others = {name: _resource(_checked(content)) for name, content in references}
    base = resource.id() or ""
    registry = REGISTRY.with_resources(
        [
            *others.items(),
            *((urljoin(base, name), other) for name, other in others.items()),
            *((uri, other) for other in others.values() if (uri := other.id())),
            (base, resource),
        ]
    )
    # All identifiers are collected now: a lookup would collect them again, each time.
    try:
        content = JsonContent(schema, registry.crawl().resolver(base), _draft(schema))
        _check_references(content)
    except (AttributeError, TypeError):
        # `referencing` reads a `$schema` inside by its draft, which nothing has judged.
        raise InvalidSchemaError("a schema inside is none of the draft that it names") from None
    return ParsedSchema(
        schema_type="JSON",
        canonical=json_text.dump(schema),
        normalized=json_text.dump(_sorted(schema)),
        content=content,
    )


def _checked(text: str) -> Any:
    """Return the value of a text that is a schema of its draft."""
    schema = json_text.load(text, SCHEMA_DEPTH_MAX)
    if not isinstance(schema, dict | bool):
        raise InvalidSchemaError("a JSON Schema is an object, true or false")
    _check_values(schema)
    _check_schema(schema, _draft(schema))
    return schema


def _check_schema(schema: Any, draft: Specification[Any]) -> None:
    """Check a schema by the metaschema of its draft. Raises InvalidSchemaError."""
    try:
        _VALIDATORS[draft].check_schema(schema, format_checker=_NO_FORMATS)
    except SchemaError as error:
        place = "/".join(map(str, error.absolute_path))
        raise InvalidSchemaError(f"at '#/{place}': {error.message:.500}") from None


def _draft(schema: Any) -> Specification[Any]:
    uri = schema.get("$schema") if isinstance(schema, dict) else None
    if not isinstance(uri, str):
        return DRAFT7
    uri = uri.replace("https://json-schema.org/draft-", "http://json-schema.org/draft-")
    uri = uri.replace("http://json-schema.org/draft/", "https://json-schema.org/draft/")
    draft = specification_with(uri, default=DRAFT7)
    return draft if draft in _VALIDATORS else DRAFT7


def _resource(schema: Any) -> Resource[Any]:
    return _draft(schema).create_resource(schema)


def _check_values(schema: Any) -> None:
    """Check each list and each pattern. Raises InvalidSchemaError."""
    pending = [schema]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            _check_patterns(value)
            pending.extend(value.values())
        elif isinstance(value, list):
            if len(value) > LIST_MAX and not _can_be_sorted(value):
                raise InvalidSchemaError(f"a list of more than {LIST_MAX} values of many types")
            pending.extend(value)


def _can_be_sorted(values: list[Any]) -> bool:
    return all(isinstance(item, str) for item in values) or all(
        isinstance(item, int | float) for item in values
    )


def _check_patterns(value: dict[str, Any]) -> None:
    patterns = [value["pattern"]] if isinstance(value.get("pattern"), str) else []
    if isinstance(value.get("patternProperties"), dict):
        patterns.extend(value["patternProperties"])
    for pattern in patterns:
        if len(pattern) > PATTERN_MAX:
            raise InvalidSchemaError(f"a pattern of more than {PATTERN_MAX} characters")
        # ECMAScript's names of groups and classes are unknown to Python.
        python = _UNICODE_CLASS.sub(".", _NAME_OF_A_GROUP.sub("(?P<", pattern))
        try:
            re.compile(python)
        except (re.error, OverflowError) as error:
            raise InvalidSchemaError(f"{pattern:.100} is no pattern ({error})") from None


def _check_references(root: JsonContent) -> None:
    """Check that each reference has a target, and that it is a schema. Raises
    InvalidSchemaError.
    """
    budget = WorkBudget()
    visited: set[int] = set()
    targets: list[JsonContent] = []
    pending = [root]
    while pending or targets:
        if not pending:
            # A target at a place that the draft does not know: nothing has judged it.
            target = targets.pop()
            if id(target.schema) in visited:
                continue
            _check_schema(target.schema, target.draft)
            pending.append(target)
        node = pending.pop()
        visited.add(id(node.schema))
        if not isinstance(node.schema, dict):
            continue
        for key in REFERENCES:
            if isinstance(node.schema.get(key), str):
                budget.step()
                targets.append(node.target(node.schema[key]))
        for part in node.draft.subresources_of(node.schema):
            budget.step()
            if isinstance(part, dict):
                pending.append(node.part(part))


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value
