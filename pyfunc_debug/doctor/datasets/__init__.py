"""What rules find in the calls that build a dataset: their order, what they pair, and what a loop builds again."""
