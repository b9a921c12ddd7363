"""Models from elsewhere: their problems, their import and their weights."""
