"""A contract's object as a pandera schema, for the producer's own tests of frames."""

from dq.dataquality.local.pandera.export import BACKENDS, LeftOut, left_out, schema

__all__ = ["BACKENDS", "LeftOut", "left_out", "schema"]
