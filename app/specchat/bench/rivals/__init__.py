"""Other engines on the same model file, measured in the same rounds as ours."""
