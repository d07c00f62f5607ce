"""What is added to a document's text, everything else of which stays as it is."""
