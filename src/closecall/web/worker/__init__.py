"""What runs in the processes beside the server: searches, predictions, and reading models and pictures."""
