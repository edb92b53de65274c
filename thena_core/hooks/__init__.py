"""Hooks: what they are, which plugins bring them, and one chain for each."""
