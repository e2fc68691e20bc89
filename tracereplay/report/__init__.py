"""Findings become text or JSON: in, frozen rows; out, strings. Computes no number."""
