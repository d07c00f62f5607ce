"""Rules about the support channels that alerts go to."""
