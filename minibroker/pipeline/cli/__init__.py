"""The command line of the pipeline: words in, progress and answers out, exit codes."""
