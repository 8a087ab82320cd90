"""Identities of clients: how they are proved, and who they are; TLS of listeners."""
