"""The call path: from a declared tool to one flat handler, and the toolset that a run holds."""
