"""One small function for each screen: facts in, the plain values of its template out."""
