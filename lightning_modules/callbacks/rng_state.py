"""Random number streams belong to a checkpoint; Lightning leaves them out."""

from __future__ import annotations

import random
from typing import Any

import lightning as L
import numpy as np
import torch


class RNGState(L.Callback):
    """Saves Python's, numpy's and torch's generators; restores them at the first training batch after a resume.

    Not earlier: the hooks before it use random numbers themselves.
    """

    def __init__(self) -> None:
        self._restored: dict[str, Any] | None = None

    def state_dict(self) -> dict[str, Any]:
        """Tensors, numbers and lists only, for ``weights_only=True``."""
        version, internal, gauss = random.getstate()
        kind, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002
        return {
            "python": [version, list(internal), gauss],
            "numpy": [str(kind), torch.from_numpy(np.asarray(keys).astype(np.int64)), position, has_gauss, cached],
            "torch": torch.get_rng_state(),
            "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Keep the state until training goes on."""
        self._restored = state_dict

    def on_train_batch_start(
        self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        """Put the streams back, once."""
        if self._restored is None:
            return
        state, self._restored = self._restored, None
        version, internal, gauss = state["python"]
        random.setstate((version, tuple(internal), gauss))
        kind, keys, position, has_gauss, cached = state["numpy"]
        np.random.set_state((kind, keys.numpy().astype(np.uint32), position, has_gauss, cached))  # noqa: NPY002
        torch.set_rng_state(state["torch"].cpu())
        if state["cuda"]:
            torch.cuda.set_rng_state_all(state["cuda"])
