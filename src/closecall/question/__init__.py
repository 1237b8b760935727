"""What is asked: a norm, a domain around an image, and what the new image must achieve."""
