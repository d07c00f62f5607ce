"""Write, audit, publish: what is staged and checked becomes what readers see, in one step or not at all.

One file for each way to stage: a branch of an Iceberg table, a folder beside the partition. Delta has none.
"""
