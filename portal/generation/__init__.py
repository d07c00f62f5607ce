"""The site on disk: pages from templates, written all or nothing, and what was written before."""
