"""Multi-agent systems: who speaks when, and what each of them reads."""
