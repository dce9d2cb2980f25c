"""Measurements, run by hand: each prints its own command and figures."""
