"""Tables, winners and texts of an experiment, its HTML page, the leaderboard, views of machine code.

`tables` has a module for each table that aggregate writes; `page` renders the report from them;
`machine_code` shows, compares and reports binaries; `leaderboard` ranks submissions of candidates.

Doors: leaderboard, machine_code.code_views, page, summary, tables, winner_selection
"""
