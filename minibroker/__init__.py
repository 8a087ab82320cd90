"""minibroker: a Kafka-compatible broker in asyncio Python.

A request takes this way, and imports point the same way, never back:

    socket ─► server/transport ─► server/connection ─► server/dispatch ─► handlers/<api>
                                        ▲                   │                 │
                                        │      protocol/ (bytes ↔ messages)   │
                                        │                                     ▼
                                        └── response bytes ◄── partitions/ (leaders, watermarks)
                                                                  │                    │
                                                     storage/ (log on disk)   cluster/ (znode tree)

`ARCHITECTURE.md` beside this file says in which order to read the code.
"""

__version__ = "0.1.0"
