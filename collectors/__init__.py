"""Record real training runs: in, a training job; out, trace files and manifest.json."""
