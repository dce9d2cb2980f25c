"""What a box serves before boxwright comes: Kimi, set up by hand, as people do."""

from __future__ import annotations

from inventory.catalogue import KIMI_K25
from tests.lab.box import Box
from tests.lab.desired import STUB_WHEEL, WHEELHOUSE

UNIT = KIMI_K25.unit
WHEEL = f"{WHEELHOUSE}/{STUB_WHEEL}"

SETUP = """
set -e
mkdir -p /opt/kimi /shared/models/kimi
python3 -m zipfile -e {wheel} /opt/kimi
echo '{{"architectures": ["KimiK25ForConditionalGeneration"]}}' >/shared/models/kimi/config.json
printf '\\002\\0\\0\\0\\0\\0\\0\\0{{}}' >/shared/models/kimi/model.safetensors
cat >/etc/systemd/system/{unit} <<'END'
[Unit]
Description=Kimi, set up by hand
[Service]
Environment=PYTHONPATH=/opt/kimi CUDA_VISIBLE_DEVICES={gpus} 'STUB_PLAN={plan}'
ExecStart=/usr/bin/python3 -m boxwright_stub_engine --model /shared/models/kimi \
  --served-model-name {model} --host {host} --port 8000 {parallel}
Restart=on-failure
[Install]
WantedBy=multi-user.target
END
systemctl daemon-reload
systemctl enable --quiet --now {unit}
"""


def install(box: Box) -> None:
    """Have the box serve Kimi by the stub engine, and wait until it answers.

    On a box with simulated GPUs it holds all eight, with the weights of the real model.
    """
    simulated = box.connection.simulated
    plan = '{"load_seconds": 0.2, "weights_gib": 503, "overhead_gib": 2}' if simulated else "{}"
    script = SETUP.format(
        wheel=WHEEL,
        unit=UNIT,
        gpus="0,1,2,3,4,5,6,7" if simulated else "",
        plan=plan,
        parallel="--tensor-parallel-size 8 --max-num-seqs 64" if simulated else "",
        model=KIMI_K25.served_model_name,
        host=box.address,
    )
    box.run(script, user="root")
    box.run(
        f"i=0; until timeout 2 bash -c ': </dev/tcp/{box.address}/8000' 2>/dev/null; do "
        f"i=$((i+1)); [ $i -lt 100 ] || {{ journalctl -u {UNIT} | tail -n 30; exit 1; }}; "
        "sleep 0.2; done",
        user="root",
    )
