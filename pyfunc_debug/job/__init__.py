"""Jobs of many processes: each records into a file of its own in one folder."""
