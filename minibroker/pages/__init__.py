"""The parts that every HTML page of minibroker is made of: frame, style, tables and plots.

    values ─► a template of their room ─► page.render ─► one file that loads nothing
                 │ extends pages/base.html, uses pages/parts.html
    numbers ─► plot.columns, plot.bars, plot.lines ─► SVG inside of it

The pipeline's reports, a trace and the report of a failed test are such pages. This room knows
none of them: it gets texts and numbers. Jinja2 escapes every value. Only the extras that write
pages have it, so a caller imports this room late.
"""
