"""The demo: an agent that explores a folder, and the model stand-in that lets it run without a key or a network."""
