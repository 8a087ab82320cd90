"""One module per row of the table: each measures a running broker and adds samples."""
