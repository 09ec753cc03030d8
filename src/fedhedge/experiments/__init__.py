"""Experiments: the demonstration, and the papers' tables and figures."""
