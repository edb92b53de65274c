"""Services: what the app's container provides, and how constructors and `execute` get it."""
