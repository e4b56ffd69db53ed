"""Causes in Keras' models, layers, losses given to compile, and in what is saved and loaded."""
