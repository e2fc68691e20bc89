"""What runs inside a training job: in, an order from outside; out, traces. It imports the standard library and torch only.

A job's own Python may have no tracereplay: ``collectors/site/sitecustomize.py`` then finds these modules by their folder.
"""
