"""Brokers to experiment on: nodes with faults, a clock, a request log and an inspector.

`testing/` and `control/` stand on it. A broker that only serves never imports it.
"""
