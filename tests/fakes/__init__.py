"""Small real stand-ins for what a training job leaves behind."""
