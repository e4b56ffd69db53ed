"""Programs that cast what a Fourier transform gives, with the imaginary part lost, or on purpose."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tests.doctor.programs import near, triggers

WAVES = np.random.default_rng(0).normal(size=(6, 128)).astype("float32")


def spectra(body):
    data = tf.data.Dataset.from_tensor_slices(WAVES)
    return list(data.map(lambda x: tf.numpy_function(body, [x], tf.float32)))


@triggers("lost-phase", says="np.fft.rfft (line", pastes=True)
def a_spectrum_as_floats():
    def spectrum(x):
        s = np.fft.rfft(x)
        return s.astype(np.float32)

    spectra(spectrum)


@triggers("lost-phase", says="keeps the real parts only", pastes=True)
def half_of_a_spectrum_in_a_helper():
    def transformed(x):
        s = np.fft.fft(x)[: len(x) // 2]
        s = s / 128.0
        return np.array(s, dtype="float32")

    def both(x):
        return np.log1p(np.maximum(transformed(x), 0))

    spectra(both)


@triggers("lost-phase", says="tf.signal.stft", pastes=True)
def a_cast_of_an_stft():
    def spectrogram(x):
        frames = tf.signal.stft(x, 32, 16)
        return tf.cast(frames, tf.float32)

    list(tf.data.Dataset.from_tensor_slices(WAVES).map(spectrogram))


@near("lost-phase")
def a_magnitude():
    def spectrum(x):
        s = np.fft.rfft(x)
        s = np.abs(s)
        return s.astype(np.float32)

    spectra(spectrum)


@near("lost-phase")
def the_way_back_of_a_transform():
    def smooth(x):
        s = np.fft.rfft(x)
        s[10:] = 0
        return np.fft.irfft(s).astype(np.float32)

    spectra(smooth)


@near("lost-phase")
def both_parts():
    def parts(x):
        s = np.fft.rfft(x)
        return np.stack([s.real, s.imag], -1).astype(np.float32)

    spectra(parts)


@near("lost-phase")
def a_real_part_that_is_asked_for():
    def real(x):
        return np.real(np.fft.fft(x)).astype(np.float32)

    spectra(real)
