"""Compatibility of two schemas: two ParsedSchema ─► reasons why data cannot be read.

Pure functions. The store says which pairs a compatibility level asks for: BACKWARD has the new
schema as the reader, FORWARD as the writer, FULL both.

The caller's duty: a comparison is bounded and not short; the worst pair of schemas takes some
seconds. Call it on a worker, never on the loop.
"""

from minibroker.registry.compatibility.checks import incompatibilities

__all__ = ["incompatibilities"]
