"""The command line of ``train.py``: Lightning's own CLI, plus run directories and what a plain start means."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import lightning as L
import yaml
from jsonargparse import ActionConfigFile
from lightning.pytorch.cli import LightningArgumentParser, LightningCLI, SaveConfigCallback
from lightning.pytorch.loggers import TensorBoardLogger

from data.datamodule import TaskDataModule
from lightning_modules.callbacks.phase_progress import PhaseProgress
from lightning_modules.callbacks.rng_state import RNGState
from lightning_modules.callbacks.stage_checkpoint import StageCheckpoint
from lightning_modules.callbacks.trajectory_text import TrajectoryText
from lightning_modules.latentmem import LatentMem
from lightning_modules.lts import LTS
from lightning_modules.nearest_key import with_nearest_class, with_nearest_key
from lightning_modules.task_stream import TaskStream
from rollout.mas.autogen import AutoGen
from rollout.mas.camel import CAMEL
from rollout.mas.dylan import DyLAN
from rollout.mas.macnet import MacNet
from rollout.openai_engine import OpenAIEngine
from rollout.transformers_engine import TransformersEngine
from rollout.vllm_engine import VLLMEngine
from rollout.vllm_server_engine import VLLMServerEngine

QUICKSTART = "configs/quickstart.yaml"

EXPECTED = (
    "LightningCLI's args parameter",
    r"Found \d+ module\(s\) in eval mode",  # the frozen backbone
    "You have overridden `transfer_batch_to_device`",
    "Detected call of `lr_scheduler.step",  # an iteration without variance takes no optimiser step
    r".*isinstance\(treespec, LeafSpec\)",
    "`LightningModule.configure_optimizers` returned `None`",  # a stream learns without gradients
)
"""Warnings about what is meant to be so."""


ENGINES = (VLLMEngine, VLLMServerEngine, TransformersEngine, OpenAIEngine)
"""Whose names and keys a wrong one may have meant."""

SYSTEMS = (AutoGen, MacNet, CAMEL, DyLAN)
"""Subclasses of the MAS protocol that are imported here go by their short name: ``--model.init_args.mas DyLAN``."""


class Parser(LightningArgumentParser):
    """Lightning's parser; its complaint about an unknown key, MAS or engine ends with the nearest known one."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print the message and exit."""
        message = with_nearest_key(message, (L.Trainer, LatentMem, LTS, TaskStream, TaskDataModule, *SYSTEMS, *ENGINES))
        super().error(with_nearest_class(message, (*SYSTEMS, *ENGINES)), ex)


class ConfigInTensorBoard(SaveConfigCallback):
    """Lightning's ``config.yaml`` in the run directory, and the same as hyper-parameters and text in TensorBoard."""

    def save_config(self, trainer: L.Trainer, pl_module: L.LightningModule, stage: str) -> None:
        """Called once, before the run directory gets its file."""
        if not isinstance(trainer.logger, TensorBoardLogger):
            return
        text = self.parser.dump(self.config)
        trainer.logger.log_hyperparams(yaml.safe_load(text))
        trainer.logger.experiment.add_text("config", "\n".join(f"    {line}" for line in text.splitlines()))


class MemoryCLI(LightningCLI):
    """``LightningCLI`` in subclass mode for the model, with a run directory a start: ``<runs>/<config name>/<n>``."""

    def init_parser(self, **kwargs: Any) -> LightningArgumentParser:
        """Ours in place of Lightning's."""
        parser = Parser(**kwargs)
        parser.add_argument("-c", "--config", action=ActionConfigFile, help="a YAML file with any of the flags below")
        return parser

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Flags beside trainer, model and data."""
        parser.add_argument(
            "--ckpt_path", type=str | None, default=None, help="checkpoint file, or `last`: go on there"
        )
        parser.add_argument("--runs", type=str, default="runs", help="where run directories go")
        parser.add_argument("--name", type=str | None, default=None, help="of the run; the config's name by default")

    def before_instantiate_classes(self) -> None:
        """Choose the run directory, before anything is built that writes into it."""
        name = self.config.name or _config_name(self.config.config)
        folder = Path(self.config.runs) / name
        self.run_directory = folder / _next(folder)
        if self.config.ckpt_path == "last":
            latest = latest_run(folder)
            if latest is None:
                raise SystemExit(f"--ckpt_path last: there is no checkpoint below {folder}; start without it first")
            self.run_directory = latest
            self.config.ckpt_path = str(latest / "checkpoints" / "last.ckpt")
        _check_file(self.config.ckpt_path)

    def instantiate_classes(self) -> None:
        """A class that refuses its settings ends the start like an unknown key does, without a traceback."""
        try:
            super().instantiate_classes()
        except ValueError as error:
            self.parser.error(f"{_own_words(error)}\n(JSONARGPARSE_DEBUG=1 shows where this was raised)", error)

    def instantiate_trainer(self, **kwargs: Any) -> L.Trainer:
        """TensorBoard into the run directory unless the config has a logger of its own."""
        if self.config_init["trainer"].get("logger") in (None, True):
            folder = self.run_directory
            kwargs["logger"] = TensorBoardLogger(folder.parent.parent, folder.parent.name, folder.name)
        return super().instantiate_trainer(**kwargs)


def build(args: Sequence[str]) -> MemoryCLI:
    """Parse ``args`` and build trainer, model and data; the quickstart where no config is named."""
    for message in EXPECTED:
        warnings.filterwarnings("ignore", message=message)
    args = list(args)
    if not any(arg == "--config" or arg.startswith(("--config=", "-c")) for arg in args):
        args = ["--config", QUICKSTART, *args]
    return MemoryCLI(
        model_class=L.LightningModule,
        datamodule_class=TaskDataModule,
        subclass_mode_model=True,
        auto_configure_optimizers=False,
        save_config_callback=ConfigInTensorBoard,
        save_config_kwargs={"overwrite": True},
        seed_everything_default=0,
        trainer_defaults={
            "callbacks": [RNGState(), StageCheckpoint(), PhaseProgress(), TrajectoryText()],
            "enable_checkpointing": False,
        },
        parser_kwargs={"parser_mode": "yaml"},
        run=False,
        args=args,
    )


def train(args: Sequence[str]) -> MemoryCLI:
    """Train, from the start or from a checkpoint, and say where to look."""
    cli = build(args)
    cli.trainer.fit(cli.model, datamodule=cli.datamodule, ckpt_path=cli.config.ckpt_path, weights_only=True)
    print(f"\nrun directory      {cli.run_directory}")
    print(f"watch              tensorboard --logdir {cli.config.runs}")
    print(f"evaluate           python eval.py --run {cli.run_directory}")
    return cli


def _own_words(error: BaseException) -> str:
    """What the class said: jsonargparse appends all values of the section, a key pasted among them too."""
    while error.__cause__ is not None and str(error.__cause__).partition("\n")[0] in str(error):
        error = error.__cause__
    return str(error)


def _config_name(configs: Any) -> str:
    """The last config file's stem."""
    return Path(str(configs[-1])).stem if configs else "run"


def _versions(folder: Path) -> list[tuple[int, str]]:
    found = [(re.fullmatch(r"(\d+)", path.name), path) for path in folder.glob("*") if path.is_dir()]
    return sorted((int(match[1]), path.name) for match, path in found if match)


def latest_run(folder: Path) -> Path | None:
    """The newest run directory below ``folder`` that has a checkpoint."""
    runs = [folder / name for _, name in _versions(folder)]
    done = [run for run in runs if (run / "checkpoints" / "last.ckpt").exists()]
    return done[-1] if done else None


def _next(folder: Path) -> str:
    versions = _versions(folder)
    return f"{versions[-1][0] + 1 if versions else 0:03d}"


def _check_file(path: str | None) -> None:
    if path is not None and not Path(path).is_file():
        raise SystemExit(f"--ckpt_path: {path} does not exist")
