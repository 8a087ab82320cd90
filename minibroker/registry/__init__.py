"""A schema registry beside the broker; loaded only when `serve --registry` asks for it."""
