"""From a callable to its parameters, from parameters to a validator and a JSON schema, from model text to arguments."""
