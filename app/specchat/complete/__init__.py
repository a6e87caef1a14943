"""`specchat complete`: what belongs at a place in a file, by fill-in-the-middle."""
