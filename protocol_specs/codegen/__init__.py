"""Makes Python of `protocol_specs/`. The wheel does not have it, and it imports nothing of the
broker.
"""
