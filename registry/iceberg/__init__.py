"""Catalogs that speak Iceberg's REST protocol, by pyiceberg: types, client, tables and how they change."""
