"""CoMem: private stores, a collective pool, and the rules by which an entry lives (paper, section 3)."""
