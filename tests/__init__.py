"""Tests mirror the tree of the product; ``tests.fakes`` holds the small real classes that they share."""
