"""Schedules become findings: plain functions, one file a question."""
