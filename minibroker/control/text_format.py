"""Prometheus' text format: families and samples as text, under Kafka's names.

The rule from Kafka's names to Prometheus': domain, type and name of the MBean and the attribute, if
it is not `Value` or `Count`, joined with `_`, in lower case; any other character than a letter or
digit is `_`; further key properties are labels. So

    kafka.network:type=RequestMetrics,name=TotalTimeMs,request=Produce
    kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"}

A counter ends in `_total`, as Prometheus requires. A histogram is a summary: quantiles since the
start, `_count`, and `_sum` (in ms if Kafka's name says so).
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from minibroker.broker.metrics import TimeSum

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)
_summaries: WeakKeyDictionary[TimeSum, tuple[int, str]] = WeakKeyDictionary()
"""Count and text of the last scrape; most APIs are idle between two scrapes."""
_ESCAPED: Final = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})


@cache
def metric_name(domain: str, type_name: str, name: str = "") -> str:
    """Return the name by the rule above."""
    parts = [domain, type_name, *([name] if name else [])]
    return re.sub(r"[^a-z0-9]", "_", "_".join(parts).lower())


def head(name: str, kind: str, text: str) -> str:
    """Return the lines before the samples of a family; `kind`: `gauge`, `counter` or `summary`."""
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def labels(**named: str) -> str:
    """Return the labels of one sample as text."""
    pairs = [f'{name}="{value.translate(_ESCAPED)}"' for name, value in named.items()]
    return f"{{{','.join(pairs)}}}"


def sample(name: str, value: float, labelled: str = "") -> str:
    """Return the line of a sample; `labelled` is a result of `labels`."""
    return f"{name}{labelled} {float(value)!r}\n"


def gauge(name: str, text: str, value: float) -> str:
    """Return a family with one sample."""
    return head(name, "gauge", text) + sample(name, value)


def counter(name: str, text: str, value: float) -> str:
    """Return a family with one sample; `_total` is added to its name."""
    return head(f"{name}_total", "counter", text) + sample(f"{name}_total", value)


def summary(name: str, api_name: str, times: TimeSum) -> str:
    """Return all samples of the times of an API; the last text again if nothing was added."""
    count, text = _summaries.get(times, (-1, ""))
    if count != times.count:
        values = (*times.quantiles_ms(QUANTILES), times.count, times.total_us / 1000)
        text = _summary_lines(name, api_name) % values
        _summaries[times] = times.count, text
    return text


@cache
def _summary_lines(name: str, api_name: str) -> str:
    of_api = f'request="{api_name}"'
    lines = [f'{name}{{{of_api},quantile="{fraction}"}} %r\n' for fraction in QUANTILES]
    return "".join([*lines, f"{name}_count{{{of_api}}} %d.0\n", f"{name}_sum{{{of_api}}} %r\n"])
