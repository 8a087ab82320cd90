"""The one client of Kafka: for brokers among each other, the pipeline, tools and tests.

    groups, transactions, produce, fetch ─► coordinators ─► client ─► connection ─► dialogue
                                                               sasl, oauth, kerberos, tls ┘

`dialogue` has no I/O: a driver brings its bytes to a socket and back. It imports `kafka` alone.
"""
