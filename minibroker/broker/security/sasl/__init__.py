"""SASL: how a client proves its identity, as pure code.

    frames of a connection ─► authenticator ─► exchange of one mechanism ─► principal
                                                 plain, scram, …

`server/sasl_gate.py` carries the frames. `client` is the other side, for requests to other brokers.
"""
