"""Functions of OpenCV, Pillow and skimage on one image, as TensorFlow's ops: with a gradient, and in a graph."""

from __future__ import annotations

import ast

from pyfunc_debug.doctor.failures.reading.situation import Spot
from pyfunc_debug.doctor.failures.reading.source import dotted
from pyfunc_debug.doctor.failures.reading.symbols import lookup, root_is, shape_of

_METHODS = {
    "NEAREST": "nearest", "CUBIC": "bicubic", "BICUBIC": "bicubic", "AREA": "antialias", "LANCZOS4": "lanczos3",
    "LANCZOS": "lanczos3", "LINEAR": "bilinear", "BILINEAR": "bilinear",
}  # fmt: skip
"""Names of ways to resize, of OpenCV's (INTER_AREA) and of Pillow's (Image.BOX), as TensorFlow calls them."""
_KERNELS = {
    "Laplacian": "[[0.0, 1.0, 0.0], [1.0, -4.0, 1.0], [0.0, 1.0, 0.0]]",
    "SobelX": "[[-1.0, 0.0, 1.0], [-2.0, 0.0, 2.0], [-1.0, 0.0, 1.0]]",
    "SobelY": "[[-1.0, -2.0, -1.0], [0.0, 0.0, 0.0], [1.0, 2.0, 1.0]]",
}
_ONLY_DTYPE = ("cast", "array", "asarray", "float64", "float32", "uint8", "convert_to_tensor")


def in_ops(call: ast.Call, spot: Spot, tf: str) -> str | None:
    """A call on an image as ops on it: of height, width, and colours or none; None for a call that is not known.

    Args:
      call: The call, whose arguments are ops already.
      spot: Where it is written.
      tf: TensorFlow's name there.
    """
    func = call.func
    if not isinstance(func, ast.Attribute) and not isinstance(func, ast.Name):
        return None
    name, words = dotted(func).rpartition(".")[2], {one.arg: one.value for one in call.keywords}
    if isinstance(func, ast.Attribute) and func.attr == "resize" and _from_array(func.value) is not None:
        size = call.args[0] if call.args else words.get("size")
        way = call.args[1] if len(call.args) > 1 else words.get("resample")
        return _resized(_from_array(func.value), size, way, "bicubic", spot, tf)
    if root_is(func, spot, "cv2") and isinstance(func, ast.Attribute) and call.args:
        if name == "resize" and not set(words) & {"fx", "fy"}:
            size, way = call.args[1] if len(call.args) > 1 else words.get("dsize"), words.get("interpolation")
            if dotted(way).endswith("INTER_NEAREST"):
                return _to_the_nearest(call.args[0], size, spot, tf)
            return _resized(call.args[0], size, way, "bilinear", spot, tf)
        kernel = _kernel(name, call, words)
        return _filtered(call.args[0], _KERNELS[kernel], spot, tf) if kernel is not None else None
    value = spot.value(func.id) if isinstance(func, ast.Name) else None
    if name == "resize" and str(getattr(value, "__module__", "")).startswith("skimage.") and len(call.args) == 2:
        size = call.args[1]
        if isinstance(size, ast.Tuple) and len(size.elts) >= 2:
            whole = ast.Tuple([size.elts[1], size.elts[0]], ast.Load())
            return _resized(call.args[0], whole, None, "bilinear", spot, tf)
    return None


def _from_array(node: ast.expr) -> ast.expr | None:
    """The array of `Image.fromarray(array)`, also behind `.convert("L")` of grey images."""
    if isinstance(node, ast.Call) and dotted(node.func).endswith("fromarray") and node.args:
        return node.args[0]
    return None


def _resized(
    image: ast.expr | None, size: ast.expr | None, way: ast.expr | None, default: str, spot: Spot, tf: str
) -> str | None:
    """`tf.image.resize`, whose size is height and width, in this order."""
    method = _METHODS.get(dotted(way).rpartition(".")[2].removeprefix("INTER_")) if way is not None else default
    if image is None or size is None or method is None:
        return None
    known = _known(size, spot)
    if known is None:
        return None
    text, grey = _plain(image), _is_grey(image, spot)
    given = "" if method == "bilinear" else f', "{method}"'
    given = ", antialias=True" if method == "antialias" else given  # the method "area" has no gradient
    whole = f"{tf}.image.resize({text}{'[..., None]' * grey}, ({known[1]}, {known[0]}){given})"
    return f"{whole}{'[..., 0]' * grey}"


def _to_the_nearest(image: ast.expr, size: ast.expr | None, spot: Spot, tf: str) -> str | None:
    """OpenCV's nearest neighbour: that of TensorFlow 1, which counts from the corner of a pixel."""
    known = _known(size, spot) if size is not None else None
    if known is None:
        return None
    inside, outside = ("[None, ..., None]", "[0, ..., 0]") if _is_grey(image, spot) else ("[None]", "[0]")
    op = f"{tf}.compat.v1.image.resize_nearest_neighbor"
    return f"{op}({_plain(image)}{inside}, [{known[1]}, {known[0]}]){outside}"


def _known(size: ast.expr, spot: Spot) -> tuple[str, str] | None:
    """Width and height of a size."""
    if isinstance(size, (ast.Tuple, ast.List)) and len(size.elts) == 2:
        return ast.unparse(size.elts[0]), ast.unparse(size.elts[1])
    value = lookup(size, spot)
    if isinstance(value, (tuple, list)) and len(value) == 2 and all(type(one) is int for one in value):
        return str(value[0]), str(value[1])
    return None


def _plain(node: ast.expr) -> str:
    """An image without what only changes its dtype: ops compute with floats."""
    while True:
        name = dotted(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
        method = node.func if isinstance(node, ast.Call) else None
        if isinstance(node, ast.Call) and name in _ONLY_DTYPE and node.args:
            node = node.args[0]
        elif isinstance(method, ast.Attribute) and method.attr in ("astype", "numpy"):
            node = method.value
        else:
            return ast.unparse(node)


def _is_grey(node: ast.expr, spot: Spot) -> bool:
    """Whether an image has no axis of colours: `image[:, :, 0]`, or a tensor of rank 2."""
    text = _plain(node)
    if text.endswith((", 0]", "squeeze()")) or ".squeeze(" in text:
        return True
    shape = shape_of(spot.value(text))
    return shape is not None and len(shape) == 2


def _kernel(name: str, call: ast.Call, words: dict[str | None, ast.expr]) -> str | None:
    """Which 3 x 3 kernel a filter of OpenCV's is."""
    if name == "Laplacian" and len(call.args) == 2 and not words:
        return "Laplacian"
    if name == "Sobel" and len(call.args) >= 4 and set(words) <= {"ksize"} and len(call.args) + len(words) <= 5:
        size = words.get("ksize", call.args[4] if len(call.args) > 4 else ast.Constant(3))
        along = [ast.unparse(one) for one in call.args[2:4]]
        if ast.unparse(size) == "3" and along in (["1", "0"], ["0", "1"]):
            return "SobelX" if along == ["1", "0"] else "SobelY"
    return None


def _filtered(image: ast.expr, kernel: str, spot: Spot, tf: str) -> str | None:
    """A filter of 3 x 3 on every colour, with OpenCV's border: mirrored without the edge itself."""
    text = _plain(image)
    shape = shape_of(spot.value(text))
    if _is_grey(image, spot):
        before, after, colours = f"{text}[None, ..., None]", "[0, ..., 0]", "1"
    elif shape is not None and len(shape) == 3 and shape[-1] is not None:
        before, after, colours = f"{text}[None]", "[0]", str(shape[-1])
    else:
        return None
    padded = f'{tf}.pad({before}, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")'
    filters = f"{tf}.repeat({tf}.constant({kernel})[..., None, None], {colours}, 2)"
    return f'{tf}.nn.depthwise_conv2d({padded}, {filters}, [1, 1, 1, 1], "VALID"){after}'
