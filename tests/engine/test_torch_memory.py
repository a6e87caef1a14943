"""What a model takes in torch is what was planned for it, so that "it fits" can be believed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import tiny_folder
from specengine.backends.torch_nf4.plan import plan
from specengine.model_folder import read_folder
from specengine.torch_models import WORKSPACE
from tiny_tokenizer import byte_level

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(600),
    pytest.mark.skipif(sys.platform != "linux", reason="reads the process's memory from /proc"),
]

WIDTH, FEED, LAYERS, HEADS, KV_HEADS, DIM, WORDS, CONTEXT = 1024, 4096, 6, 16, 8, 64, 40_000, 1024

MEASURE = """
import json, re, sys
from pathlib import Path
from specengine.backends.torch_nf4.model import TorchModel
from specengine.backends.torch_nf4.options import TorchOptions
from specengine.model_folder import read_folder

def memory(name):
    return int(re.search(name + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) * 1024

def opened(folder):
    return TorchModel(read_folder(Path(folder)), TorchOptions(int(sys.argv[3]), quantised_head=sys.argv[4] == "draft"))

small = opened(sys.argv[1])
small.forward([65] * 64, 64)
small.close()  # whatever the libraries make at their first use is there now
before = memory("RssAnon")
Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
start = memory("VmHWM")
model = opened(sys.argv[2])
held = memory("RssAnon") - before
model.forward([65] * 128, 128)
print(json.dumps({"held": held, "peak": memory("VmHWM") - start}))
"""


def large_folder(folder: Path) -> Path:
    """A Llama of 94 million weights and a vocabulary that is mostly padding."""
    tiny_folder.make(folder)
    shapes = {"model.embed_tokens": (WORDS, WIDTH), "model.norm": (WIDTH,)}
    for layer in range(LAYERS):
        block = f"model.layers.{layer}."
        shapes |= {
            block + "self_attn.q_proj": (HEADS * DIM, WIDTH),
            block + "self_attn.k_proj": (KV_HEADS * DIM, WIDTH),
            block + "self_attn.v_proj": (KV_HEADS * DIM, WIDTH),
            block + "self_attn.o_proj": (WIDTH, HEADS * DIM),
            block + "mlp.gate_proj": (FEED, WIDTH),
            block + "mlp.up_proj": (FEED, WIDTH),
            block + "mlp.down_proj": (WIDTH, FEED),
            block + "input_layernorm": (WIDTH,),
            block + "post_attention_layernorm": (WIDTH,),
        }
    draw = torch.Generator().manual_seed(0)
    weights = {
        f"{name}.weight": (torch.randn(shape, generator=draw) * WIDTH**-0.5).to(torch.bfloat16)
        for name, shape in shapes.items()
    }
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    settings = tiny_folder.config("llama", len(byte_level().tokens)) | {
        "hidden_size": WIDTH,
        "intermediate_size": FEED,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": KV_HEADS,
        "head_dim": DIM,
        "tie_word_embeddings": True,
        "vocab_size": WORDS,
        "dtype": "bfloat16",
    }
    tiny_folder.write_json(folder / "config.json", settings)
    return folder


@pytest.mark.parametrize("role", ["target", "draft"])
def test_a_loaded_model_takes_what_was_planned(tmp_path: Path, role: str) -> None:
    """A draft's head is there twice: as the embedding, and in four bits."""
    large = large_folder(tmp_path / "large")
    planned = plan(read_folder(large), "bf16", "cpu", quantised_head=role == "draft")
    small = tiny_folder.make(tmp_path / "small")
    asked = [sys.executable, "-c", MEASURE, str(small), str(large), str(CONTEXT), role]
    ended = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    taken = json.loads(ended.stdout)
    assert taken["held"] == pytest.approx(planned.weights, rel=0.1)
    assert planned.weights < taken["peak"] < planned.needed(CONTEXT) + WORKSPACE
