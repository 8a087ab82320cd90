"""Generated: one module per API, request and response in every version; loaded at first use."""
