"""The terminal: paths it is given, tables and messages it shows."""
