"""Reports on models and runs: tables and drawings."""
