"""From the short fragments of case files to whole contracts."""
