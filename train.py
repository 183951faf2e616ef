"""Train a memory.

python train.py                                                   # configs/quickstart.yaml
python train.py --config configs/train/latentmem.yaml             # another experiment
python train.py --model.init_args.lmpo.group_size 4 --data.lmpo.steps 20
python train.py --ckpt_path last                                  # continue the latest run of this config
python train.py --print_config                                    # everything that can be set
"""

from __future__ import annotations

import sys

from lightning_modules.cli import train

if __name__ == "__main__":
    train(sys.argv[1:])
