"""Pages of MLflow's UI: what they show, in which layout, under which address."""
