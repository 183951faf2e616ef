"""Tools that agents call: search, pages, files and Python, for GAIA and AssistantBench."""
