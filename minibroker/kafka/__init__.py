"""Kafka's bytes and names: messages, record batches, error codes, Java's strings. No I/O.

Everything else in the house stands on this room. It imports nothing of minibroker.
"""
