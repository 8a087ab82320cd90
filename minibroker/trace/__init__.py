"""The conversation of clients and brokers, for people: each request and its answer, as a line, in
full, as JSON and as a page.

Bytes come from the proxy, from a capture of the network or from a recorded dialogue; `trace.decode`
makes an `Exchange` of a request and its answer. Everything here imports `kafka/`, and `pages/` for
the page.
"""
