"""From a contract to the same schema in the words of others."""
