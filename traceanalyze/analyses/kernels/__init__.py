"""What runs on the device: kernels, copies, how well they use it."""
