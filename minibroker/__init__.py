"""minibroker: a Kafka-compatible broker in asyncio Python.

The way of a request, and of the imports (left to right, top to bottom, never back):

    socket ─► server/listener ─► server/connection ─► server/dispatch ─► handlers/<api>
                                        ▲                   │                 │
                                        │      protocol/ (bytes ↔ messages)   │
                                        │                                     ▼
                                        └── response bytes ◄── partitions/ (leaders, watermarks)
                                                                  │                    │
                                                     storage/ (log on disk)   cluster/ (znode tree)

`ARCHITECTURE.md` beside this file tells in which order to read the code.
"""

__version__ = "0.1.0"
