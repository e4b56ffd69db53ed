"""A composite tensor of the user's own. TensorFlow reads its annotations, so they must not be strings."""

import typing

import tensorflow as tf


class Record(tf.experimental.ExtensionType):
    """A tensor and a dictionary of tensors."""

    key: tf.Tensor
    fields: typing.Mapping[str, tf.Tensor]
