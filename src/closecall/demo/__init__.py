"""The main job on the embedded digits, ending in a page."""
