"""Rows of a frame into topics, each micro-batch exactly once.

Spark calls `writers`, the jobs call `frames`.
"""
