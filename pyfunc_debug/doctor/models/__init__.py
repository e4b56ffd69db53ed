"""What rules find in Keras' models, losses, callbacks and steps of training."""
