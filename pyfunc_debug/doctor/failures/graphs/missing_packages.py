"""A package that is not installed: what pip calls it, which often is not the name that is imported."""

from __future__ import annotations

import importlib.util
import os
import re
import sys

from pyfunc_debug.doctor.failures.pastes.explanation import Explanation
from pyfunc_debug.doctor.failures.reading.situation import Situation

RULE = "missing-package"
_MODULE = re.compile(r"^No module named '([\w.]+)'")
_SAID = (
    (re.compile(r"TensorBoard is not installed"), "tensorboard"),
    (re.compile(r"Could not import PIL\.Image"), "pillow"),
    (re.compile(r"must install pydot|pydot.* for `?(?:plot_model|model_to_dot)"), "pydot"),
    (re.compile(r"`?load_img`? requires PIL|requires `?Pillow"), "pillow"),
    (re.compile(r"requires the SciPy module|requires `?scipy`?|Image transformations require SciPy"), "scipy"),
    (re.compile(r"requires `?h5py`?|h5py.* not available"), "h5py"),
)
_CALLED = {
    "PIL": "pillow", "cv2": "opencv-python", "skimage": "scikit-image", "sklearn": "scikit-learn", "yaml": "pyyaml",
    "bs4": "beautifulsoup4", "tensorflow_datasets": "tensorflow-datasets",
    "tensorflow_hub": "tensorflow-hub", "tensorflow_probability": "tensorflow-probability[tf]", "keras_cv": "keras-cv",
    "keras_nlp": "keras-nlp", "keras_hub": "keras-hub", "librosa": "librosa", "pandas": "pandas", "scipy": "scipy",
    "matplotlib": "matplotlib", "seaborn": "seaborn", "tqdm": "tqdm", "imageio": "imageio",
    "pydot": "pydot", "tensorboard": "tensorboard", "albumentations": "albumentations", "nltk": "nltk",
    "soundfile": "soundfile", "pydicom": "pydicom", "nibabel": "nibabel", "h5py": "h5py", "tf_keras": "tf-keras",
}  # fmt: skip
"""What is imported, and what pip installs for it."""


def _is_there(package: str) -> bool:
    """Whether what a package brings can be imported."""
    name = next((one for one, own in _CALLED.items() if own == package), package)
    return importlib.util.find_spec(name) is not None


def explain(situation: Situation) -> Explanation | None:
    """The explanation, if an import failed, or something of TensorFlow's or Keras' that wants another package."""
    spot, said = situation.last, situation.message
    if spot is None:
        return None
    package = next((name for pattern, name in _SAID if pattern.search(said)), "")
    module = _MODULE.search(said) if situation.kind == "ModuleNotFoundError" else None
    if module is not None:
        package = _CALLED.get(module[1], "")
    if not package or (module is None and _is_there(package)):
        return None  # another version is wanted
    python = os.path.basename(sys.executable) or "python"
    what = f"{module[1]} comes with the package {package}" if module is not None else (
        f"this needs the package {package}"
    )  # fmt: skip
    cause = f"{what}, which this Python does not have."
    advice = f"In a shell: {python} -m pip install {package} (in a notebook: %pip install {package})"
    return Explanation(RULE, spot.file, spot.line, cause, None, advice)
