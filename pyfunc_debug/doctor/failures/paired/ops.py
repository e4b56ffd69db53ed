"""Functions of NumPy's, SciPy's and Python's as TensorFlow's ops: candidates; the first that gives the same is taken.

`{0}`, `{1}` are arguments, `{*}` all of them as they are written, `{axis}` a keyword. A candidate that fails or gives
something else on the values at hand is passed over, so that ranks and keywords need no words here.
"""

from __future__ import annotations

import re

_SAME = (
    "abs", "exp", "sqrt", "square", "sin", "cos", "tan", "sinh", "cosh", "tanh", "maximum", "minimum", "sign", "floor",
    "round", "transpose", "reshape", "stack", "where", "einsum", "expand_dims", "squeeze", "tile", "repeat", "roll",
    "zeros_like", "ones_like", "sort", "cumsum", "argmax", "argmin", "argsort", "linspace",
)  # fmt: skip
_NUMPY: dict[str, tuple[str, ...]] = {
    "absolute": ("tf.abs({*})",), "fabs": ("tf.abs({*})",), "power": ("tf.pow({*})",), "negative": ("-{0}",),
    "log": ("tf.math.log({*})", "tf.where({where}, tf.math.log(tf.where({where}, {0}, 1.0)), 0.0)"),
    "log1p": ("tf.math.log1p({*})",), "expm1": ("tf.math.expm1({*})",),
    "log2": ("tf.math.log({0}) / tf.math.log(2.0)",), "log10": ("tf.math.log({0}) / tf.math.log(10.0)",),
    "arctan": ("tf.atan({*})",), "arcsin": ("tf.asin({*})",), "arccos": ("tf.acos({*})",),
    "arctan2": ("tf.atan2({*})",), "arctanh": ("tf.atanh({*})",), "reciprocal": ("1 / {0}",),
    "divide": (
        "{0} / {1}", "tf.math.divide_no_nan({0}, {1})", "tf.where({where}, {0} / tf.where({where}, {1}, 1.0), 0.0)",
    ),
    "true_divide": ("{0} / {1}", "tf.math.divide_no_nan({0}, {1})"),
    "ceil": ("tf.math.ceil({*})",), "rint": ("tf.round({*})",),
    "logaddexp": ("tf.math.log(tf.exp({0}) + tf.exp({1}))",), "mean": ("tf.reduce_mean({*})",),
    "average": ("tf.reduce_mean({*})", "tf.reduce_sum({0} * {weights}) / tf.reduce_sum({weights})"),
    "sum": ("tf.reduce_sum({*})",), "nansum": ("tf.reduce_sum({*})",), "nanmean": ("tf.reduce_mean({*})",),
    "prod": ("tf.reduce_prod({*})",), "max": ("tf.reduce_max({*})",), "min": ("tf.reduce_min({*})",),
    "amax": ("tf.reduce_max({*})",), "amin": ("tf.reduce_min({*})",),
    "ptp": ("tf.reduce_max({0}) - tf.reduce_min({0})",),
    "std": (
        "tf.math.reduce_std({*})",
        "tf.sqrt(tf.reduce_sum(({0} - tf.reduce_mean({0})) ** 2) / ({0}.shape[0] - 1))",
    ),
    "var": (
        "tf.math.reduce_variance({*})",
        "tf.reduce_sum(({0} - tf.reduce_mean({0})) ** 2) / ({0}.shape[0] - 1)",
    ),
    "median": ("tf.keras.ops.median({*})",),
    "clip": ("tf.clip_by_value({*})", "tf.maximum({0}, {1})", "tf.minimum({0}, {2})"),
    "cumprod": ("tf.math.cumprod({*})",), "maximum.accumulate": ("tf.scan(tf.maximum, {0})",),
    "minimum.accumulate": ("tf.scan(tf.minimum, {0})",), "add.accumulate": ("tf.cumsum({0})",),
    "add.reduce": ("tf.reduce_sum({*})",), "maximum.reduce": ("tf.reduce_max({*})",),
    "dot": ("tf.linalg.matvec({0}, {1})", "tf.tensordot({0}, {1}, 1)", "tf.matmul({0}, {1})", "{0} * {1}"),
    "matmul": ("tf.linalg.matvec({0}, {1})", "tf.tensordot({0}, {1}, 1)", "tf.matmul({0}, {1})"),
    "inner": ("tf.tensordot({0}, {1}, 1)",), "vdot": ("tf.tensordot({0}, {1}, 1)",),
    "outer": ("tf.tensordot({0}, {1}, 0)",), "cross": ("tf.linalg.cross({*})",), "trace": ("tf.linalg.trace({0})",),
    "diag": ("tf.linalg.diag({0})", "tf.linalg.diag_part({0})"), "diagonal": ("tf.linalg.diag_part({0})",),
    "linalg.norm": ("tf.norm({*})",), "linalg.inv": ("tf.linalg.inv({*})",), "linalg.det": ("tf.linalg.det({*})",),
    "linalg.slogdet": ("tf.linalg.slogdet({*})",), "linalg.cholesky": ("tf.linalg.cholesky({*})",),
    "linalg.pinv": ("tf.linalg.pinv({*})",),
    "linalg.solve": ("tf.linalg.solve({0}, {1})", "tf.linalg.solve({0}, {1}[:, None])[:, 0]"),
    "concatenate": ("tf.concat({0}, {1})", "tf.concat({0}, {axis})", "tf.concat({0}, 0)"),
    "append": ("tf.concat([{0}, {1}], 0)", "tf.concat([{0}, [{1}]], 0)"),
    "hstack": ("tf.concat({0}, 0)", "tf.concat({0}, 1)", "tf.stack({0})"),
    "vstack": ("tf.stack({0})", "tf.concat({0}, 0)"), "column_stack": ("tf.stack({0}, 1)", "tf.concat({0}, 1)"),
    "flip": ("tf.reverse({0}, [0])", "tf.reverse({0}, [{axis}])"), "ravel": ("tf.reshape({0}, [-1])",),
    "diff": ("{0}[1:] - {0}[:-1]", "{0}[:, 1:] - {0}[:, :-1]"),
    "gradient": (
        "tf.concat([{0}[1:2] - {0}[:1], ({0}[2:] - {0}[:-2]) / 2, {0}[-1:] - {0}[-2:-1]], 0)",
        "tf.concat([{0}[1:2] - {0}[:1], ({0}[2:] - {0}[:-2]) / 2, {0}[-1:] - {0}[-2:-1]], 0) / {1}",
    ),
    "trapezoid": (
        "tf.reduce_sum(({0}[1:] + {0}[:-1]) / 2)",
        "tf.reduce_sum(({0}[1:] + {0}[:-1]) / 2) * {dx}",
        "tf.reduce_sum(({0}[1:] + {0}[:-1]) / 2 * ({1}[1:] - {1}[:-1]))",
        "tf.reduce_sum(({0}[1:] + {0}[:-1]) / 2 * ({x}[1:] - {x}[:-1]))",
    ),
    "percentile": ("tf.keras.ops.quantile({0}, {1} / 100)",), "quantile": ("tf.keras.ops.quantile({0}, {1})",),
    "cov": (
        "tf.matmul({0} - tf.reduce_mean({0}, 1, True), {0} - tf.reduce_mean({0}, 1, True), transpose_b=True) "
        "/ ({0}.shape[1] - 1)",
        "tf.matmul({0} - tf.reduce_mean({0}, 0), {0} - tf.reduce_mean({0}, 0), transpose_a=True) / "
        "({0}.shape[0] - 1)",
    ),
    "corrcoef": (
        "tf.linalg.matmul(*[tf.math.l2_normalize(tf.stack([{0}, {1}]) - tf.reduce_mean(tf.stack([{0}, {1}]), "
        "1, True), 1)] * 2, transpose_b=True)",
    ),
    "convolve": (
        "tf.nn.conv1d({0}[None, :, None], {1}[::-1, None, None], 1, 'VALID')[0, :, 0]",
        "tf.nn.conv1d({0}[None, :, None], {1}[::-1, None, None], 1, 'SAME')[0, :, 0]",
    ),
    "nan_to_num": ("tf.where(tf.math.is_nan({0}), 0.0, {0})",), "isnan": ("tf.math.is_nan({0})",),
    "isfinite": ("tf.math.is_finite({0})",), "any": ("tf.reduce_any({*})",), "all": ("tf.reduce_all({*})",),
    "pad": ("tf.pad({0}, [[{1}, {1}]])", "tf.pad({0}, [{1}])", "tf.pad({0}, {1})"),
    "heaviside": ("tf.where({0} > 0, 1.0, 0.0)",), "full_like": ("tf.fill({0}.shape, {1})",),
    "radians": ("{0} * (math.pi / 180)",), "deg2rad": ("{0} * 0.017453292519943295",),
    "sinc": ("tf.experimental.numpy.sinc({0})",), "hypot": ("tf.sqrt({0} ** 2 + {1} ** 2)",),
    "atleast_1d": ("tf.reshape({0}, [-1])",), "take": ("tf.gather({*})",),
}  # fmt: skip
_ITSELF = {
    "array", "asarray", "asanyarray", "ascontiguousarray", "float32", "float64", "copy", "constant", "float", "real",
    "convert_to_tensor", "identity", "Variable", "stop_gradient",
}  # fmt: skip
_SPECIAL: dict[str, tuple[str, ...]] = {
    "expit": ("tf.sigmoid({0})",), "logit": ("tf.math.log({0} / (1 - {0}))",), "erf": ("tf.math.erf({0})",),
    "erfc": ("tf.math.erfc({0})",), "gammaln": ("tf.math.lgamma({0})",), "loggamma": ("tf.math.lgamma({0})",),
    "digamma": ("tf.math.digamma({0})",), "psi": ("tf.math.digamma({0})",), "softmax": ("tf.nn.softmax({*})",),
    "log_softmax": ("tf.nn.log_softmax({*})",), "logsumexp": ("tf.reduce_logsumexp({*})",),
    "i0": ("tf.math.bessel_i0({0})",), "ndtr": ("0.5 * (1 + tf.math.erf({0} / 2 ** 0.5))",),
    "xlogy": ("tf.math.xlogy({0}, {1})", "{0} * tf.math.log({1})"), "entr": ("-tf.math.xlogy({0}, {0})",),
    "rel_entr": (
        "tf.math.xlogy({0}, {0}) - tf.math.xlogy({0}, {1})", "tf.math.xlogy({0}, {0}) - {0} * tf.math.log({1})",
    ),
    "kl_div": (
        "tf.math.xlogy({0}, {0}) - tf.math.xlogy({0}, {1}) - {0} + {1}",
        "tf.math.xlogy({0}, {0}) - {0} * tf.math.log({1}) - {0} + {1}",
    ),
    "cdist": (
        "tf.norm({0}[:, None] - {1}[None], axis=-1)", "tf.reduce_sum(tf.square({0}[:, None] - {1}[None]), -1)",
        "tf.reduce_sum(tf.abs({0}[:, None] - {1}[None]), -1)",
    ),
    "betaln": ("tf.math.lbeta(tf.stack([{0}, {1}], -1))",),
    "norm.logpdf": (
        "-0.5 * {Z} ** 2 - 0.9189385332046727",
        "-0.5 * {Z} ** 2 - tf.math.log({SCALE}) - 0.9189385332046727",
    ),
    "norm.pdf": (
        "tf.exp(-0.5 * {Z} ** 2) / 2.5066282746310002",
        "tf.exp(-0.5 * {Z} ** 2) / ({SCALE} * 2.5066282746310002)",
    ),
    "norm.cdf": ("0.5 * (1 + tf.math.erf({Z} / 2 ** 0.5))",), "norm.sf": ("0.5 * tf.math.erfc({Z} / 2 ** 0.5)",),
    "norm.logcdf": ("tf.math.log(0.5 * tf.math.erfc(-{Z} / 2 ** 0.5))",),
    "poisson.logpmf": (
        "tf.math.xlogy({0}, {MU}) - {MU} - tf.math.lgamma({0} + 1.0)",
        "{0} * tf.math.log({MU}) - {MU} - tf.math.lgamma({0} + 1.0)",
    ),
    "expon.logpdf": ("-{Z}", "-tf.math.log({SCALE}) - {Z}"),
    "bernoulli.logpmf": (
        "tf.math.xlogy({0}, {P}) + tf.math.xlogy(1 - {0}, 1 - {P})",
        "{0} * tf.math.log({P}) + (1 - {0}) * tf.math.log(1 - {P})",
    ),
    "entropy": (
        "-tf.reduce_sum(tf.math.xlogy({0} / tf.reduce_sum({0}), {0} / tf.reduce_sum({0})))",
        "-tf.reduce_sum({0} / tf.reduce_sum({0}) * tf.math.log({0} / tf.reduce_sum({0})))",
    ),
}  # fmt: skip
_MATH: dict[str, tuple[str, ...]] = {
    "sqrt": ("tf.sqrt({0})",), "exp": ("tf.exp({0})",), "log": ("tf.math.log({0})",), "sin": ("tf.sin({0})",),
    "cos": ("tf.cos({0})",), "tan": ("tf.tan({0})",), "tanh": ("tf.tanh({0})",), "pow": ("tf.pow({*})",),
    "atan": ("tf.atan({0})",), "atan2": ("tf.atan2({*})",), "fabs": ("tf.abs({0})",), "floor": ("tf.floor({0})",),
    "divide": (
        "{0} / {1}", "tf.math.divide_no_nan({0}, {1})", "tf.where({where}, {0} / tf.where({where}, {1}, 1.0), 0.0)",
    ),
    "true_divide": ("{0} / {1}", "tf.math.divide_no_nan({0}, {1})"),
    "ceil": ("tf.math.ceil({0})",), "log1p": ("tf.math.log1p({0})",), "erf": ("tf.math.erf({0})",),
    "erfc": ("tf.math.erfc({0})",), "lgamma": ("tf.math.lgamma({0})",), "hypot": ("tf.sqrt({0} ** 2 + {1} ** 2)",),
    "fsum": ("tf.reduce_sum({0})",), "asin": ("tf.asin({0})",), "acos": ("tf.acos({0})",),
    "log10": ("tf.math.log({0}) / tf.math.log(10.0)",), "log2": ("tf.math.log({0}) / tf.math.log(2.0)",),
}  # fmt: skip
_BUILTINS: dict[str, tuple[str, ...]] = {
    "sum": ("tf.reduce_sum({0})", "tf.add_n({0})", "tf.reduce_sum({0}, 0)"),
    "max": ("tf.maximum({0}, {1})", "tf.reduce_max({0})"), "min": ("tf.minimum({0}, {1})", "tf.reduce_min({0})"),
    "abs": ("tf.abs({0})",), "pow": ("tf.pow({*})",), "sorted": ("tf.sort({0})",), "round": ("tf.round({0})",),
    "list": ("tf.unstack({0})",), "reversed": ("tf.reverse({0}, [0])",),
}  # fmt: skip
_METHODS = {
    "sum", "mean", "max", "min", "std", "var", "prod", "any", "all", "clip", "argmax", "argmin", "argsort", "cumsum",
    "cumprod", "dot", "ravel", "transpose", "repeat", "squeeze", "round", "trace", "diagonal", "conj", "ptp", "take",
}  # fmt: skip
AS_IT_IS = "{SAME}"


def of_numpy(name: str) -> tuple[str, ...]:
    """Candidates for `np.<name>`."""
    if name in _ITSELF:
        return ("{0}", "tf.stack({0})", "tf.cast({0}, {FLOAT})")
    own = _NUMPY.get(name, (f"tf.{name}({{*}})",) if name in _SAME else ())
    return (*own, *((f"tf.experimental.numpy.{name}({{*}})",) if re.fullmatch(r"\w+", name) else ()))


def of_scipy(name: str) -> tuple[str, ...]:
    """Candidates for a function of scipy.special or scipy.stats, by its last names."""
    return _SPECIAL.get(name, _SPECIAL.get(name.rpartition(".")[2], of_numpy(name.partition(".")[2] or name)))


def of_tensorflow(name: str) -> tuple[str, ...]:
    """Candidates for a function of TensorFlow's: itself; what makes a constant of a value is left out."""
    if name == "constant":  # in a graph it takes no tensor
        return "{0}", "tf.stack({0})", "tf.cast({0}, {FLOAT})", AS_IT_IS
    return (AS_IT_IS, *(("{0}", "tf.stack({0})", "tf.cast({0}, {FLOAT})") if name in _ITSELF else ()))


def of_math(name: str) -> tuple[str, ...]:
    """Candidates for `math.<name>`."""
    return _MATH.get(name, ())


def of_builtin(name: str) -> tuple[str, ...]:
    """Candidates for one of Python's functions."""
    if name == "float":
        return ("{0}", "tf.cast({0}, {FLOAT})")
    if name in ("max", "min"):  # Python takes one of two that are equal
        return (*_BUILTINS[name], AS_IT_IS)
    return (AS_IT_IS, *_BUILTINS.get(name, ()))


def of_method(name: str) -> tuple[str, ...]:
    """Candidates for a method of an array; `{0}` is the array, the others follow."""
    if name in ("numpy", "item", "copy", "tolist", "read_value", "value"):
        return ("{0}",)
    if name == "astype":
        return ("{0}", "tf.cast({0}, {1})")
    if name == "reshape":
        return ("tf.reshape({0}, {1})", "tf.reshape({0}, [{REST}])")
    if name == "flatten":
        return ("tf.reshape({0}, [-1])",)
    return (AS_IT_IS, *(of_numpy(name) if name in _METHODS else ()))
