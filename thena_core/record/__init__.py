"""What happened in a run: its tree and events, the console's lines, the report's files, what is masked in them."""
