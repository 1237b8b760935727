"""The three kinds of layer that every supported network is made of, one file each.

A network is affine maps, ReLUs and maxima over flat vectors: convolution, average pooling, batch
normalisation, addition, concatenation, padding and slicing are affine, and leaky ReLU and clipping
are a ReLU between two affine maps. Each layer carries all its readings: numbers, intervals, linear
bounds and rows of a MILP.
"""

from closecall.network.layers.affine import Affine
from closecall.network.layers.capsules import Capsules
from closecall.network.layers.layer import Layer
from closecall.network.layers.maximum import Maximum
from closecall.network.layers.relu import Relu

__all__ = ["Affine", "Capsules", "Layer", "Maximum", "Relu"]
