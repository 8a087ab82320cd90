"""Bytes to messages and back, without I/O; the generated part comes from `protocol_specs/`."""
