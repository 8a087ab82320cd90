"""The broker: from the socket (`server/`) through `handlers/` to the log and the metadata tree.

`app.py` builds all parts, starts and stops them.
"""
