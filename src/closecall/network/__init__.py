"""A trained classifier as affine maps, ReLUs and maxima."""

from closecall.network.network import Network, Node, drop_unread, fold_affine

__all__ = ["Network", "Node", "drop_unread", "fold_affine"]
