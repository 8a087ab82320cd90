"""Sampled stacks, as printed."""

from benchmarks.profile_broker import summary


def test_summary_of_stacks() -> None:
    stacks = ["3 a.py:main:1;b.py:work:7", "1 a.py:main:2;b.py:wait:9;b.py:work:8"]
    text = summary(stacks, top=5)
    assert "4 samples" in text
    own, inclusive, lines = text.split("\n\n")[1:]
    assert "100.0%  b.py:work" in own
    assert "25.0%  b.py:wait" in inclusive
    assert "main" not in inclusive
    assert "75.0%  b.py:work:7" in lines
