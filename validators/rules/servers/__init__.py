"""Rules about servers, and the tables and folders that they name."""
