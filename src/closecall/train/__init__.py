"""Training: one loop for every model, with checkpoints, curves and a measured choice of threads."""

from __future__ import annotations

from closecall.train.evaluation import evaluate, evaluate_proven
from closecall.train.folder import train_into
from closecall.train.loop import train
from closecall.train.plan import TrainingPlan
from closecall.train.record import EpochRecord, TrainingRun

__all__ = ["EpochRecord", "TrainingPlan", "TrainingRun", "evaluate", "evaluate_proven", "train", "train_into"]
