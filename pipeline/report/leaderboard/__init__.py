"""The leaderboard: submissions ranked by their scores, as a page, a CSV file and a table for a terminal."""
