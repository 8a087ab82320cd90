"""The frame of a page: its policy allows what the page has, and nothing else."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from hashlib import sha256
from html import unescape

import pytest
from jinja2 import UndefinedError

from minibroker.pages import page

CHILD = """{% extends "pages/base.html" %}
{% from "pages/parts.html" import facts, sentences, figure, table %}
{% block title %}{{ name }}{% endblock %}
{% block style %}.own { color: red }{% endblock %}
{% block script %}document.title = "ran";{% endblock %}
{% block main %}
{{ facts([(name, name)]) }}{{ sentences([(name, True)]) }}{{ figure(name, name) }}
{{ table(name, [name], [[name]], [name]) }}
<script type="application/json" id="data">{{ data|tojson }}</script>
{% endblock %}
"""
HOSTILE = """</title></script><script>'"&"""


def rendered(template: str = CHILD, **values: object) -> str:
    return page._environment().from_string(template).render(**values)


def directives(text: str) -> dict[str, str]:
    """Return the policy of a page: directive → sources."""
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    return dict(part.strip().split(" ", 1) for part in unescape(policy).split(";"))


def digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_the_policy_allows_the_style_and_the_script_of_the_page_alone() -> None:
    text = rendered(name="n", data=1)
    policy = directives(text)
    (style,) = re.findall(r"<style>(.*?)</style>", text, re.DOTALL)
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert style.endswith(".own { color: red }")
    assert policy == {
        "default-src": "'none'",
        "style-src": digest(style),
        "script-src": digest(script),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_a_page_without_a_script_allows_none() -> None:
    text = rendered('{% extends "pages/base.html" %}{% block title %}t{% endblock %}')
    assert directives(text)["script-src"] == "'none'"
    assert "<script" not in text


def test_the_title_stands_in_the_head_and_above_the_page() -> None:
    text = rendered(name="a title", data=1)
    assert "<title>a title</title>" in text
    assert "<h1>a title</h1>" in text
    assert text.startswith("<!DOCTYPE html>")


def test_every_value_is_escaped_wherever_it_stands() -> None:
    text = rendered(name=HOSTILE, data=[HOSTILE, {HOSTILE: "<!--"}])
    assert text.count("<script") == text.count("</script>") == 2
    assert text.count("</title>") == 1
    assert "<!--" not in text
    (data,) = re.findall(r'id="data">(.*?)</script>', text)
    assert json.loads(data) == [HOSTILE, {HOSTILE: "<!--"}], "a script reads it back"


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError, match="'name' is undefined"):
        rendered(data=1)


def test_a_table_without_rows_is_nothing() -> None:
    template = '{% from "pages/parts.html" import table %}{{ table("c", ["a"], []) }}'
    assert rendered(template).strip() == ""
