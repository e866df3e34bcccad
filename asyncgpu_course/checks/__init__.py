"""Tools for the checks of the chapters."""
