"""Tables, winners and texts of an experiment, its HTML page, and views of machine code.

`tables` has a module for each table that aggregate writes; `page` renders the report from them;
`machine_code` shows, compares and reports binaries.

Doors: machine_code.code_views, page, summary, tables, winner_selection
"""
