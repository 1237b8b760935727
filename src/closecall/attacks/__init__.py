"""Adversarial images without a proof."""
