"""What rules find in Python generators and Keras' Sequences: the batches they give, and their source."""
