"""The samples of a run: collected, reduced to one value each, written as JSON."""

import json
import statistics
from pathlib import Path


class Results:
    """Samples by broker and metric, and a sentence for what could not be measured.

    A value is the median of its samples: of repeats in a row and of passes over all brokers, so a
    busy moment of the machine neither makes nor breaks a broker.
    """

    def __init__(self, brokers: list[str]) -> None:
        self.brokers = brokers
        self.missing: dict[str, str] = {}
        self.notes: dict[str, dict[str, str]] = {broker: {} for broker in brokers}
        self._samples: dict[str, dict[str, list[float]]] = {broker: {} for broker in brokers}

    def add(self, broker: str, metric: str, sample: float) -> None:
        """Add one more sample."""
        self._samples[broker].setdefault(metric, []).append(sample)

    def note(self, broker: str, subject: str, text: str) -> None:
        """Note why `subject`, a row or a metric, has no value; the first reason stays."""
        self.notes[broker].setdefault(subject, text)

    def miss(self, broker: str, reason: str) -> None:
        """Note that the broker cannot run here."""
        self.missing[broker] = reason

    def values(self, metric: str) -> dict[str, float]:
        """Return the value of each broker that has one."""
        return {
            broker: statistics.median(self._samples[broker][metric])
            for broker in self.brokers
            if metric in self._samples[broker]
        }

    def has_failures(self) -> bool:
        """Return whether a row broke down.

        A row that is not served yet, not available or out of time did not.
        """
        texts = [text for notes in self.notes.values() for text in notes.values()]
        return any(not text.startswith("not ") for text in texts)

    def write(self, path: Path, machine: dict[str, object], plan: dict[str, object]) -> None:
        """Write everything, samples included, as JSON."""
        path.parent.mkdir(parents=True, exist_ok=True)
        document = {
            "machine": machine,
            "plan": plan,
            "missing": self.missing,
            "notes": {broker: notes for broker, notes in self.notes.items() if notes},
            "samples": self._samples,
        }
        path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
