"""A Data Contract Specification (datacontract.com), the format before ODCS, in the words of ODCS."""
