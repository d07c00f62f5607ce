"""Rules about objects and properties: names, types, options, examples."""
