"""Ready-made schedulers, numpy only: one file per family."""
