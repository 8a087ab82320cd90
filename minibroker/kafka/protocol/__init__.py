"""Turns bytes into messages and back, without I/O; generated from `protocol_specs/` for the most
part.
"""
