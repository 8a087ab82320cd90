"""Options: how a verb declares them, how their values are read, and those that verbs share."""
