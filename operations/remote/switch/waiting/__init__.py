"""Watch a start until the first verdict: unit, journal and endpoint together."""
