"""What rules ask and say of bodies: their inputs, results and call sites, and the body written as ops."""
