"""Compare memories on held-out items and write a table, JSON and a plot into the run's directory.

python eval.py                                    # the latest quickstart run, every memory
python eval.py --run runs/quickstart/003 --memories none,latentmem --limit 50
python eval.py --config configs/eval/heldout_bigcodebench.yaml --run runs/latentmem/000
"""

from __future__ import annotations

import sys

from eval.cli import main

if __name__ == "__main__":
    main(sys.argv[1:])
